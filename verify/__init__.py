"""The grader: what a relay does with a channel's requests, judged from outside and by the core.

Arrow: run -> plants, scenarios -> expect -> play -> core, reading -> wire. Nothing of the package
`relayhub` is imported: what an answer means is read here as the channel guide has it, so that a
fault in the hub's own tables shows.
"""

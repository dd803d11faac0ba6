"""The `relayhub` command line: what a person does with a stack, by its own functions and rules.

Arrow: command -> operator, functions, rows -> desk -> stack -> the rules in relayhub. It is in no
function's zip.

The rule that it protects: only a process that the platform ends at a known time may send to the
core. Nothing in here does: a command reads, invokes a function, writes a hint, moves a message, or
takes a legal step of a row or a switch, for a reason and on record.
"""

"""A cancel at every moment: it never lies, and what it ends is never executed."""

from __future__ import annotations

from typing import Final

from verify import expect, reading
from verify.play import Play, require
from verify.scenario import Need, Scenario, Steps, make
from verify.scenarios.duplicates import done
from verify.scenarios.unsent import refused

_SLOW_S: Final = 1.5
_TOO_MUCH: Final = 10**9


def before(play: Play) -> None:
    """A cancel that overtakes its request ends it: the request gets E908 and is not sent."""
    act = play.act(executed=0)
    answer = play.cancel(act)
    expect.cancelled(answer, is_done=True)
    expect.words(answer, "no", "no", "yes")
    expect.code(play.post(act), "E908", what="the request after its cancel")
    require(play.core.received(act.guid) == 0, "the cancelled request reached the core")


def unsent(play: Play) -> Steps:
    """A cancel of what was not sent ends it: neither the relay nor a resend sends it later."""
    act, _ = refused(play, executed=0)
    expect.cancelled(play.cancel(act), is_done=True)
    play.heal()
    yield play.pause(play.limits.quiet_s)
    require(play.core.received(act.guid) == 0, "the relay sent what was cancelled")
    answer = play.post(act)
    expect.code(answer, "E908", what="the resend after the cancel")
    expect.words(answer, "no", "no", "yes")


def after_done(play: Play) -> None:
    """A cancel of what was executed says so, and changes nothing."""
    act = play.act()
    first = done(play, act)
    answer = play.cancel(act)
    expect.cancelled(answer, is_done=False)
    expect.words(answer, "yes", reading.read(answer).resend, "no")
    expect.same(first, play.post(act), "the resend after the cancel")


def after_refusal(play: Play) -> None:
    """A cancel of what the core refused says that it was not executed."""
    act = play.act(executed=0, amount=_TOO_MUCH)
    expect.code(play.post(act), "B201", what="the first answer")
    answer = play.cancel(act)
    expect.cancelled(answer, is_done=False)
    expect.words(answer, "no", reading.read(answer).resend, "yes")


def in_progress(play: Play) -> Steps:
    """A cancel while the core is at it promises nothing, and the execution is told."""
    act = play.act()
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S})
    call = play.begin_post(act)
    answer = play.cancel(act)
    first = call.result()
    expect.cancelled(answer, is_done=False)
    expect.unconfirmed(answer, "the cancel")
    expect.code(first, "0000", what="the first answer")
    play.heal()
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def in_doubt_executed(play: Play) -> Steps:
    """A cancel in doubt promises nothing; if the core had executed it, that is told in the end."""
    act = play.act()
    play.faults({"kind": "execute_then_close", "guid": act.guid})
    expect.unconfirmed(play.post(act), "the first answer")
    answer = play.cancel(act)
    expect.cancelled(answer, is_done=False)
    expect.unconfirmed(answer, "the cancel")
    play.heal()
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def in_doubt_not_executed(play: Play) -> Steps:
    """A cancel in doubt takes effect once it is known that the core did not execute it."""
    act = play.act(executed=0)
    play.faults({"kind": "hang_before", "guid": act.guid, "attempt": 1})
    expect.unconfirmed(play.post(act), "the first answer")
    answer = play.cancel(act)
    expect.cancelled(answer, is_done=False)
    expect.unconfirmed(answer, "the cancel")
    expect.code((yield from play.truth(act)), "E908", what="the resend in the end")


def other_channel(play: Play) -> None:
    """Another channel cancels nothing, and is told nothing."""
    act = play.act()
    first = done(play, act)
    answer = play.cancel(act, by=play.second)
    told = reading.fields_of(answer)
    require(told.get("cancelled") is not True, "another channel's cancel was accepted")
    require(told.get("executed") == "unknown", "another channel was told what became of it")
    expect.same(first, play.post(act))


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("cancel-before", "a cancel before its request", before, case=30),
    make("cancel-unsent", "a cancel of what was not sent", unsent, case=30),
    make("cancel-after-done", "a cancel of what was executed", after_done),
    make("cancel-after-refusal", "a cancel of what was refused", after_refusal),
    make("cancel-in-progress", "a cancel while the core is at it", in_progress),
    make("cancel-in-doubt", "a cancel in doubt; it was executed", in_doubt_executed, case=29),
    make("cancel-in-doubt-unexecuted", "a cancel in doubt; it was not", in_doubt_not_executed),
    make("cancel-other-channel", "another channel's cancel", other_channel, need=Need.SECOND),
)

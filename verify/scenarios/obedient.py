"""A channel that knows no code: it reads `executed`, `resend`, `new_guid`, and does what they say.

What counts is the business act: however many GUIDs it took, it is executed once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from verify import expect, reading
from verify.play import INTERACTIVE, Act, Play, require
from verify.reading import Reading
from verify.scenario import Scenario, Steps, Until, make
from verify.scenarios.unsent import refused

_TOO_MUCH: Final = 10**9


def brought_through(play: Play, act: Act) -> Generator[Until, bool, Reading]:
    """Resend or ask as the answers say until they say that it is over; return the last reading."""
    told = reading.read(play.post(act))

    def is_over() -> bool:
        nonlocal told
        answer = play.status(act)
        if not reading.is_own_document(answer):
            told = reading.read(play.post(act))
        else:
            told = reading.read(answer)
            # E902 without the relay's own sending: only a resend brings it on.
            if told.code == "E902" and INTERACTIVE in act.lines:
                told = reading.read(play.post(act))
        return told.executed == "yes" or told.new_guid == "yes" or told.resend == "no"

    if told.executed != "yes" and told.new_guid != "yes":
        yield play.until(is_over)
    return told


def _ends_executed(play: Play, act: Act) -> Steps:
    told = yield from brought_through(play, act)
    require(told.executed == "yes", f"the channel ended with executed: {told.executed}")


def silent(play: Play) -> Steps:
    """The core executes and is silent: the channel keeps its GUID and ends with executed: yes."""
    act = play.act()
    play.faults({"kind": "execute_then_hang", "guid": act.guid, "attempt": 1})
    yield from _ends_executed(play, act)


def never_executed(play: Play) -> Steps:
    """The core takes it and does nothing: the channel resends when it may, and it is executed."""
    act = play.act(INTERACTIVE)
    play.faults({"kind": "hang_before", "guid": act.guid, "attempt": 1})
    yield from _ends_executed(play, act)


def refused_then_silent(play: Play) -> Steps:
    """The core is away, then executes without a word: the resends execute it once."""
    act, _ = refused(play)
    fault: dict[str, Any] = {"kind": "execute_then_close", "guid": act.guid}
    play.faults({**fault, "attempt": 1}, {**fault, "attempt": 2})
    yield from _ends_executed(play, act)


def redone(play: Play) -> Steps:
    """Not sent, cancelled, and done anew under another GUID: the act is executed once."""
    act, _ = refused(play, executed=0)
    answer = play.cancel(act)
    play.heal()
    may = reading.read(answer).new_guid
    require(may == "yes", f"after the cancel a new GUID is told as {may}")
    anew = play.act()
    expect.code(play.post(anew), "0000", what="the act under a new GUID")
    yield play.pause(play.limits.quiet_s)


def refused_by_core(play: Play) -> Steps:
    """The core refuses: a new GUID is allowed, and the smaller amount is executed once."""
    act = play.act(executed=0, amount=_TOO_MUCH)
    told = yield from brought_through(play, act)
    require(told.new_guid == "yes", f"after a refusal a new GUID is told as {told.new_guid}")
    yield from _ends_executed(play, play.act())


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("obedient-silent", "an obedient channel, a silent core", silent, case=28),
    make("obedient-unexecuted", "an obedient channel, an idle core", never_executed, case=27),
    make("obedient-refused", "an obedient channel, a core away", refused_then_silent),
    make("obedient-redone", "given up, and done anew", redone, case=30),
    make("obedient-no-funds", "refused by the core, and done anew", refused_by_core),
)

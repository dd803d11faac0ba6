"""The status: it says what is true, changes nothing, and tells another channel nothing."""

from __future__ import annotations

from typing import Final

from verify import expect, reading
from verify.play import Play, require
from verify.scenario import Need, Scenario, Steps, make
from verify.scenarios.doubts import doubted, ends_with_the_answer
from verify.scenarios.duplicates import done

_OK: Final = 200
_NOT_FOUND: Final = 404
_SLOW_S: Final = 1.5
_ASKED: Final = 10


def absent(play: Play) -> None:
    """A GUID that the relay does not know is told as not known yet: 404, and no code."""
    act = play.act(executed=0)
    answer = play.asked(act)
    require(answer.status == _NOT_FOUND, f"the status came as {answer.status} instead of 404")
    require(reading.code_of(answer) is None, f"the status bears {reading.shown(answer)}")
    expect.words(answer, "unknown", "yes", "no")


def of_done(play: Play) -> None:
    """The status of a finished request bears the core's code and says executed."""
    act = play.act()
    done(play, act)
    answer = play.asked(act)
    require(answer.status == _OK, f"the status came as {answer.status} instead of 200")
    expect.code(answer, "0000", what="the status")
    expect.words(answer, "yes", "no", "no")


def in_progress(play: Play) -> None:
    """The status of a request in progress says so, and no word of success."""
    act = play.act()
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S})
    call = play.begin_post(act)
    answer = play.status(act)
    first = call.result()
    require(reading.is_own_document(answer), f"there is no status: {reading.shown(answer)}")
    expect.code(answer, "E903", what="the status")
    expect.words(answer, "unknown", "yes", "no")
    expect.code(first, "0000", what="the first answer")


def in_doubt(play: Play) -> Steps:
    """Ten questions about a request in doubt are told E901 and from when to ask; none is sent."""
    act = doubted(play, {"kind": "execute_then_close"}, {"kind": "inquiry_500"})
    for _ in range(_ASKED):
        told = expect.code(play.asked(act), "E901", what="the status")
        require(told.ask_after is not None, "the status does not say from when to ask")
    require(play.core.received(act.guid) == 1, "a question about the status reached the core")
    play.heal()
    yield from ends_with_the_answer(play, act)


def other_channel(play: Play) -> None:
    """Another channel's GUID looks like one that is not known."""
    act, never = play.act(), play.act(executed=0)
    done(play, act)
    other, absent_ = play.asked(act, by=play.second), play.asked(never, by=play.second)
    require(other.status == absent_.status, "another channel can tell that the GUID is known")
    is_same = other.body.replace(act.guid.encode(), never.guid.encode()) == absent_.body
    require(is_same, "another channel is told something of the GUID")


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("status-absent", "the status of an unknown GUID", absent),
    make("status-done", "the status of a finished request", of_done),
    make("status-in-progress", "the status while the core is at it", in_progress, case=8),
    make("status-in-doubt", "the status of a request in doubt", in_doubt, case=9),
    make("status-other-channel", "the status for another channel", other_channel, need=Need.SECOND),
)

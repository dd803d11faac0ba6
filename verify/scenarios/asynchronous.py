"""`Prefer: respond-async`: accepted at once, executed once, and asked for afterwards."""

from __future__ import annotations

from typing import Final

from verify import expect, reading
from verify.play import INTERACTIVE, Act, Play, require
from verify.reading import shown
from verify.scenario import CannotError, Scenario, Steps, make
from verify.wire import Answer

PREFER: Final = ("Prefer", "respond-async")
_ACCEPTED: Final = 202
_EACH: Final = 5


def _accepted(play: Play, act: Act) -> Answer:
    answer = play.post(act, PREFER)
    applied = answer.headers.get("preference-applied", "")
    if "respond-async" not in applied:
        raise CannotError(f"the preference is not applied: it was told {shown(answer)}")
    require(answer.status == _ACCEPTED, f"it was accepted with status {answer.status}, not 202")
    return answer


def accepted(play: Play) -> Steps:
    """202 says where to ask, and promises nothing; it is executed once, and the answer replayed."""
    act = play.act()
    answer = _accepted(play, act)
    expect.code(answer, "E903", what="the 202")
    expect.words(answer, "unknown", "yes", "no")
    where = answer.headers.get("location", "")
    is_right = where.endswith(f"/transactions/{act.guid}")
    require(is_right, f"the 202 says to ask at {where!r}")
    came = yield play.until(lambda: play.core.executed(act.guid) > 0)
    require(came, f"within {play.limits.settle_s:.0f} s it was not executed")
    resend = yield from play.truth(act)
    expect.code(resend, "0000", what="the resend in the end")
    expect.same(resend, play.post(act), "the second resend")


def repeated(play: Play) -> Steps:
    """Resends with and without the preference, all at once, do not send it twice."""
    act = play.act()
    _accepted(play, act)
    calls = [lambda: play.post(act, PREFER)] * _EACH + [lambda: play.post(act)] * _EACH
    for answer in play.at_once(calls):
        if reading.code_of(answer) != "0000":
            expect.unconfirmed(answer, "a resend")
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def interactive(play: Play) -> None:
    """Where a customer waits the preference is not applied: the answer is the core's own."""
    act = play.act(INTERACTIVE)
    answer = play.post(act, PREFER)
    expect.code(answer, "0000", what="the answer")
    require("preference-applied" not in answer.headers, "the answer says Preference-Applied")


def cancelled(play: Play) -> Steps:
    """A cancel before it could be sent ends it, and it is never executed."""
    act = play.act(executed=0)
    play.faults({"kind": "refuse"})
    _accepted(play, act)
    play.cancel(act)
    # The relay may have been at it; then the cancel is recorded, and the refusal makes it true.
    play.soon(lambda: reading.code_of(play.asked(act)) == "E908", play.limits.quiet_s)
    play.heal()
    expect.code((yield from play.truth(act)), "E908", what="the resend after the cancel")


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("async-accepted", "accepted for later", accepted),
    make("async-repeated", "accepted for later, and resent", repeated),
    make("async-interactive", "accepted for later, a customer waits", interactive),
    make("async-cancelled", "accepted for later, and cancelled", cancelled),
)

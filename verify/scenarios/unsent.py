"""Nothing of the request left the relay: it may be sent again, by whom and until when is agreed."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final

from verify import expect, reading
from verify.play import INTERACTIVE, Act, Play, require
from verify.scenario import Scenario, Steps, make
from verify.wire import Answer

_VALID_S: Final = 2
_RESENDS: Final = 5
_SERVICE_UNAVAILABLE: Final = 503
_ACCEPTED: Final = 202


def refused(play: Play, *lines: tuple[str, str], executed: int = 1) -> tuple[Act, Answer]:
    """Send an act while the core's port is closed, as it stays; return it and its answer."""
    act = play.act(*lines, executed=executed)
    play.faults({"kind": "refuse"})
    answer = play.post(act)
    expect.unsent(answer, "the first answer")
    return act, answer


def refused_then_accepted(play: Play) -> None:
    """Two attempts are refused and the third is executed, all under one GUID."""
    act = play.act(INTERACTIVE)
    play.faults({"kind": "refuse"})
    for what in ("the first answer", "the second answer"):
        expect.unsent(play.post(act), what)
    play.heal()
    expect.code(play.post(act), "0000", what="the third answer")


def words_unsent(play: Play) -> None:
    """E902 says not executed, resend, and a new GUID only after a cancel."""
    act, answer = refused(play, INTERACTIVE)
    expect.code(answer, "E902", what="the answer")
    expect.words(answer, "no", "yes", "after_cancel")
    require(answer.status == _SERVICE_UNAVAILABLE, f"E902 came with status {answer.status}")
    require(reading.retry_after_s(answer), "E902 bears no Retry-After")
    play.heal()
    expect.code(play.post(act), "0000", what="the resend")


def deferred_sent_later(play: Play) -> Steps:
    """What was not sent is sent by the relay itself, once, when the core is back."""
    act, answer = refused(play)
    expect.code(answer, "E902", what="the answer")
    require(answer.status == _ACCEPTED, f"E902 came with status {answer.status} instead of 202")
    play.heal()
    came = yield play.until(lambda: play.core.executed(act.guid) > 0)
    require(came, f"within {play.limits.settle_s:.0f} s the relay did not send it by itself")
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def deferred_and_resent(play: Play) -> Steps:
    """The channel resends while the relay sends it by itself: it is executed once."""
    act, _ = refused(play)
    play.heal()
    play.at_once([lambda: play.post(act)] * _RESENDS)
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def interactive_not_sent_later(play: Play) -> Steps:
    """Where a customer waits the relay sends nothing later; only a resend does."""
    act, _ = refused(play, INTERACTIVE)
    play.heal()
    yield play.pause(play.limits.quiet_s)
    require(play.core.received(act.guid) == 0, "the relay sent an interactive request by itself")
    expect.code(play.post(act), "0000", what="the resend")


def _until(seconds: float) -> tuple[str, str]:
    ends_at = datetime.now(UTC) + timedelta(seconds=seconds)
    return "Valid-Until", ends_at.isoformat(timespec="milliseconds")


def validity_over(play: Play) -> None:
    """Past its Valid-Until nobody sends it: E908, not executed, a new GUID is safe."""
    play.faults({"kind": "refuse"})
    over = _until(_VALID_S)
    acts = [play.act(over, executed=0), play.act(over, INTERACTIVE, executed=0)]
    for act in acts:
        expect.unsent(play.post(act), "the first answer")
    # The core stays away until then: while it is valid, the relay may send it.
    time.sleep(_VALID_S + 1)
    play.heal()
    for act in acts:
        answer = play.post(act)
        expect.code(answer, "E908", what="the resend past Valid-Until")
        expect.words(answer, "no", "no", "yes")


def validity_over_in_doubt(play: Play) -> Steps:
    """A request in doubt does not end with its validity: what was executed is told as executed."""
    act = play.act(_until(_VALID_S))
    play.faults({"kind": "execute_then_close", "guid": act.guid})
    expect.unconfirmed(play.post(act), "the first answer")
    yield play.pause(_VALID_S + 1)
    play.heal()
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def validity_past(play: Play) -> None:
    """A new request whose Valid-Until has passed is refused, and nothing is recorded."""
    act = play.act(executed=0)
    expect.malformed(play.post(act, _until(-60)))
    expect.malformed(play.post(act, ("Valid-Until", "tomorrow")), "a Valid-Until that is no time")


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("refused-then-accepted", "refused twice, then accepted", refused_then_accepted, case=6),
    make("words-unsent", "what E902 says", words_unsent),
    make("deferred-sent-later", "the core is away; nobody resends", deferred_sent_later),
    make("deferred-and-resent", "the core is back, and both send", deferred_and_resent),
    make("interactive-unsent", "the core is away; a customer waits", interactive_not_sent_later),
    make("validity-over", "Valid-Until passes, nothing was sent", validity_over),
    make("validity-over-in-doubt", "Valid-Until passes in doubt", validity_over_in_doubt),
    make("validity-past", "a new request past its Valid-Until", validity_past),
)

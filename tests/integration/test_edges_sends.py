"""What is sent at the edges: nothing that a flag, a clock, a time or the core speaks against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.states import Hold, State
from relayhub.times import rfc3339
from tests.integration.edges_kit import (
    cancelled_meanwhile,
    held_meanwhile,
    ready,
)
from tests.maintenance import (
    DAY_MS,
    NOT_FOUND,
    PROCESSING,
    purger,
    reprocessor,
    resolve_at,
)
from tests.plant import Works
from tests.world import START_MS, reply_lost

WHO = pytest.mark.parametrize("who", ["relay", "resend", "reprocessor"])
UNTIL_MS = START_MS + 600_000
BORN_AT_START = "01a3185c-5000-7abc-8def-0123456789ab"  # A UUIDv7 of START_MS.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


FLAGS: list[Any] = [
    pytest.param(held_meanwhile, State.FAILED, "E901", id="hold"),
    pytest.param(cancelled_meanwhile, State.DONE, "E908", id="cancel"),
]


@WHO
@pytest.mark.parametrize(("flag", "state", "told"), FLAGS)
def test_a_claim_that_is_found_again_with_a_flag_sends_nothing(
    works: Works, who: str, flag: Callable[[Works], None], state: State, told: str
) -> None:
    """Its reply was lost; by the retry the row in hand says that nothing may be sent."""
    send, claim = ready(works, who)
    works.dynamo.faults[claim].append(reply_lost)
    works.dynamo.before[claim] += [lambda: None, lambda: flag(works)]
    send(works)
    assert works.core.sent == []
    assert (works.held().state, works.get().code) == (state, told)


@WHO
@pytest.mark.parametrize("ahead_ms", [-120_000, -3_001, 3_000, 120_000])
def test_a_sender_whose_clock_is_off_sends_nothing(works: Works, who: str, ahead_ms: int) -> None:
    """Others would judge by its times when the core can no longer begin: too early, or too late.

    The ledger's clock is ahead of the sender's, or behind it, and tells whole seconds.
    """
    send, _ = ready(works, who)
    works.dynamo_ahead_ms = ahead_ms
    send(works)
    row = works.held()
    assert works.core.sent == []
    assert (row.state, row.code, row.why) == (State.FAILED, "E902", "not_sent")
    assert (row.doubted, works.noted("clock_off")) == (False, 1)
    assert row.resends == 0, "the cap must not count what a wrong clock has stopped"


@WHO
def test_a_claim_that_is_found_again_is_checked_for_the_clock_too(works: Works, who: str) -> None:
    """The failed condition bears the ledger's time as well as the row."""
    send, claim = ready(works, who)
    works.dynamo.faults[claim].append(reply_lost)
    works.dynamo.before[claim] += [lambda: None, lambda: setattr(works, "dynamo_ahead_ms", 120_000)]
    send(works)
    assert works.core.sent == []
    assert works.held().state is State.FAILED


@WHO
@pytest.mark.parametrize("ahead_ms", [-2_499, 0, 2_499])
def test_a_sender_whose_clock_is_off_by_less_than_half_the_skew_sends(
    works: Works, who: str, ahead_ms: int
) -> None:
    """That much is in the skew that every bound holds."""
    send, _ = ready(works, who)
    works.dynamo_ahead_ms = ahead_ms
    send(works)
    assert (len(works.core.sent), works.held().code) == (1, "0000")
    assert works.noted("clock_off") == 0


def undated(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
    """Let the answer come without a Date."""
    return {**operation(**request), "ResponseMetadata": {"HTTPHeaders": {}}}


@pytest.mark.parametrize("who", ["relay", "resend"])
def test_an_answer_of_the_ledger_without_a_time_stops_no_send(works: Works, who: str) -> None:
    """It tells nothing of the clock."""
    send, claim = ready(works, who)
    works.dynamo_ahead_ms = 120_000
    works.dynamo.faults[claim].append(undated)
    send(works)
    assert (len(works.core.sent), works.held().code) == (1, "0000")


@WHO
@pytest.mark.parametrize(("valid_s", "call_s"), [(1, 1), (19, 19), (21, 20)])
def test_nothing_may_start_after_valid_until(
    works: Works, who: str, valid_s: int, call_s: int
) -> None:
    """The call ends with the validity where that is before its own deadline."""
    until_ms = START_MS + valid_s * 1_000
    if who == "relay":
        works.post(headers={"valid-until": rfc3339(until_ms)})
    else:
        send, _ = ready(works, who)
        works.edit(valid_until=until_ms)
        send(works)
    (request,) = works.core.sent
    assert request.not_after_ms == START_MS + call_s * 1_000
    assert works.core.within_s[-1] == call_s


def test_what_the_core_was_seen_at_is_not_sent_by_its_channels_resend(works: Works) -> None:
    """Although it never was in doubt, and so would not be asked about."""
    works.fail()
    works.core.findings[:] = [PROCESSING]
    reprocessor(works)
    works.core.findings[:] = [NOT_FOUND]
    assert works.post().code == "E901"
    assert (works.held().hold, len(works.core.sent)) == (Hold.CONTRADICTION, 1)


@pytest.mark.parametrize("by", ["channel", "hub"])
@pytest.mark.parametrize(("asked_ms", "sends"), [(UNTIL_MS, 0), (UNTIL_MS + 1, 1)])
def test_during_a_failover_a_not_found_lets_no_resend_go(
    works: Works, by: str, asked_ms: int, sends: int
) -> None:
    """The standby may not know it yet; what counts is when the inquiry left."""
    works.doubt()
    for ms in (START_MS + 65_001, START_MS + 95_001):
        resolve_at(works, ms, NOT_FOUND)
    works.deploy(hold_not_found_until=rfc3339(UNTIL_MS))
    works.clock.ms = asked_ms
    works.core.findings[:] = [NOT_FOUND]
    works.core.during_ask.append(lambda: works.clock.advance(1))
    send = works.post if by == "channel" else lambda: reprocessor(works)
    send()
    assert (len(works.core.asked), len(works.core.sent)) == (3, 1 + sends)


def test_what_never_left_may_be_sent_to_a_core_of_another_name(works: Works) -> None:
    """The core of before never had it, so nobody needs its word."""
    works.fail()
    works.deploy(core_name="new")
    works.core.findings[:] = [NOT_FOUND]
    assert reprocessor(works) == "sent"
    assert (works.held().state, works.held().core) == (State.DONE, "new")


def test_a_row_that_was_purged_is_not_sent_again_whatever_the_horizon_says(aws: None) -> None:
    """A horizon beyond the retention promises a memory that the ledger does not have."""
    del aws
    works = Works(retention_s=25 * 86_400, age_horizon_s=60 * 86_400)
    assert works.post(BORN_AT_START).code == "0000"
    works.clock.ms += 25 * DAY_MS
    assert purger(works).deleted == 1
    assert works.post(BORN_AT_START).code == "E907"
    assert len(works.core.sent) == 1

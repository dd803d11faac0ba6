"""The reprocessor's claim: the last word over whether a row is sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.flows.reprocess import Taken
from relayhub.ledger import Found
from relayhub.states import State
from tests.maintenance import (
    DAY_MS,
    NOT_FOUND,
    PROCESSING,
    cancel,
    reprocessor,
    resolve_at,
    resolver,
)
from tests.plant import Works
from tests.world import (
    START_MS,
    never_arrives,
    refused,
    reply_lost,
)


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core, which has no record unless told."""
    del aws
    works = Works()
    works.core.findings.append(NOT_FOUND)
    return works


@pytest.mark.parametrize("by", ["inquiry", "claim"])
def test_a_row_that_expires_meanwhile_is_not_sent(works: Works, by: str) -> None:
    """Validity stands in the claim's own condition."""
    works.fail()
    if by == "inquiry":
        works.clock.ms = START_MS + DAY_MS - 2_000
        works.core.during_ask.append(lambda: works.clock.advance(2))
    else:
        works.dynamo.before["update_item"].append(lambda: works.edit(valid_until=START_MS))
    assert reprocessor(works) is Taken.DROPPED
    assert (len(works.core.sent), works.held().attempt) == (1, 1)


def _claimed_by_another(works: Works) -> None:
    assert works.claim_again() is not None


MEANWHILE: list[Any] = [
    pytest.param(cancel, "DONE", id="cancelled"),
    pytest.param(lambda works: works.edit(cancel={"at": 1}), "FAILED", id="cancel_recorded"),
    pytest.param(lambda works: works.edit(hold="operator"), "FAILED", id="held"),
    pytest.param(lambda works: works.edit(parked="operator"), "FAILED", id="parked"),
    pytest.param(_claimed_by_another, "SENT", id="claimed"),
    pytest.param(lambda works: works.edit(claim_id="other"), "FAILED", id="failed_again"),
    pytest.param(lambda works: works.edit(schema=2), "FAILED", id="newer"),
]


@pytest.mark.parametrize("when", ["inquiry", "claim"])
@pytest.mark.parametrize(("change", "state"), MEANWHILE)
def test_whatever_happens_to_the_row_meanwhile_stops_the_send(
    works: Works, change: Callable[[Works], object], state: str, when: str
) -> None:
    """The claim is the last word: it is made only of the row that was read."""
    works.fail()
    if when == "inquiry":
        works.core.during_ask.append(lambda: change(works))
    else:
        works.dynamo.before["update_item"].append(lambda: change(works))
    assert reprocessor(works) is Taken.DROPPED
    assert (len(works.core.sent), works.held().state) == (1, state)


FLAGS: list[Any] = [
    pytest.param({"hold": "operator"}, ["relay", "reprocessor"], id="hold"),
    pytest.param({"cancel": {"at": 1}}, ["relay", "reprocessor"], id="cancel"),
    pytest.param({"valid_until": START_MS}, ["relay", "reprocessor"], id="validity"),
    pytest.param({"parked": "cap"}, ["reprocessor"], id="parked"),
]


@pytest.mark.parametrize(("flags", "stopped"), FLAGS)
def test_each_flag_alone_stops_the_claim_that_it_must_stop(
    works: Works, flags: dict[str, Any], stopped: list[str]
) -> None:
    """In the claim's own condition, even if whoever claims has read the flag and gone on."""
    works.fail()
    works.edit(**flags)
    for by in ("relay", "reprocessor"):
        outcome = works.claim_again(by=by) if by in stopped else None
        assert isinstance(outcome, Found | None)
    assert works.held().state is State.FAILED


def test_a_ledger_that_does_not_answer_gives_the_hint_back(works: Works) -> None:
    """Not looked at is not done with."""
    works.fail()
    works.dynamo.faults["get_item"] += [refused("ThrottlingException")] * 2
    assert reprocessor(works) is Taken.GIVEN_BACK
    assert (works.core.asked, len(works.core.sent)) == ([], 1)


@pytest.mark.parametrize(
    "fault", [refused("ThrottlingException"), never_arrives], ids=["refused", "lost"]
)
def test_a_claim_that_the_ledger_did_not_confirm_sends_nothing(works: Works, fault: Any) -> None:
    """The sweep hints again; nothing is sent that the ledger does not say is being sent."""
    works.fail()
    works.dynamo.faults["update_item"] += [fault] * 2
    assert reprocessor(works) is Taken.WAITS
    assert (len(works.core.sent), works.held().state) == (1, State.FAILED)


def test_a_claim_whose_reply_was_lost_once_is_recognised_as_its_own(works: Works) -> None:
    """The retry meets the row that it has made: one send."""
    works.fail()
    works.dynamo.faults["update_item"].append(reply_lost)
    assert reprocessor(works) is Taken.SENT
    assert (len(works.core.sent), works.held().attempt) == (2, 2)


def test_a_claim_that_was_moved_on_before_its_retry_sends_nothing(works: Works) -> None:
    """The row bears its claim_id, and is not SENT any more: whoever moved it on was faster."""
    works.fail()
    works.dynamo.faults["update_item"].append(reply_lost)

    def moved_on() -> None:
        works.edit(state="UNKNOWN")

    works.dynamo.before["update_item"] += [lambda: None, moved_on]
    reprocessor(works)
    assert (len(works.core.sent), works.held().state) == (1, State.UNKNOWN)


def test_a_claim_whose_every_reply_was_lost_is_the_resolvers(works: Works) -> None:
    """It may stand, so nothing is sent; past its end the row is given up and asked about."""
    works.fail()
    works.dynamo.faults["update_item"] += [reply_lost] * 2
    assert reprocessor(works) is Taken.WAITS
    assert (works.held().state, len(works.core.sent)) == (State.SENT, 1)
    works.clock.advance(66)
    resolver(works)
    assert works.held().state is State.UNKNOWN


@pytest.mark.parametrize("by", ["reprocessor", "channel"])
def test_a_core_that_was_just_seen_at_it_is_not_believed_when_it_says_not_found(
    works: Works, by: str
) -> None:
    """Before a resend too: from the last PROCESSING a NOT_FOUND waits for core_longest."""
    works.doubt()
    resolve_at(works, START_MS + 65_001, NOT_FOUND)
    resolve_at(works, START_MS + 95_001, NOT_FOUND)
    send = works.post if by == "channel" else lambda: reprocessor(works)
    for finding in (PROCESSING, NOT_FOUND):
        works.core.findings[:] = [finding]
        works.clock.advance(1)
        send()
    assert len(works.core.sent) == 1

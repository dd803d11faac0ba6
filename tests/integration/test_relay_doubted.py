"""A FAILED row that was once in doubt: the core is asked once more right before a resend."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.core import Answered, Doubt, Finding
from relayhub.message import Answer
from relayhub.states import Event, State, Verdict
from tests.world import EXECUTED, REFUSED, World, document, never_arrives, refused, reply_lost

NOT_FOUND = Finding(Verdict.NOT_FOUND, None, "")


def doubted(world: World) -> None:
    """Make a FAILED row that was once in doubt."""
    world.doubt()
    world.clock.advance(120)
    world.not_found()


def test_a_row_never_in_doubt_is_not_asked_about(world: World) -> None:
    """What never left needs no inquiry."""
    world.fail()
    world.post()
    assert world.core.asked == []


def test_a_row_once_in_doubt_is_asked_about_and_let_go(world: World) -> None:
    """NOT_FOUND right before the resend: it is sent."""
    doubted(world)
    world.core.findings.append(NOT_FOUND)
    assert world.post().code == "0000"
    assert (world.core.asked, len(world.core.sent)) == (["G-1"], 2)


@pytest.mark.parametrize("answer", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_row_found_processed_before_its_resend_is_done(world: World, answer: Answer) -> None:
    """The core has its answer already: stored, told, not sent; an execution is an alarm."""
    doubted(world)
    world.core.findings.append(Finding(Verdict.PROCESSED, answer, ""))
    reply = world.post()
    assert (reply.status, reply.body) == (answer.status, answer.body)
    row = world.held()
    assert (row.state, row.code, row.answer_source) == (State.DONE, answer.code, "inquiry")
    assert row.expires_at == world.clock() // 1000 + 400 * 86_400
    assert len(world.core.sent) == 1
    assert world.noted("contradiction") == (1 if answer is EXECUTED else 0)


def test_an_undecided_inquiry_leaves_the_row(world: World) -> None:
    """It is not sent, and it stays as it is."""
    doubted(world)
    before = world.item()
    world.core.findings.append(Finding(Verdict.UNDECIDED, None, "core_unreachable"))
    world.post()
    assert (world.item(), len(world.core.sent)) == (before, 1)


def test_a_core_that_is_at_it_is_written_down(world: World) -> None:
    """It is not sent, now or later: the row and the core contradict, and a person decides."""
    doubted(world)
    world.core.findings.append(Finding(Verdict.PROCESSING, None, ""))
    world.post()
    row = world.held()
    assert (row.state, row.attempt, row.hold) == (State.FAILED, 1, "contradiction")
    assert document(world.get())["ask_after"] is not None
    assert len(world.core.sent) == 1


def test_an_undecided_row_is_told_as_what_it_is(world: World) -> None:
    """The row says E902."""
    doubted(world)
    assert world.post().code == "E902"


def test_a_core_that_is_at_it_is_never_told_as_not_executed(world: World) -> None:
    """PROCESSING: whoever hears "not executed" now may pay anew under another GUID."""
    doubted(world)
    world.core.findings.append(Finding(Verdict.PROCESSING, None, ""))
    assert document(world.post())["executed"] == "unknown"


def test_another_core_is_never_asked_about_an_older_ones_row(world: World) -> None:
    """Its NOT_FOUND would say nothing of the core that was sent the request."""
    doubted(world)
    world.deploy(core_name="other")
    world.core.findings.append(NOT_FOUND)
    assert world.post().code == "E902"
    assert (world.core.asked, len(world.core.sent)) == ([], 1)


LOST: list[Any] = [
    pytest.param([reply_lost] * 2, id="reply_lost"),
    pytest.param([never_arrives] * 2, id="request_lost"),
    pytest.param([refused("ThrottlingException")] * 2, id="throttled"),
    pytest.param([refused("AccessDeniedException")], id="denied"),
]


@pytest.mark.parametrize("faults", LOST)
def test_an_execution_found_and_not_stored_is_never_told_as_not_executed(
    world: World, faults: list[Any]
) -> None:
    """The hub knows that it was executed: E902 would let the channel pay anew."""
    doubted(world)
    world.core.findings.append(Finding(Verdict.PROCESSED, EXECUTED, ""))
    world.dynamo.faults["update_item"] += faults
    reply = world.post()
    assert reply.code in {"0000", "E901", "E906"}
    assert len(world.core.sent) == 1


def test_an_answer_found_on_a_row_that_was_held_meanwhile_gets_no_expiry(world: World) -> None:
    """A hold that the writer has not seen must not be deleted by TTL with its row."""
    doubted(world)
    world.core.findings.append(Finding(Verdict.PROCESSED, EXECUTED, ""))
    hold = {"by": "operator", "hold": "operator"}
    world.dynamo.before["update_item"].append(lambda: world.move(Event.HELD, **hold))
    assert world.post().code == "E901"
    assert world.held().expires_at is None


def test_a_claim_forgets_what_was_counted_before_it(world: World) -> None:
    """A NOT_FOUND of attempt 1 never counts for attempt 2."""
    doubted(world)
    world.edit(not_found_at=5, inquiries=7)
    world.core.findings.append(NOT_FOUND)
    world.core.outcomes.append(Doubt("no_answer", aborted=False))
    world.post()
    row = world.held()
    assert (row.not_found_at, row.inquiries, row.attempt) == (None, 0, 2)
    assert (row.state, row.doubted) == (State.UNKNOWN, True)


def test_a_resend_that_was_refused_keeps_its_evidence(world: World) -> None:
    """A row once in doubt is evidence, whatever ended it."""
    doubted(world)
    world.core.findings.append(NOT_FOUND)
    world.core.outcomes.append(Answered(REFUSED))
    world.post()
    assert world.held().expires_at == world.clock() // 1000 + 400 * 86_400

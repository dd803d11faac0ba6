"""A holder that comes late: the row was moved on while it was calling the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Answered
from relayhub.flows import attempt, steps
from relayhub.ledger import Stored
from relayhub.message import Answer
from relayhub.states import Event, State
from tests.world import EXECUTED, REFUSED, START_MS, World

Move = Callable[[World], object]


def unknown(world: World) -> None:
    """Give the row up, past dead_at."""
    world.clock.advance(31)
    world.abandon()


def failed(world: World) -> None:
    """Give it up, then believe a NOT_FOUND."""
    unknown(world)
    world.clock.advance(120)
    world.not_found()


def claimed_again(world: World) -> None:
    """Then claim it for another attempt."""
    failed(world)
    world.claim_again()


def done(answer: Answer) -> Move:
    """Give it up, then find the answer by inquiry."""

    def move(world: World) -> None:
        unknown(world)
        row = world.held()
        changes = steps.answer_fields(world.hub, row, answer, "inquiry", world.clock() + 60_000)
        world.move(Event.PROCESSED, **changes)

    return move


def closed(world: World) -> None:
    """Give it up, then end it as cancelled."""
    unknown(world)
    world.edit(cancel={"at": world.clock(), "by": "atm"})
    steps.end_unexecuted(world.hub, world.held(), Event.CANCELLED, "resolver")


def case(
    move: Move, answer: Answer, row: tuple[str, str | None, str | None], told: str, word: str
) -> Any:
    """Return one case: what happened meanwhile, the late answer, and what must come of it."""
    return pytest.param(move, answer, row, told, id=f"{word}-{answer.code}")


OTHER = Answer(200, "application/json", b'{"code":"0000","reference":"R2"}', "0000")
LATE = [
    case(unknown, EXECUTED, ("DONE", "0000", None), "0000", "unknown"),
    case(unknown, REFUSED, ("DONE", "B201", None), "B201", "unknown"),
    case(failed, EXECUTED, ("DONE", "0000", None), "0000", "failed"),
    case(failed, REFUSED, ("DONE", "B201", None), "B201", "failed"),
    case(done(EXECUTED), EXECUTED, ("DONE", "0000", None), "0000", "done_executed"),
    case(done(EXECUTED), REFUSED, ("DONE", "0000", "contradiction"), "E901", "done_executed"),
    case(done(REFUSED), EXECUTED, ("DONE", "B201", "contradiction"), "E901", "done_refused"),
    case(done(REFUSED), REFUSED, ("DONE", "B201", None), "B201", "done_refused"),
    case(closed, EXECUTED, ("DONE", "E908", "contradiction"), "E901", "closed"),
    case(closed, REFUSED, ("DONE", "E908", None), "E908", "closed"),
    case(claimed_again, EXECUTED, ("SENT", None, "contradiction"), "E901", "claimed_again"),
    case(claimed_again, REFUSED, ("SENT", None, "contradiction"), "E901", "claimed_again"),
]


@pytest.mark.parametrize(("move", "answer", "expected", "told"), LATE)
def test_a_late_answer_is_written_or_held_and_never_silent(
    world: World,
    move: Move,
    answer: Answer,
    expected: tuple[str, str | None, str | None],
    told: str,
) -> None:
    """Open under the same claim: it is the answer. Otherwise it is history, or a hold."""
    world.core.during.append(lambda: move(world))
    world.core.outcomes.append(Answered(answer))
    reply = world.post()
    row = world.held()
    assert (row.state, row.code, row.hold) == expected
    assert reply.code == told
    assert world.post().code == told
    assert len(world.core.sent) == 1
    assert world.noted("late_answer") + world.noted("fenced") + len(world.steps) >= 3


@pytest.mark.parametrize(("move", "answer", "expected", "told"), LATE)
def test_only_a_done_row_that_nobody_doubts_may_expire(
    world: World,
    move: Move,
    answer: Answer,
    expected: tuple[str, str | None, str | None],
    told: str,
) -> None:
    """A hold takes the expiry off; a row once in doubt keeps the longer one of evidence."""
    del told
    world.core.during.append(lambda: move(world))
    world.core.outcomes.append(Answered(answer))
    world.post()
    row = world.held()
    if row.state is State.DONE and expected[2] is None:
        assert (row.expires_at or 0) >= START_MS // 1000 + 400 * 86_400
    else:
        assert row.expires_at is None


ALARMS = [
    pytest.param(failed, EXECUTED, 1, id="failed_and_executed"),
    pytest.param(failed, REFUSED, 0, id="failed_and_refused"),
    pytest.param(unknown, EXECUTED, 0, id="unknown_and_executed"),
    pytest.param(closed, EXECUTED, 1, id="closed_and_executed"),
    pytest.param(closed, REFUSED, 0, id="closed_and_refused"),
    pytest.param(claimed_again, REFUSED, 1, id="claimed_again"),
    pytest.param(done(EXECUTED), REFUSED, 1, id="codes_differ"),
    pytest.param(done(EXECUTED), EXECUTED, 0, id="the_same_answer"),
]


@pytest.mark.parametrize(("move", "answer", "alarms"), ALARMS)
def test_a_contradiction_is_an_alarm(world: World, move: Move, answer: Answer, alarms: int) -> None:
    """Two truths about one request are counted; one truth that came twice is not."""
    world.core.during.append(lambda: move(world))
    world.core.outcomes.append(Answered(answer))
    world.post()
    assert world.noted("contradiction") == alarms


def test_a_late_answer_with_other_bytes_gets_the_stored_ones_and_an_alarm(world: World) -> None:
    """The row's answer is the answer; that the core gave two different ones is not silent."""
    world.core.during.append(lambda: done(EXECUTED)(world))
    world.core.outcomes.append(Answered(OTHER))
    assert world.post().body == EXECUTED.body
    assert world.post().body == EXECUTED.body
    assert world.noted("contradiction") == 1


def test_the_same_answer_that_the_resolver_has_stored_is_the_holders_own(world: World) -> None:
    """Whoever wrote it, it is what was to be written: neither a replay nor a late writer."""
    world.core.during.append(lambda: done(EXECUTED)(world))
    reply = world.post()
    assert (reply.body, "Idempotent-Replayed" in reply.headers) == (EXECUTED.body, False)
    assert (world.noted("fenced"), world.held().history[-1]["event"]) == (0, "processed")


def test_a_fenced_answer_stands_in_the_history(world: World) -> None:
    """Who came late, for which attempt and with what."""
    world.core.during.append(lambda: claimed_again(world))
    world.post()
    last = world.held().history[-1]
    assert (last["event"], last["by"]) == ("held", "relay of attempt 1, late 0000")


def test_an_answer_under_an_older_claim_never_becomes_the_rows(world: World) -> None:
    """The row of attempt 2 keeps its own claim: attempt 1's answer is not its result."""
    world.core.during.append(lambda: claimed_again(world))
    world.post()
    row = world.held()
    assert (row.attempt, row.response, row.has_answer()) == (2, None, False)
    assert row.claim_id != "claim-1"


def test_two_executions_of_two_claims_are_a_contradiction(world: World) -> None:
    """The same code twice is one too many when two attempts bear it."""

    def second_attempt() -> None:
        failed(world)
        outcome = world.claim_again()
        assert isinstance(outcome, Stored)
        attempt.run(world.hub, outcome, "reprocessor")

    world.core.during.append(second_attempt)
    assert world.post().code == "E901"
    row = world.held()
    assert (row.state, row.hold, row.expires_at) == (State.DONE, "contradiction", None)
    assert world.noted("contradiction") >= 1


def test_the_next_holders_answer_on_a_held_row_gets_no_expiry(world: World) -> None:
    """The second attempt was on its way when the first one's answer held the row."""
    outcomes: list[Any] = []

    def claimed_meanwhile() -> None:
        failed(world)
        outcomes.append(world.claim_again())

    world.core.during.append(claimed_meanwhile)
    world.post()
    settled = attempt.run(world.hub, outcomes[0], "reprocessor")
    row = world.held()
    assert (row.state, row.hold, row.expires_at) == (State.DONE, "contradiction", None)
    assert settled.row.hold == "contradiction"
    assert world.post().code == "E901"

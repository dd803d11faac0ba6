"""The relay on moto: one claim, one call, one result; nothing is sent that the row does not say."""

from __future__ import annotations

import pytest

from relayhub.core import Answered, Doubt, Finding, NotSent, SendOutcome
from relayhub.row import Row
from relayhub.states import State, Verdict
from tests.world import EXECUTED, REFUSED, START_MS, World, document, reply_lost


def test_a_new_transaction_costs_two_requests_and_no_read(world: World) -> None:
    """A claim and its result are one DynamoDB request each."""
    reply = world.post()
    assert (reply.status, reply.body) == (200, EXECUTED.body)
    assert world.dynamo.calls == ["put_item", "update_item"]
    assert len(world.core.sent) == 1


@pytest.mark.parametrize("operation", ["put_item", "update_item"])
def test_a_lost_reply_of_our_own_write_is_recognised(world: World, operation: str) -> None:
    """The retry meets its own applied write and goes on as the winner."""
    world.dynamo.faults[operation].append(reply_lost)
    reply = world.post()
    assert (reply.status, reply.code) == (200, "0000")
    assert "Idempotent-Replayed" not in reply.headers
    assert len(world.core.sent) == 1
    assert world.held().state is State.DONE
    assert len(world.held().history) == 2


OUTCOMES = [
    pytest.param(Answered(EXECUTED), State.DONE, 200, "0000", id="executed"),
    pytest.param(Answered(REFUSED), State.DONE, 422, "B201", id="refused"),
    pytest.param(NotSent("refused"), State.FAILED, 202, "E902", id="not_sent"),
    pytest.param(Doubt("no_answer", aborted=True), State.UNKNOWN, 504, "E901", id="doubt"),
]


@pytest.mark.parametrize(("outcome", "state", "status", "code"), OUTCOMES)
def test_each_outcome_has_its_state_and_its_answer(
    world: World, outcome: SendOutcome, state: State, status: int, code: str
) -> None:
    """Done, in doubt and not sent are three different things."""
    world.core.outcomes.append(outcome)
    reply = world.post()
    assert (world.held().state, reply.status, reply.code) == (state, status, code)
    asked = document(world.get())
    assert (asked["state"], asked["code"]) == (state, code)


def test_the_row_says_sent_before_the_first_byte_leaves(world: World) -> None:
    """Whoever looks while the core is being called finds the claim, with its times and its core."""
    seen: list[Row] = []
    world.core.during.append(lambda: seen.append(world.held()))
    world.post()
    (row,) = seen
    assert (row.state, row.claim_id, row.attempt) == (State.SENT, "claim-1", 1)
    assert (row.accepted_at, row.sent_at, row.dead_at) == (START_MS, START_MS, START_MS + 25_000)
    assert (row.ask_after, row.due_at) == (START_MS + 90_000, START_MS + 30_000)
    assert (row.core, row.valid_until) == ("core", START_MS + 86_400_000)


def test_a_resend_row_says_sent_before_the_first_byte_leaves(world: World) -> None:
    """A second claim has its own id and its own times; nothing of the first one's stays."""
    world.fail()
    world.clock.advance(100)
    seen: list[Row] = []
    world.core.during.append(lambda: seen.append(world.held()))
    world.post()
    (row,), later_ms = seen, START_MS + 100_000
    assert (row.state, row.attempt, row.accepted_at) == (State.SENT, 2, START_MS)
    assert row.claim_id not in {None, "claim-1"}
    assert (row.sent_at, row.dead_at) == (later_ms, later_ms + 25_000)
    assert (row.ask_after, row.due_at) == (later_ms + 90_000, later_ms + 30_000)
    assert (row.code, row.why) == (None, None)


def test_the_core_gets_the_channels_bytes_and_its_deadline(world: World) -> None:
    """Body, type and operation go as they came, with the moment after which none may leave."""
    headers = {"x-operation": "transfer", "content-type": "application/json; charset=utf-8"}
    world.post(body=b'{ "amount": 1.00 }', headers=headers)
    (sent,) = world.core.sent
    assert (sent.guid, sent.attempt, sent.operation) == ("G-1", 1, "transfer")
    assert (sent.body, sent.content_type) == (b'{ "amount": 1.00 }', headers["content-type"])
    assert (sent.not_after_ms, world.core.within_s) == (START_MS + 20_000, [20.0])


def test_a_killed_relay_leaves_its_row_sent_and_nobody_sends_again(world: World) -> None:
    """The bytes may have left, so every resend is told "in progress" until the row is resolved."""
    row = world.kill()
    assert row.state is State.SENT
    for later_s, retry_after in ((0, "25"), (9.5, "16"), (15.5, "1"), (3600, "1"), (86_400, "1")):
        world.clock.advance(later_s)
        reply = world.post()
        assert (reply.status, reply.code) == (409, "E903")
        assert reply.headers["Retry-After"] == retry_after
    assert len(world.core.sent) == 1
    assert world.held() == row


def test_a_duplicate_of_a_row_in_progress_hears_no_word_of_success(world: World) -> None:
    """E903 says neither done nor failed."""
    world.kill()
    told = document(world.post())
    assert (told["executed"], told["resend"], told["new_guid"]) == ("unknown", "yes", "no")
    assert "not failed, not done" in told["detail"]


def too_late(world: World) -> None:
    """Let the claim's own request take longer than the core may."""
    world.clock.advance(20)


def nearly_too_late(world: World) -> None:
    """Let the claim's own request leave one second of the core's time."""
    world.clock.advance(19)


@pytest.mark.parametrize("write", ["put_item", "update_item"], ids=["claim", "re-claim"])
def test_a_slow_claim_that_ate_the_deadline_sends_nothing(world: World, write: str) -> None:
    """The row becomes FAILED at once: not even a connection is made."""
    if write == "update_item":
        world.fail()
    sent = len(world.core.sent)
    world.dynamo.before[write].append(lambda: too_late(world))
    reply = world.post()
    assert (reply.code, world.held().state, world.held().why) == ("E902", State.FAILED, "not_sent")
    assert len(world.core.sent) == sent


def test_a_claim_that_was_slow_leaves_the_core_the_rest_of_the_time(world: World) -> None:
    """The deadline counts from the clock read before the claim."""
    world.dynamo.before["put_item"].append(lambda: nearly_too_late(world))
    world.post()
    assert world.core.within_s == [1.0]
    assert world.core.sent[0].not_after_ms == START_MS + 20_000


def test_the_call_ends_a_margin_before_the_function_does(world: World) -> None:
    """A resend that had to ask first gives the core what is left, less the margin."""
    world.fail()
    world.edit(doubted=True)
    world.core.findings.append(Finding(Verdict.NOT_FOUND, None, ""))
    world.core.during_ask.append(lambda: world.clock.advance(3))
    world.post()
    assert world.core.within_s[-1] == 18.0
    assert world.core.sent[-1].not_after_ms == START_MS + 21_000

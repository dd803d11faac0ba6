"""The message of an accepted request: it sends what still waits, once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Answered, Doubt, NotSent
from relayhub.states import Event, Hold, State, Why
from tests.maintenance import cancel, events, resolver
from tests.message_events import PREFER, accepted_message, announced, deliver, post_async, sqs_event
from tests.plant import Plant
from tests.world import EXECUTED, REFUSED, START_MS, World, document

MESSAGE = sqs_event(accepted_message())


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


def test_its_message_executes_it_once(world: World) -> None:
    """The bytes of the row, attempt 1; a second delivery finds nothing to do."""
    post_async(world, body=b'{"amount":1.0}')
    event = sqs_event(*announced(world))
    assert deliver(world, event) == []
    (request,) = world.core.sent
    assert (request.guid, request.attempt, request.body) == ("G-1", 1, b'{"amount":1.0}')
    row = world.held()
    assert (row.state, row.code, row.attempt) == (State.DONE, "0000", 1)
    assert events(world) == ["accepted", "claimed", "answered"]
    assert deliver(world, event) == []
    assert len(world.core.sent) == 1
    taken = [facts["taken"] for what, facts in world.notes if what == "message"]
    assert taken == ["recorded", "dropped"]


OUTCOMES: list[Any] = [
    pytest.param(Answered(EXECUTED), "DONE", "0000", id="executed"),
    pytest.param(Answered(REFUSED), "DONE", "B201", id="refused"),
    pytest.param(Doubt("no_answer", aborted=True), "UNKNOWN", "E901", id="doubt"),
    pytest.param(NotSent("connect_refused"), "FAILED", "E902", id="not_sent"),
]


@pytest.mark.parametrize(("outcome", "state", "code"), OUTCOMES)
def test_no_business_outcome_fails_its_message(
    world: World, outcome: Any, state: str, code: str
) -> None:
    """Taken once, and dropped when it comes again, whatever became of it."""
    post_async(world)
    world.core.outcomes.append(outcome)
    for _ in range(2):
        assert deliver(world, MESSAGE) == []
        assert (world.held().state, world.held().code) == (state, code)
    assert len(world.core.sent) == 1
    assert len(world.hints()) == (1 if state == "FAILED" else 0)


def test_a_lost_message_is_made_up_for(plant: Plant) -> None:
    """Overdue after two minutes, FAILED, hinted, sent once; the late message finds it done."""
    post_async(plant)
    plant.inbox.accepted.clear()
    plant.clock.advance(120)
    resolver(plant)
    row = plant.held()
    assert (row.state, row.why, row.attempt) == (State.FAILED, Why.NOT_SENT, 0)
    assert len(plant.inbox.bodies) == 1
    assert deliver(plant, MESSAGE) == []
    assert plant.bank.sends == []
    plant.schedules(2)
    assert (plant.bank.sends, plant.held().code) == ([("G-1", 1)], "0000")
    assert events(plant) == ["accepted", "overdue", "claimed", "answered"]
    assert deliver(plant, MESSAGE) == []
    assert plant.bank.executed == {"G-1": 1}


def test_a_lost_message_is_made_up_for_before_a_short_validity_ends(world: World) -> None:
    """Its row is due half-way to the end, so that there is time to send it."""
    post_async(world, headers={**PREFER, "valid-until": "2027-01-15T08:01:00Z"})
    assert world.held().due_at == START_MS + 30_000


def test_an_acceptance_asks_nothing_of_the_core(world: World) -> None:
    """An unreadable secret stops its message, which comes again, and not the acceptance."""
    world.core.unprepared = True
    assert post_async(world).status == 202
    assert deliver(world, MESSAGE) == ["m-1"]
    assert world.held().state is State.RECEIVED
    world.core.unprepared = False
    assert deliver(world, MESSAGE) == []
    assert world.held().state is State.DONE


def test_a_cancel_before_its_message_ends_it(world: World) -> None:
    """E908 at once, by its channel alone; the message sends nothing."""
    post_async(world)
    assert cancel(world, channel="app").code == "E904"
    told = document(cancel(world))
    assert (told["cancelled"], told["executed"], told["state"]) == (True, "no", "DONE")
    assert deliver(world, MESSAGE) == []
    assert (world.core.sent, world.held().code) == ([], "E908")
    assert post_async(world).code == "E908"


def expire(world: World) -> None:
    """Let the validity end."""
    world.clock.ms = world.held().valid_until or 0


def flag(world: World) -> None:
    """Bear a cancel that has not ended the row yet."""
    world.edit(cancel={"at": START_MS, "by": "atm"})


ENDS: dict[str, Callable[[World], None]] = {"over": expire, "cancelled": flag}


@pytest.mark.parametrize("name", ENDS)
def test_what_is_over_when_its_message_comes_is_not_sent(world: World, name: str) -> None:
    """E908, written by the message; its repeat is told so."""
    post_async(world)
    ENDS[name](world)
    assert deliver(world, MESSAGE) == []
    assert (world.held().state, world.held().code) == (State.DONE, "E908")
    assert (world.core.sent, post_async(world).code) == ([], "E908")


def test_what_is_on_hold_is_not_sent(world: World) -> None:
    """Its message is dropped; its repeat is told E901, since a person looks at it."""
    post_async(world)
    world.move(Event.HELD, by="operator", hold=Hold.OPERATOR)
    before = world.item()
    world.dynamo.calls.clear()
    assert deliver(world, MESSAGE) == []
    assert (world.item(), world.core.sent, world.dynamo.calls) == (before, [], ["get_item"])
    assert post_async(world).code == "E901"


def test_a_newer_versions_row_is_left_alone(world: World) -> None:
    """Its message is dropped by this version; its repeat is told E903, and nothing is written."""
    post_async(world)
    world.edit(schema=2)
    before = world.item()
    world.dynamo.calls.clear()
    assert deliver(world, MESSAGE) == []
    assert (world.core.sent, world.dynamo.calls) == ([], ["get_item"])
    reply = post_async(world)
    assert (reply.status, reply.code, world.item()) == (409, "E903", before)


def test_a_message_without_a_row_is_dropped(world: World) -> None:
    """One read, nothing more."""
    assert deliver(world, MESSAGE) == []
    assert (world.dynamo.calls, world.core.sent, world.row()) == (["get_item"], [], None)

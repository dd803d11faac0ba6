"""An acceptance and its message, with lost replies and others at the same row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.flows.cancel import run as cancel_run
from relayhub.states import Event, Hold, State
from tests.emulated import Fault
from tests.maintenance import NOT_FOUND, cancel, events, reprocessor, resolver
from tests.message_events import (
    PREFER,
    accepted_message,
    again,
    announced,
    deliver,
    post_async,
    sqs_event,
    sqs_message,
)
from tests.plant import Plant, Works
from tests.world import START_MS, World, document, never_arrives, refused, reply_lost

MESSAGE = sqs_event(accepted_message())
THROTTLED = [refused("ThrottlingException")] * 2


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


@pytest.mark.parametrize(
    "faults", [THROTTLED, [refused("AccessDeniedException")]], ids=["throttled", "denied"]
)
def test_an_acceptance_that_the_ledger_refuses_is_not_accepted(
    world: World, faults: list[Fault]
) -> None:
    """E906: no row, and no message of a row that is not there."""
    world.dynamo.faults["put_item"] += faults
    reply = post_async(world)
    assert (reply.status, reply.code) == (503, "E906")
    assert (world.row(), announced(world)) == (None, [])
    assert post_async(world).status == 202


def test_an_acceptance_whose_reply_was_lost_once_is_its_own(world: World) -> None:
    """The retry meets the row that this very acceptance made: 202, one message."""
    world.dynamo.faults["put_item"].append(reply_lost)
    assert post_async(world).status == 202
    assert (len(announced(world)), events(world)) == (1, ["accepted"])


LOST: list[Any] = [
    pytest.param([reply_lost] * 2, True, id="reply_lost"),
    pytest.param([reply_lost, refused("ThrottlingException")], True, id="then_throttled"),
    pytest.param([never_arrives] * 2, False, id="never_arrived"),
    pytest.param([refused("ConditionalCheckFailedException")], False, id="no_item"),
]


@pytest.mark.parametrize(("faults", "stands"), LOST)
def test_an_acceptance_without_an_answer_is_in_doubt(
    plant: Plant, faults: list[Fault], *, stands: bool
) -> None:
    """E901, never E906: if its row stands, the maintenance executes it once, without a message."""
    plant.dynamo.faults["put_item"] += faults
    reply = post_async(plant)
    assert (reply.status, reply.code, document(reply)["executed"]) == (504, "E901", "unknown")
    assert (plant.row() is not None, plant.inbox.accepted) == (stands, [])
    plant.schedules(5)
    assert plant.bank.executed.total() == stands
    assert post_async(plant).status == (200 if stands else 202)


def test_another_request_in_the_same_millisecond_is_never_told_that_it_is_accepted(
    world: World,
) -> None:
    """Its put's reply was lost too: the row that it meets is the other's, whose id tells so."""
    assert post_async(world).status == 202
    before = world.item()
    world.dynamo.faults["put_item"].append(reply_lost)
    reply = world.post(body=b'{"amount":7}', headers=PREFER)
    assert (reply.status, reply.code) == (422, "E904")
    assert (world.item(), len(announced(world))) == (before, 1)


def test_the_same_request_in_the_same_millisecond_is_one(world: World) -> None:
    """Both are told 202, by one row, with one message."""
    first: list[Any] = []
    world.dynamo.before["put_item"].append(lambda: first.append(post_async(world)))
    second = post_async(world)
    assert (first[0].status, second.status, first[0].body) == (202, 202, second.body)
    assert (len(announced(world)), events(world)) == (1, ["accepted"])


def test_a_request_that_waits_in_the_same_millisecond_is_sent_once(world: World) -> None:
    """One put makes the row; the other answers what it says."""
    world.dynamo.before["put_item"].append(lambda: world.post())  # noqa: PLW0108
    assert post_async(world).headers["Idempotent-Replayed"] == "true"
    assert (len(world.core.sent), announced(world)) == (1, [])


def test_a_cancel_before_the_retry_of_an_acceptance_is_told(world: World) -> None:
    """The row was this acceptance's, and is ended: E908, never "in progress"."""
    world.dynamo.faults["put_item"].append(reply_lost)
    world.dynamo.before["put_item"] += [lambda: None, lambda: cancel(world)]
    reply = post_async(world)
    assert (reply.status, reply.code) == (410, "E908")
    assert (world.held().state, announced(world)) == (State.DONE, [])


def test_two_messages_at_once_send_once(plant: Plant) -> None:
    """The second one runs whole at any point of the first one's: one claim goes through."""
    for name in ("get_item", "update_item"):
        plant.start_again()
        post_async(plant)
        others: list[Any] = []
        plant.dynamo.before[name].append(
            lambda seen=others: seen.append(deliver(plant, MESSAGE))  # type: ignore[misc]
        )
        assert deliver(plant, MESSAGE) == []
        assert (others, plant.bank.sends, name) == ([[]], [("G-1", 1)], name)


def hold(works: Works) -> None:
    """Put the row on hold, as a person does."""
    works.move(Event.HELD, by="operator", hold=Hold.OPERATOR)


def fail(works: Works) -> None:
    """Find the row overdue, as the resolver does."""
    works.clock.advance(120)
    resolver(works)


def fail_and_send(works: Works) -> None:
    """Find it overdue, and send it, as the maintenance does."""
    fail(works)
    works.core.findings.append(NOT_FOUND)
    reprocessor(works)


def end_validity(works: Works) -> None:
    """Let its validity be over, after it was read as valid."""
    works.edit(valid_until=START_MS)


def flag(works: Works) -> None:
    """Let it bear a cancel, which changes neither its state nor its claim's id."""
    works.edit(cancel={"at": START_MS, "by": "atm"})


def cancel_it(works: Works) -> None:
    """Cancel it, as its channel does."""
    cancel_run(works.hub, "G-1", "atm")


MEANWHILE: list[Any] = [
    pytest.param(cancel_it, "DONE", 0, id="cancelled"),
    pytest.param(flag, "RECEIVED", 0, id="flagged"),
    pytest.param(hold, "RECEIVED", 0, id="held"),
    pytest.param(end_validity, "RECEIVED", 0, id="over"),
    pytest.param(fail, "FAILED", 0, id="overdue"),
    pytest.param(fail_and_send, "DONE", 1, id="sent_by_the_hub"),
]


@pytest.mark.parametrize(("meanwhile", "state", "sends"), MEANWHILE)
def test_what_comes_between_the_read_and_the_claim_stops_the_claim(
    works: Works, meanwhile: Callable[[Works], None], state: str, sends: int
) -> None:
    """Each stands in the claim's own condition: the message sends nothing, and is taken."""
    post_async(works)
    works.dynamo.before["update_item"].append(lambda: meanwhile(works))
    assert deliver(works, MESSAGE) == []
    assert (works.held().state, len(works.core.sent)) == (state, sends)
    assert [entry["by"] for entry in works.held().history if entry["by"] == "messages"] == []


def test_validity_that_ends_between_the_read_and_the_claim_ends_the_row(works: Works) -> None:
    """Nothing is sent; the resolver tells that it never will be."""
    post_async(works)
    works.dynamo.before["update_item"].append(lambda: end_validity(works))
    deliver(works, MESSAGE)
    fail(works)
    assert (works.held().state, works.held().code, works.core.sent) == ("DONE", "E908", [])


def test_a_message_between_a_cancels_read_and_its_write_is_told(works: Works) -> None:
    """The cancel finds it executed, and does not say otherwise."""
    post_async(works)
    works.dynamo.before["update_item"].append(lambda: deliver(works, MESSAGE))
    told = document(cancel(works))
    assert (told["cancelled"], told["executed"], len(works.core.sent)) == (False, "yes", 1)


def test_a_message_between_the_resolvers_read_and_its_write_is_not_undone(works: Works) -> None:
    """The resolver's step is from RECEIVED only: nothing is FAILED that was sent."""
    post_async(works)
    works.clock.advance(120)
    works.dynamo.before["update_item"].append(lambda: deliver(works, MESSAGE))
    resolver(works)
    assert (works.held().state, len(works.core.sent), works.hints()) == ("DONE", 1, [])


def test_a_message_whose_row_cannot_be_read_comes_again(works: Works) -> None:
    """Refused or without an answer: nobody knows whether the row waits."""
    post_async(works)
    for faults in (THROTTLED, [never_arrives] * 2):
        works.dynamo.faults["get_item"] += faults
        assert deliver(works, MESSAGE) == ["m-1"]
    assert works.core.sent == []
    assert deliver(works, again(MESSAGE, ["m-1"])) == []
    assert len(works.core.sent) == 1


def test_a_message_whose_claim_is_refused_comes_again(works: Works) -> None:
    """It is quicker than the sweep, which would find the row too."""
    post_async(works)
    works.dynamo.faults["update_item"] += THROTTLED
    assert deliver(works, MESSAGE) == ["m-1"]
    assert (works.held().state, works.core.sent) == (State.RECEIVED, [])
    assert deliver(works, MESSAGE) == []
    assert len(works.core.sent) == 1


@pytest.mark.parametrize(
    ("faults", "state"),
    [([reply_lost] * 2, "SENT"), ([never_arrives] * 2, "RECEIVED")],
    ids=["reply_lost", "never_arrived"],
)
def test_a_message_whose_claim_gets_no_answer_is_taken(
    plant: Plant, faults: list[Fault], state: str
) -> None:
    """Its row is there: whatever the claim came to, the maintenance executes it once."""
    post_async(plant)
    plant.dynamo.faults["update_item"] += faults
    assert deliver(plant, MESSAGE) == []
    assert (plant.held().state, plant.bank.sends) == (state, [])
    plant.schedules(6)
    assert (plant.bank.executed, plant.held().code) == ({"G-1": 1}, "0000")


def test_a_claim_whose_reply_was_lost_once_goes_on(works: Works) -> None:
    """The retry meets the row that says SENT under our own claim_id: sent once."""
    post_async(works)
    works.dynamo.faults["update_item"].append(reply_lost)
    assert deliver(works, MESSAGE) == []
    assert (len(works.core.sent), works.held().code) == (1, "0000")


def test_the_same_act_by_the_queue_itself_meets_the_row_that_waits(aws: None) -> None:
    """Under one name for both: taken, not sent a second way; its own message sends it."""
    del aws
    works = Works(channel_names=(("sqs:relayhub-intake", "atm"),))
    post_async(works)
    assert deliver(works, sqs_event(sqs_message())) == []
    assert (works.held().state, works.core.sent) == (State.RECEIVED, [])
    assert deliver(works, MESSAGE) == []
    assert deliver(works, sqs_event(sqs_message())) == []
    assert len(works.core.sent) == 1

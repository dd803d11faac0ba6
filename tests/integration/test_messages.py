"""Messages in: what is taken, what comes again, and that the effect comes once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from relayhub.core import NotSent
from relayhub.states import State
from tests.emulated import Fault
from tests.integration.edges_kit import passes
from tests.maintenance import cancel
from tests.message_events import (
    accepted_message,
    again,
    deliver,
    failed,
    killed,
    put_aside,
    sqs_event,
    sqs_message,
)
from tests.plant import Plant
from tests.world import World, never_arrives, refused, reply_lost

UUID = "5F0C9A3E-1B2D-4C6F-8A7B-0000000000AB"
ONE_NAME = (("atm", "retail"), ("sqs:relayhub-intake", "retail"))


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


def calls(world: World) -> Counter[str]:
    """Return how often the core was called for each GUID."""
    return Counter(request.guid for request in world.core.sent)


def test_of_a_mixed_batch_of_ten_only_what_the_ledger_refused_comes_again(world: World) -> None:
    """A duplicate, a malformed one, one in progress elsewhere, one refused by the ledger."""
    killed(world, "G-5")
    guids = ["G-1", "G-2", "G-1", "G-4", "G-5", "G-6", "G-7", "G-8", "G-9", "G-10"]
    messages = [sqs_message(guid) for guid in guids]
    messages[3] = sqs_message(None, '{"amount":4}', attributes={"x-other": "kept"})
    event = sqs_event(*messages)
    world.dynamo.faults["put_item"] += [passes] * 8 + [refused("ThrottlingException")] * 2
    assert deliver(world, event) == ["m-10"]
    assert calls(world) == dict.fromkeys(["G-1", "G-2", "G-5", "G-6", "G-7", "G-8", "G-9"], 1)
    assert (world.row("G-10"), world.held("G-5").attempt) == (None, 1)
    (aside,) = put_aside(world)
    assert aside["code"] == "E905"
    assert "The GUID is missing" in aside["reason"]
    assert aside["origin"] == {"source": "sqs", "queue": "relayhub-intake", "message_id": "m-4"}
    assert (aside["guid"], aside["body"]) == (None, '{"amount":4}')
    assert aside["headers"] == messages[3]["messageAttributes"]
    assert deliver(world, again(event, ["m-10"])) == []
    assert (calls(world)["G-10"], put_aside(world)) == (1, [])
    taken = Counter(str(facts["taken"]) for what, facts in world.notes if what == "message")
    assert taken == {"recorded": 8 + 1, "rejected": 1, "given_back": 1}


def test_one_malformed_message_of_ten_is_put_aside_and_nine_are_executed(world: World) -> None:
    """It blocks nothing, and the batch does not come again for it."""
    messages = [sqs_message(f"G-{number}") for number in range(1, 11)]
    messages[6] = sqs_message("not a guid")
    assert deliver(world, sqs_event(*messages)) == []
    assert calls(world) == {f"G-{n}": 1 for n in range(1, 11) if n != 7}
    assert [each["origin"]["message_id"] for each in put_aside(world)] == ["m-7"]


@pytest.mark.parametrize("times", [1, 5])
def test_a_done_message_that_is_delivered_again_is_acknowledged(world: World, times: int) -> None:
    """Its delete was lost: one request to the ledger each time, and no call."""
    event = sqs_event(sqs_message())
    deliver(world, event)
    before = world.item()
    world.dynamo.calls.clear()
    for _ in range(times):
        assert deliver(world, event) == []
    assert (world.item(), len(world.core.sent)) == (before, 1)
    assert world.dynamo.calls == ["put_item"] * times


LOST: list[Any] = [
    pytest.param([reply_lost] * 2, True, id="reply_lost"),
    pytest.param([reply_lost, refused("ThrottlingException")], True, id="then_throttled"),
    pytest.param([never_arrives] * 2, False, id="never_arrived"),
    pytest.param([refused("InternalServerError", 500)] * 2, False, id="server_fault"),
    pytest.param([refused("ConditionalCheckFailedException")], False, id="no_item"),
]


@pytest.mark.parametrize(("faults", "stands"), LOST)
def test_a_claim_without_an_answer_is_not_taken_and_executed_once_in_the_end(
    plant: Plant, faults: list[Fault], *, stands: bool
) -> None:
    """It comes again and meets its row, which the maintenance finishes, or none."""
    event = sqs_event(sqs_message())
    plant.dynamo.faults["put_item"] += faults
    assert deliver(plant, event) == ["m-1"]
    assert (plant.row() is not None, plant.bank.sends) == (stands, [])
    assert deliver(plant, event) == []
    assert (plant.held().state is State.SENT, plant.bank.executed.total()) == (stands, not stands)
    plant.schedules(5)
    assert (plant.held().state, plant.held().code) == (State.DONE, "0000")
    assert plant.bank.executed == {"G-1": 1}


def test_a_claim_whose_reply_was_lost_once_goes_on(world: World) -> None:
    """The retry meets the row that says SENT under our own claim_id: taken, executed once."""
    world.dynamo.faults["put_item"].append(reply_lost)
    assert deliver(world, sqs_event(sqs_message())) == []
    assert calls(world) == {"G-1": 1}


REFUSALS: list[Any] = [
    pytest.param(refused("ThrottlingException"), id="throttled"),
    pytest.param(refused("AccessDeniedException"), id="denied"),
]


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_resend_that_the_ledger_refuses_is_taken_all_the_same(world: World, fault: Fault) -> None:
    """The ledger holds the request already; its sweep or its channel goes on."""
    row = failed(world, attributes={"delivery": "interactive"})
    world.dynamo.faults["update_item"] += [fault] * 2
    assert deliver(world, sqs_event(sqs_message())) == []
    assert (world.held(), len(world.core.sent)) == (row, 1)


def test_an_outcome_that_cannot_be_written_is_taken(plant: Plant) -> None:
    """The row says SENT; the resolver finds out that it was executed."""
    plant.dynamo.faults["update_item"] += [never_arrives] * 2
    assert deliver(plant, sqs_event(sqs_message())) == []
    assert plant.held().state is State.SENT
    plant.schedules(4)
    assert (plant.held().code, plant.bank.executed) == ("0000", {"G-1": 1})


def test_an_unreadable_secret_gives_everything_back(world: World) -> None:
    """A call that could not be made is not claimed: not one request to the ledger."""
    world.core.unprepared = True
    event = sqs_event(sqs_message(), accepted_message("G-2"))
    assert deliver(world, event) == ["m-1", "m-2"]
    assert (world.dynamo.calls, world.core.sent) == ([], [])
    world.core.unprepared = False
    assert deliver(world, event) == []


def test_a_fault_of_one_message_harms_no_other(world: World) -> None:
    """Whatever nobody expected: that one comes again, and then meets its row."""

    def break_down() -> None:
        raise RuntimeError("a fault of this call alone")

    world.core.during.append(break_down)
    event = sqs_event(sqs_message("G-1"), sqs_message("G-2"))
    assert deliver(world, event) == ["m-1"]
    assert deliver(world, again(event, ["m-1"])) == []
    assert (world.held("G-1").state, calls(world)) == (State.SENT, {"G-1": 1, "G-2": 1})


def test_too_little_time_for_a_call_gives_the_message_back_untouched(world: World) -> None:
    """Not one request to the ledger; a millisecond more, and it is executed."""
    event = sqs_event(sqs_message(), accepted_message("G-2"), sqs_message(None))
    assert deliver(world, event, left_ms=23_999) == ["m-1", "m-2", "m-3"]
    assert (world.dynamo.calls, put_aside(world), world.core.sent) == ([], [], [])
    assert deliver(world, event, left_ms=24_000) == []
    assert calls(world) == {"G-1": 1}


def test_a_batch_that_takes_longer_than_the_function_lives_gets_on_each_time(
    world: World,
) -> None:
    """Five calls of 20 s in 60 s: two each time, and nothing is begun that would be cut off."""
    world.core.during += [lambda: world.clock.advance(20)] * 5
    event = sqs_event(*(sqs_message(f"G-{number}") for number in range(1, 6)))
    for given_back in (["m-3", "m-4", "m-5"], ["m-5"], []):
        assert deliver(world, event) == given_back
        event = again(event, given_back)
    assert calls(world) == {f"G-{number}": 1 for number in range(1, 6)}
    assert all(world.held(guid).state is State.DONE for guid in calls(world))


def test_a_fifo_queue_stops_at_the_first_that_is_not_taken(world: World) -> None:
    """What follows it is given back untouched, so that the order is kept."""
    event = sqs_event(*(sqs_message(f"G-{n}", queue="payments.fifo") for n in (1, 2, 3)))
    world.dynamo.faults["put_item"] += [passes] + [refused("ThrottlingException")] * 2
    assert deliver(world, event) == ["m-2", "m-3"]
    assert (world.row("G-3"), world.dynamo.calls.count("put_item")) == (None, 3)
    assert deliver(world, again(event, ["m-2", "m-3"])) == []
    assert [request.guid for request in world.core.sent] == ["G-1", "G-2", "G-3"]


def test_a_core_that_is_away_stalls_no_queue(plant: Plant) -> None:
    """All is taken, and not tried again when it comes again; the reprocessor sends each once."""
    guids = [f"G-{number}" for number in range(1, 6)]
    event = sqs_event(*map(sqs_message, guids))
    plant.bank.is_away = True
    assert deliver(plant, event) == []
    assert {plant.held(guid).state for guid in guids} == {State.FAILED}
    assert (len(plant.inbox.bodies), len(plant.bank.connections)) == (5, 5)
    assert deliver(plant, event) == []
    assert (len(plant.inbox.bodies), len(plant.bank.connections)) == (5, 5)
    assert {plant.held(guid).attempt for guid in guids} == {1}
    plant.bank.is_away = False
    plant.schedules(4)
    assert plant.bank.executed == dict.fromkeys(guids, 1)
    assert deliver(plant, event) == []
    assert plant.bank.executed.total() == 5


def test_http_first_and_the_queue_as_the_fallback_are_one_act(make_world: Any) -> None:
    """Where one name stands for both: executed once, whichever was first."""
    world = make_world(channel_names=ONE_NAME)
    world.post("G-1")
    assert deliver(world, sqs_event(sqs_message("G-1"), sqs_message("G-2"))) == []
    assert world.post("G-2").headers["Idempotent-Replayed"] == "true"
    assert (calls(world), put_aside(world)) == ({"G-1": 1, "G-2": 1}, [])
    assert world.held("G-2").channel == "retail"


def test_without_one_name_a_queue_is_a_channel_of_its_own(world: World) -> None:
    """The GUID belongs to the other's request: E904, put aside, and nothing is executed."""
    world.post("G-1")
    before = world.item()
    assert deliver(world, sqs_event(sqs_message("G-1"))) == []
    (aside,) = put_aside(world)
    assert (aside["code"], aside["guid"]) == ("E904", "G-1")
    assert (world.item(), calls(world)) == (before, {"G-1": 1})


def test_a_queues_message_can_be_cancelled_by_http_under_one_name(make_world: Any) -> None:
    """The same name for both makes one channel of them, for every call."""
    world = make_world(channel_names=ONE_NAME)
    failed(world)
    assert cancel(world).code == "E908"
    assert (deliver(world, sqs_event(sqs_message())), calls(world)) == ([], {"G-1": 1})


def test_a_guid_is_one_in_either_case(world: World) -> None:
    """A UUID that is spelt otherwise in the second message is no new act."""
    event = sqs_event(sqs_message(UUID), sqs_message(UUID.lower()), sqs_message(UUID.lower()))
    assert deliver(world, event) == []
    assert calls(world) == {UUID.lower(): 1}


def test_the_bytes_and_the_operation_go_to_the_core_as_the_message_has_them(
    make_world: Any,
) -> None:
    """The body's text unchanged, its type, and the operation of its source."""
    world = make_world(source_operations=(("sqs:relayhub-intake", "transfer"),))
    body = '{ "amount": 1.0,  "text": "größe" }'
    sent_type = "application/json; charset=utf-8"
    named: dict[str, str | bytes] = {
        "Idempotency-Key": "G-1",
        "content-type": sent_type,
        "X-Operation": b"transfer",
    }
    message = sqs_message(None, body, attributes=named)
    assert deliver(world, sqs_event(message)) == []
    (request,) = world.core.sent
    assert (request.body, request.operation) == (body.encode(), "transfer")
    assert (request.content_type, request.attempt) == (sent_type, 1)


def test_an_interactive_message_that_was_not_sent_is_not_sent_later(plant: Plant) -> None:
    """It is taken; the hub never sends it by itself."""
    plant.bank.is_away = True
    interactive = sqs_message(attributes={"delivery": "interactive"})
    assert deliver(plant, sqs_event(interactive)) == []
    plant.bank.is_away = False
    plant.schedules(4)
    assert (plant.held().code, plant.bank.sends, plant.inbox.bodies) == ("E908", [], [])


def test_a_hint_that_cannot_be_sent_is_made_up_for_by_the_sweep(world: World) -> None:
    """The message is taken all the same."""
    world.sqs.faults["send_message"].append(refused("InternalError", 500))
    world.core.outcomes.append(NotSent("connect_refused"))
    assert deliver(world, sqs_event(sqs_message())) == []
    assert (world.noted("hint_lost"), world.held().state) == (1, State.FAILED)

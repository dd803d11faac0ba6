"""Kafka records in: each partition in order, whole batches or parts, and what order costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from functions.relay.messages import NotTakenError
from relayhub.core import Answered, Doubt, NotSent
from relayhub.message import Answer
from relayhub.states import State
from tests.emulated import Fault
from tests.integration.edges_kit import passes
from tests.message_events import (
    TOPIC,
    deliver,
    is_taken,
    kafka_event,
    kafka_record,
    killed,
)
from tests.plant import Plant
from tests.world import EXECUTED, World, never_arrives, refused, reply_lost

THROTTLED = [refused("ThrottlingException")] * 2
TWO = kafka_event(
    [kafka_record(f"G-{number}") for number in (1, 2, 3)],
    [kafka_record(f"H-{number}") for number in (1, 2)],
    first=7,
)


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


@pytest.fixture
def in_parts(make_world: Callable[..., World]) -> World:
    """Return a hub whose Kafka source takes partial answers."""
    return make_world(kafka_partial_batches=True)


def sent(world: World) -> list[str]:
    """Return the GUIDs that the core was called for, in order."""
    return [request.guid for request in world.core.sent]


def place(partition: int, offset: int) -> dict[str, Any]:
    """Return the identifier of a record in a partial answer."""
    return {"partition": f"{TOPIC}-{partition}", "offset": offset}


@pytest.mark.parametrize("source", ["SelfManagedKafka", "aws:kafka"])
@pytest.mark.parametrize("parts", [False, True], ids=["whole", "parts"])
def test_a_batch_that_is_all_taken_has_no_failures(
    make_world: Callable[..., World], source: str, *, parts: bool
) -> None:
    """Each partition in its order; an empty list, and nothing else, says so."""
    world = make_world(kafka_partial_batches=parts)
    event = kafka_event([kafka_record("G-1"), kafka_record("G-2")], source=source)
    assert deliver(world, event) == []
    assert (sent(world), world.held().channel) == (["G-1", "G-2"], f"kafka:{TOPIC}")


def test_a_batch_of_which_one_is_not_taken_comes_again_whole(world: World) -> None:
    """The partition stops there, untouched; the other partitions go on; then all is once."""
    world.dynamo.faults["put_item"] += [passes, *THROTTLED]
    with pytest.raises(NotTakenError, match=r"2 of 5 records come again.*'offset': 8"):
        deliver(world, TWO)
    assert sent(world) == ["G-1", "H-1", "H-2"]
    keys = [request.get("Item", {}).get("guid") for request in world.dynamo.requests]
    assert {"S": "G-3"} not in keys
    assert (world.row("G-2"), world.row("G-3")) == (None, None)
    assert deliver(world, TWO) == []
    assert sent(world) == ["G-1", "H-1", "H-2", "G-2", "G-3"]


def test_a_partial_answer_names_every_record_that_was_not_taken(in_parts: World) -> None:
    """The one that was not taken, and each untouched one after it in its partition."""
    in_parts.dynamo.faults["put_item"] += [passes, *THROTTLED]
    assert deliver(in_parts, TWO) == [place(0, 8), place(0, 9)]
    assert sent(in_parts) == ["G-1", "H-1", "H-2"]
    assert in_parts.dynamo.calls.count("put_item") == 1 + 2 + 2


LOST: list[Any] = [
    pytest.param(THROTTLED, id="throttled"),
    pytest.param([reply_lost] * 2, id="reply_lost"),
    pytest.param([never_arrives] * 2, id="never_arrived"),
]


@pytest.mark.parametrize("faults", LOST)
def test_an_answer_is_never_empty_where_something_failed(
    in_parts: World, faults: list[Fault]
) -> None:
    """In parts it is listed; whole, the batch fails."""
    event = kafka_event([kafka_record()])
    in_parts.dynamo.faults["put_item"] += faults
    assert deliver(in_parts, event) == [place(0, 0)]
    in_parts.deploy(kafka_partial_batches=False)
    in_parts.dynamo.faults["put_item"] += faults
    with pytest.raises(NotTakenError):
        deliver(in_parts, kafka_event([kafka_record("G-2")]))


def test_a_claim_whose_reply_was_lost_stops_its_partition_and_not_for_long(
    plant: Plant,
) -> None:
    """The next delivery meets its row, takes it, and goes on behind it."""
    plant.dynamo.faults["put_item"] += [reply_lost] * 2
    assert not is_taken(plant, TWO)
    assert (plant.held().state, plant.row("G-2")) == (State.SENT, None)
    assert is_taken(plant, TWO)
    plant.schedules(5)
    assert plant.bank.executed == dict.fromkeys(["G-1", "G-2", "G-3", "H-1", "H-2"], 1)


@pytest.mark.parametrize("parts", [False, True], ids=["whole", "parts"])
def test_a_dead_holder_never_blocks_a_partition(
    make_world: Callable[..., World], *, parts: bool
) -> None:
    """A row that is SENT by a function that was killed is the maintenance's: taken."""
    world = make_world(
        kafka_partial_batches=parts,
        channel_names=(("sqs:relayhub-intake", "one"), (f"kafka:{TOPIC}", "one")),
    )
    killed(world, "G-1")
    assert deliver(world, TWO) == []
    assert (sent(world).count("G-1"), world.held("G-1").state) == (1, State.SENT)


def test_a_batch_without_the_time_for_a_call_comes_again_untouched(world: World) -> None:
    """Not one request to the ledger."""
    with pytest.raises(NotTakenError, match="5 of 5"):
        deliver(world, TWO, left_ms=23_999)
    assert (world.dynamo.calls, world.core.sent) == ([], [])


def test_a_batch_that_takes_longer_than_the_function_lives_gets_on_each_time(
    world: World,
) -> None:
    """Five calls of 20 s in 60 s, whole batches: what is done costs no time the next time."""
    world.core.during += [lambda: world.clock.advance(20)] * 5
    event = kafka_event([kafka_record(f"G-{number}") for number in range(1, 6)])
    for count, is_whole in ((2, False), (4, False), (5, True)):
        assert (is_taken(world, event), len(world.core.sent)) == (is_whole, count)
    assert sent(world) == [f"G-{number}" for number in range(1, 6)]


def test_a_core_that_is_away_stalls_no_partition(plant: Plant) -> None:
    """All is taken at once, and not tried again when the batch comes again."""
    plant.bank.is_away = True
    assert is_taken(plant, TWO)
    assert (len(plant.inbox.bodies), len(plant.bank.connections)) == (5, 5)
    assert is_taken(plant, TWO)
    assert (len(plant.inbox.bodies), len(plant.bank.connections)) == (5, 5)
    plant.bank.is_away = False
    plant.schedules(4)
    assert plant.bank.executed == dict.fromkeys(["G-1", "G-2", "G-3", "H-1", "H-2"], 1)


def test_a_core_that_hangs_for_a_batch_gets_on_each_time(world: World) -> None:
    """A doubt is taken as well: its row is there, and its successors are not held up by it."""
    world.core.during += [lambda: world.clock.advance(20)] * 5
    world.core.outcomes += [Doubt("answer_timeout", aborted=True)] * 5
    event = kafka_event([kafka_record(f"G-{number}") for number in range(1, 6)])
    assert [is_taken(world, event) for _ in range(3)] == [False, False, True]
    assert sent(world) == [f"G-{number}" for number in range(1, 6)]


def test_order_within_a_key_is_not_kept_across_one_that_is_sent_later(plant: Plant) -> None:
    """The first is not sent, the second is executed, the first is sent after it: counted."""
    first, second = kafka_record("r-1", key=b"K"), kafka_record("r-2", key=b"K")
    plant.bank.is_away = True
    assert is_taken(plant, kafka_event([first]))
    plant.bank.is_away = False
    assert is_taken(plant, kafka_event([second], first=1))
    plant.schedules(3)
    assert plant.bank.sends == [("r-2", 1), ("r-1", 2)]
    assert plant.bank.executed == {"r-1": 1, "r-2": 1}
    (facts,) = [facts for what, facts in plant.notes if what == "order_at_risk"]
    origin = {"source": "kafka", "topic": TOPIC, "partition": 0, "offset": 0}
    assert facts == {"guid": "r-1", **origin}


INTERACTIVE = (("delivery", b"interactive"),)
KINDS: list[Any] = [
    pytest.param(NotSent("connect_refused"), {}, 1, id="sent_later"),
    pytest.param(NotSent("connect_refused"), {"key": None}, 0, id="no_key"),
    pytest.param(NotSent("connect_refused"), {"headers": INTERACTIVE}, 0, id="never_by_the_hub"),
    pytest.param(Answered(EXECUTED), {}, 0, id="executed"),
    pytest.param(Answered(Answer(202, "text/plain", b"", "0000")), {}, 0, id="executed_by_202"),
]


@pytest.mark.parametrize(("outcome", "more", "count"), KINDS)
def test_order_is_at_risk_only_where_a_key_has_it_and_the_hub_sends_later(
    world: World, outcome: Any, more: dict[str, Any], count: int
) -> None:
    """Whatever the core's own status is."""
    world.core.outcomes.append(outcome)
    assert is_taken(world, kafka_event([kafka_record(**more)]))
    assert world.noted("order_at_risk") == count


def test_finished_offsets_that_come_again_are_not_executed_again(plant: Plant) -> None:
    """Of seven records the fourth was still running when the group was rebalanced."""
    records = [kafka_record(f"r-{number}") for number in range(1, 8)]
    assert is_taken(plant, kafka_event(records[:3]))
    assert is_taken(plant, kafka_event(records[4:], first=4))

    def fourth() -> None:
        is_taken(plant, kafka_event(records[3:4], first=3))

    assert plant.killed(fourth, 4)
    assert plant.held("r-4").state is State.SENT
    assert is_taken(plant, kafka_event(records[3:], first=3))
    plant.schedules(5)
    assert plant.bank.executed == {f"r-{number}": 1 for number in range(1, 8)}


def test_a_topic_of_payments_pays_each_once_whatever_was_sent_again(plant: Plant) -> None:
    """Sent again for want of an acknowledgement, and read again from the beginning."""
    topic = [kafka_record("r-1001"), kafka_record("r-1001"), kafka_record("r-1002")]
    for _ in range(3):
        assert is_taken(plant, kafka_event(topic))
    assert plant.bank.executed == {"r-1001": 1, "r-1002": 1}
    assert (plant.inbox.rejected, len(plant.bank.sends)) == ([], 2)

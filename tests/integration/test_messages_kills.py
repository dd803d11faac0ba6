"""The message function killed at every single call: nothing is lost, nothing executed twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relayhub.states import State
from tests.message_events import (
    Event,
    accepted_message,
    deliver,
    is_taken,
    kafka_event,
    kafka_record,
    sqs_event,
    sqs_message,
)
from tests.plant import Plant

GUIDS = ["G-1", "G-2", "G-3"]
EVENTS: dict[str, Event] = {
    "sqs": sqs_event(*map(sqs_message, GUIDS)),
    "kafka": kafka_event([kafka_record(guid) for guid in GUIDS]),
    "kafka_partitions": kafka_event(
        [kafka_record("G-1"), kafka_record("G-2")], [kafka_record("G-3")]
    ),
}
MIXED: dict[str, Event] = {
    "sqs": sqs_event(sqs_message("G-1"), sqs_message(None), sqs_message("G-2"), sqs_message("G-1")),
    "kafka": kafka_event([kafka_record(guid) for guid in ("G-1", None, "G-2", "G-1")]),
}


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


def at_each_call(
    plant: Plant,
    event: Event,
    begin: Callable[[], None],
    check: Callable[[], None],
    *,
    minutes: int = 4,
) -> int:
    """Kill the function before each of its calls in turn, redeliver, maintain, check; count."""
    for at in range(1, 50):
        plant.start_again()
        begin()
        if not plant.killed(lambda: deliver(plant, event), at):
            return at - 1
        redeliver(plant, event)
        plant.schedules(minutes)
        check()
    raise AssertionError("more calls than a batch of three can make")


def redeliver(plant: Plant, event: Event) -> None:
    """Hand the event over until it is taken, as its source does."""
    for _ in range(5):
        if is_taken(plant, event):
            return
        plant.clock.advance(30)
    raise AssertionError("not taken after five deliveries")


@pytest.mark.parametrize("name", EVENTS)
def test_a_batch_whose_function_is_killed_at_any_call_is_executed_once(
    plant: Plant, name: str
) -> None:
    """Before the secret, the claim, the call, the write of the outcome of each of the three."""

    def check() -> None:
        assert plant.bank.executed == dict.fromkeys(GUIDS, 1)
        assert len(plant.bank.sends) == 3
        states = {guid: (row.state, row.code) for guid, row in plant.rows().items()}
        assert states == dict.fromkeys(GUIDS, (State.DONE, "0000"))

    assert at_each_call(plant, EVENTS[name], lambda: None, check) == 3 * 4


@pytest.mark.parametrize("name", MIXED)
def test_a_batch_with_a_malformed_record_and_a_duplicate_is_killed_at_any_call(
    plant: Plant, name: str
) -> None:
    """The malformed one is put aside at least once, and never lost."""

    def check() -> None:
        assert plant.bank.executed == {"G-1": 1, "G-2": 1}
        assert len(plant.inbox.rejected) in {1, 2}
        assert set(plant.rows()) == {"G-1", "G-2"}

    assert at_each_call(plant, MIXED[name], lambda: None, check) == 2 * 4 + 1 + 2


@pytest.mark.parametrize("name", ["sqs", "kafka"])
def test_a_batch_that_met_a_core_that_was_away_is_killed_at_any_call(
    plant: Plant, name: str
) -> None:
    """Not sent, hinted or not: each is executed once when the core is back."""

    def begin() -> None:
        plant.bank.is_away = True

    def check() -> None:
        plant.bank.is_away = False
        plant.schedules(4)
        assert plant.bank.executed == dict.fromkeys(GUIDS, 1)
        assert len(plant.bank.sends) == 3

    assert at_each_call(plant, EVENTS[name], begin, check, minutes=1) == 3 * 5


@pytest.mark.parametrize("begins_after_ms", [1_000, 55_000])
def test_a_batch_that_the_core_reads_late_is_killed_at_any_call(
    plant: Plant, begins_after_ms: int
) -> None:
    """The core executes after the function's end, as late as it may: still once."""

    def begin() -> None:
        plant.bank.begins_after_ms = begins_after_ms

    def check() -> None:
        assert plant.bank.executed == dict.fromkeys(GUIDS, 1)
        assert len(plant.bank.sends) == 3

    assert at_each_call(plant, EVENTS["sqs"], begin, check, minutes=5) == 3 * 4


def test_a_function_that_is_killed_again_and_again_gets_on_all_the_same(plant: Plant) -> None:
    """Each delivery dies a call later than the one before; every GUID is executed once."""
    for at in range(1, 14):
        plant.killed(lambda: deliver(plant, EVENTS["kafka"]), at)
        plant.schedules(1)
    redeliver(plant, EVENTS["kafka"])
    plant.schedules(5)
    assert plant.bank.executed == dict.fromkeys(GUIDS, 1)
    assert len(plant.bank.sends) == 3


def test_two_functions_with_the_same_batch_execute_each_once(plant: Plant) -> None:
    """The second one runs whole at any point of the first one's: one claim goes through."""
    for name, skip in (("put_item", 0), ("put_item", 1), ("update_item", 0), ("update_item", 2)):
        plant.start_again()
        others: list[bool] = []
        plant.dynamo.before[name] += [
            *[lambda: None] * skip,
            lambda seen=others: seen.append(is_taken(plant, EVENTS["kafka"])),  # type: ignore[misc]
        ]
        assert is_taken(plant, EVENTS["kafka"])
        plant.schedules(3)
        assert (others, plant.bank.executed) == ([True], dict.fromkeys(GUIDS, 1))
        assert len(plant.bank.sends) == 3


def test_an_accepted_requests_message_killed_at_any_call_is_executed_once(plant: Plant) -> None:
    """Before the secret, the read, the claim, the call, the write of the outcome."""

    def begin() -> None:
        assert plant.post(headers={"prefer": "respond-async"}).status == 202

    def check() -> None:
        assert plant.bank.executed == {"G-1": 1}
        assert (len(plant.bank.sends), plant.held().state) == (1, State.DONE)

    assert at_each_call(plant, sqs_event(accepted_message()), begin, check) == 5


def test_an_acceptance_killed_at_any_call_is_forgotten_or_executed_once(plant: Plant) -> None:
    """Before its row nothing is known of it; after its row its message or the sweep goes on."""
    ends = []
    for at in (1, 2):
        plant.start_again()
        assert plant.killed(lambda: plant.post(headers={"prefer": "respond-async"}), at)
        plant.schedules(4)
        ends.append((plant.row() is not None, plant.bank.executed.total()))
    assert ends == [(False, 0), (True, 1)]
    assert not plant.killed(lambda: plant.post("G-2", headers={"prefer": "respond-async"}), 3)

"""The stand-in for Lambda's Kafka event source, in process, before a real broker."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from local.kafka_broker import Broker, running_broker
from tests.integration.kafka_kit import (
    PARTITIONS,
    WITHIN_S,
    FakeLambda,
    FunctionFaultError,
    committed,
    needs_broker,
    produce,
    send,
    source,
    until,
)

pytestmark = needs_broker

FIVE = ["m0", "m1", "m2", "m3", "m4"]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run one broker for the module."""
    with running_broker({}, log=tmp_path_factory.mktemp("kafka") / "broker.log") as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    """Make a topic for the test, and return its name."""
    name = f"topic{next(NUMBERS)}"
    broker.create_topics({name: PARTITIONS})
    return name


def failing(times: float, fault: Exception) -> Callable[[dict[str, Any]], None]:
    """Return a function that fails so often, then succeeds."""
    calls = itertools.count()

    def function(_: dict[str, Any]) -> None:
        if next(calls) < times:
            raise fault

    return function


def failed(*places: tuple[str, int]) -> dict[str, Any]:
    """Return a partial answer: partition and offset of what was not taken."""
    named = [{"partition": name, "offset": offset} for name, offset in places]
    return {"batchItemFailures": [{"itemIdentifier": each} for each in named]}


def test_an_offset_is_committed_after_the_function_has_returned(broker: Broker, topic: str) -> None:
    """While the function is at it nothing is committed; afterwards all of the batch."""
    seen: list[int | None] = []
    client = FakeLambda(lambda _: seen.append(committed(broker, topic)[0]))
    produce(broker, topic, FIVE)
    with source(broker, topic, client, batch=5) as log:
        assert until(log.batches)
    assert seen == [None]
    assert committed(broker, topic) == [5, None]
    (batch,) = log.batches()
    assert batch["offsets"] == {f"{topic}-0": [0, 1, 2, 3, 4]}
    assert (batch["outcome"], batch["committed"]) == ("taken", {f"{topic}-0": 5})


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(FunctionFaultError("not taken"), id="exception"),
        pytest.param(
            ClientError({"Error": {"Code": "TooManyRequestsException"}}, "Invoke"), id="throttle"
        ),
        pytest.param(ClientError({"Error": {"Code": "ServiceException"}}, "Invoke"), id="5xx"),
        pytest.param(ReadTimeoutError(endpoint_url="http://127.0.0.1"), id="no-answer"),
    ],
)
def test_a_failed_batch_comes_again_as_it_was(broker: Broker, topic: str, fault: Exception) -> None:
    """The same records in the same order, until they are taken; what came after waits."""
    client = FakeLambda(failing(3, fault))
    produce(broker, topic, FIVE[:2])
    with source(broker, topic, client, batch=2, back_off_s=0.1) as log:
        assert until(log.batches)
        produce(broker, topic, FIVE[2:4])
        assert until(lambda: committed(broker, topic)[0] == 4)
    first, second = {f"{topic}-0": [0, 1]}, {f"{topic}-0": [2, 3]}
    assert client.offsets() == [first] * 4 + [second]
    assert client.events[0] == client.events[3]
    done = [{f"{topic}-0": 2}, {f"{topic}-0": 4}]
    assert [each["committed"] for each in log.batches()] == [{}, {}, {}, *done]
    assert [each["attempt"] for each in log.batches()] == [1, 2, 3, 4, 1]


def test_what_was_not_taken_is_left_to_the_next_member(broker: Broker, topic: str) -> None:
    """A source that is ended while its batch fails has committed nothing of it."""
    client = FakeLambda(failing(float("inf"), FunctionFaultError("never")))
    produce(broker, topic, FIVE)
    with source(broker, topic, client) as log:
        assert until(lambda: len(log.batches()) > 2)
    assert committed(broker, topic) == [None, None]
    after = FakeLambda()
    with source(broker, topic, after):
        assert until(lambda: after.events)
    assert after.offsets() == [{f"{topic}-0": [0, 1, 2, 3, 4]}]


def test_a_partial_answer_commits_up_to_each_partitions_first_failure(
    broker: Broker, topic: str
) -> None:
    """And reads on from there: what failed and what stood after it, before what is new."""
    zero, one = f"{topic}-0", f"{topic}-1"
    answers = iter([failed((zero, 4), (zero, 3), (one, 1))])
    client = FakeLambda(lambda _: next(answers, failed()))
    produce(broker, topic, FIVE)
    produce(broker, topic, FIVE[:2], partition=1)
    with source(broker, topic, client, partial=True, batch=7, window_s=1) as log:
        assert until(lambda: committed(broker, topic) == [5, 2])
    first, second = log.batches()
    assert first["offsets"] == {zero: [0, 1, 2, 3, 4], one: [0, 1]}
    assert (first["outcome"], first["committed"]) == ("partly taken", {zero: 3, one: 1})
    assert second["offsets"] == {zero: [3, 4], one: [1]}
    assert second["committed"] == {zero: 5, one: 2}


def test_after_a_partial_answer_nothing_is_overtaken(broker: Broker, topic: str) -> None:
    """What failed comes before what was read after it, and the next batch is a full one."""
    name = f"{topic}-0"
    answers = iter([None, failed((name, 4))])
    client = FakeLambda(lambda _: next(answers, None))
    produce(broker, topic, FIVE + FIVE)
    with source(broker, topic, client, partial=True, batch=3):
        assert until(lambda: committed(broker, topic)[0] == 10)
    read = [each[name] for each in client.offsets()]
    assert read == [[0, 1, 2], [3, 4, 5], [4, 5, 6], [7, 8, 9]]


def test_without_the_setting_the_answer_is_not_read(broker: Broker, topic: str) -> None:
    """As on the platform: batchItemFailures means nothing unless the source has it on."""
    client = FakeLambda(lambda _: failed((f"{topic}-0", 0)))
    produce(broker, topic, FIVE)
    with source(broker, topic, client):
        assert until(lambda: committed(broker, topic)[0] == 5)
    assert len(client.events) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(failed(("other-0", 0)), id="unknown-partition"),
        pytest.param(failed(("", 77)), id="unknown-offset"),
        pytest.param({"batchItemFailures": [{"itemIdentifier": None}]}, id="null"),
        pytest.param(b"no json", id="no-json"),
    ],
)
def test_a_malformed_answer_brings_the_whole_batch_again(
    broker: Broker, topic: str, answer: Any
) -> None:
    """A failure that cannot be found in the batch may be any of its records."""
    answers = iter([answer])
    client = FakeLambda(lambda _: next(answers, None))
    produce(broker, topic, FIVE[:2])
    with source(broker, topic, client, partial=True) as log:
        assert until(lambda: committed(broker, topic)[0] == 2)
    assert client.offsets() == [{f"{topic}-0": [0, 1]}] * 2
    assert "malformed answer" in log.batches()[0]["reason"]


def test_records_arrive_in_the_true_shape(broker: Broker, topic: str) -> None:
    """Null key, tombstone, a key that is no text, a header twice, one that is no UTF-8."""
    odd: list[dict[str, Any]] = [
        {"key": None, "value": b"v"},
        {"key": b"k", "value": None},
        {"key": b"\xff\xfe", "value": b"", "timestamp": 1_700_000_000_000},
        {"key": b"k", "value": b"v", "headers": [("h", b"a"), ("h", b"\xff\x80"), ("n", None)]},
    ]
    client = FakeLambda()
    send(broker, topic, odd)
    with source(broker, topic, client):
        assert until(lambda: client.events)
    (event,) = client.events
    assert event["eventSource"] == "SelfManagedKafka"
    assert event["bootstrapServers"] == broker.bootstrap
    records = event["records"][f"{topic}-0"]
    assert [each["offset"] for each in records] == [0, 1, 2, 3]
    assert [(each["key"], each["value"]) for each in records] == [
        (None, "dg=="),
        ("aw==", None),
        ("//4=", ""),
        ("aw==", "dg=="),
    ]
    assert {each["timestampType"] for each in records} == {"CREATE_TIME"}
    assert records[2]["timestamp"] == 1_700_000_000_000
    assert records[3]["headers"] == [{"h": [97]}, {"h": [-1, -128]}, {"n": None}]
    assert records[0]["headers"] == []


def test_a_topic_is_read_again_from_its_beginning(broker: Broker, topic: str) -> None:
    """A new reading begins at the first record whatever was committed, and commits as it goes."""
    client = FakeLambda()
    produce(broker, topic, FIVE)
    with source(broker, topic, client):
        assert until(lambda: committed(broker, topic)[0] == 5)
    with source(broker, topic, client, from_beginning=True, batch=2):
        assert until(lambda: len(client.events) == 4)
        assert until(lambda: committed(broker, topic)[0] == 5)
    read = [0, 1, 2, 3, 4]
    assert client.offsets() == [{f"{topic}-0": each} for each in (read, [0, 1], [2, 3], [4])]


def test_a_long_failure_holds_the_reading_back_and_skips_nothing(
    broker: Broker, topic: str
) -> None:
    """With more in the log than is kept at hand, all of it comes once the function succeeds."""
    client = FakeLambda(failing(5, FunctionFaultError("not yet")))
    produce(broker, topic, [f"m{number}" for number in range(2_500)])
    with source(broker, topic, client, batch=500) as log:
        assert until(lambda: committed(broker, topic)[0] == 2_500)
    taken = [each["offsets"][f"{topic}-0"] for each in log.batches() if each["outcome"] == "taken"]
    assert list(itertools.chain.from_iterable(taken)) == list(range(2_500))


def test_a_member_commits_nothing_that_went_to_another_meanwhile(
    broker: Broker, topic: str
) -> None:
    """Its call was long, and the group has divided the partitions anew: the new owner reads on.

    Nobody polls during a call, so the first member hears of it when its call is over. It drops all
    that it had read, and what it is given back it reads from the last commit, like the other.
    """
    entered, leave, calls = threading.Event(), threading.Event(), itertools.count()

    def slow(_: dict[str, Any]) -> None:
        if next(calls) == 1:
            entered.set()
            assert leave.wait(WITHIN_S)

    first, second = FakeLambda(slow), FakeLambda()
    for partition in range(PARTITIONS):
        produce(broker, topic, FIVE, partition=partition)
    with source(broker, topic, first, batch=2) as mine:
        assert entered.wait(WITHIN_S)
        with source(broker, topic, second) as other:
            # The broker waits for the first to join anew; a heartbeat has told its client.
            assert not until(other.owned, within_s=1.5)
            leave.set()
            assert until(lambda: len(mine.owned()) == len(other.owned()) == 1)
            assert mine.batches()[1]["committed"] == {}
            assert until(lambda: committed(broker, topic) == [5, 5])
            begins = mine.batches()[0]["committed"]
            for log, calls_of in ((mine, first.offsets()[2:]), (other, second.offsets())):
                (name,) = log.owned()
                assert flat(calls_of) == [(name, each) for each in range(begins.get(name, 0), 5)]


def test_a_failing_batch_goes_with_its_partition(broker: Broker, topic: str) -> None:
    """Who has lost a partition does not go on trying its records; the new owner reads them."""
    first = FakeLambda(failing(float("inf"), FunctionFaultError("never")))
    second = FakeLambda()
    for partition in range(PARTITIONS):
        produce(broker, topic, FIVE, partition=partition)
    with source(broker, topic, first, window_s=1) as mine:
        assert until(lambda: len(first.events) > 1)
        with source(broker, topic, second) as other:
            assert until(lambda: len(mine.owned()) == len(other.owned()) == 1)
            before = len(first.events)
            assert until(lambda: len(first.events) > before + 3)
            assert {name for name, _ in flat(first.offsets()[before + 1 :])} == mine.owned()
            assert until(lambda: second.events)
            assert {name for name, _ in flat(second.offsets())} == other.owned()


def test_a_partition_that_was_held_back_and_comes_back_is_read(broker: Broker, topic: str) -> None:
    """The client keeps a pause for partitions that were lost meanwhile: it is taken off again."""
    may_succeed = threading.Event()

    def function(_: dict[str, Any]) -> None:
        if not may_succeed.is_set():
            raise FunctionFaultError("not yet")

    first = FakeLambda(function)
    second = FakeLambda(failing(float("inf"), FunctionFaultError("never")))
    for partition in range(PARTITIONS):
        produce(broker, topic, [f"m{number}" for number in range(1_500)], partition=partition)
    with source(broker, topic, first, batch=500) as mine:
        assert until(lambda: len(first.events) > 15)  # By now it holds back.
        with source(broker, topic, second) as other:
            assert until(lambda: len(mine.owned()) == len(other.owned()) == 1)
            may_succeed.set()
            assert until(lambda: 1_500 in committed(broker, topic))
        assert until(lambda: committed(broker, topic) == [1_500, 1_500])


def test_a_new_reading_begins_once(broker: Broker, topic: str) -> None:
    """A rebalance in the middle of it does not send the reader back to the beginning."""
    client, other = FakeLambda(), FakeLambda()
    for partition in range(PARTITIONS):
        produce(broker, topic, FIVE, partition=partition)
    with source(broker, topic, client, from_beginning=True) as log:
        assert until(lambda: committed(broker, topic) == [5, 5])
        with source(broker, topic, other) as its:
            assert until(lambda: len(log.owned()) == len(its.owned()) == 1)
        assert until(lambda: len(log.owned()) == PARTITIONS)
        for partition in range(PARTITIONS):
            produce(broker, topic, ["new"], partition=partition)
        assert until(lambda: committed(broker, topic) == [6, 6])
    assert len(flat(client.offsets())) == 2 * len(FIVE) + PARTITIONS
    assert other.events == []


def flat(calls: list[dict[str, list[int]]]) -> list[tuple[str, int]]:
    """Return partition and offset of every record of the calls, in their order."""
    return [
        (name, offset) for call in calls for name, offsets in call.items() for offset in offsets
    ]

"""The Kafka source and the naive consumer as processes: ended in order, killed, frozen."""

from __future__ import annotations

import itertools
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.core_client import CoreProcess
from local.kafka_broker import Broker, running_broker
from local.kafka_source import lambda_client
from tests.integration.kafka_kit import (
    PARTITIONS,
    WITHIN_S,
    FakeLambda,
    committed,
    lambda_server,
    needs_broker,
    process,
    produce,
    send,
    source,
    until,
)
from tests.integration.local_core_wire import TRANSFER

pytestmark = needs_broker

SOURCE, NAIVE = "local.kafka_source", "local.kafka_naive"
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


def to(endpoint: str, *options: str) -> list[str]:
    """Return the options of a source that calls the function there."""
    return ["--function", "messages", "--endpoint", endpoint, "--window", "0.05", *options]


def test_one_killed_before_its_commit_leaves_its_batch_to_the_next(
    broker: Broker, topic: str
) -> None:
    """The call succeeded and nobody wrote it down: the same records come again, and no others."""
    client = FakeLambda()
    produce(broker, topic, FIVE)
    with lambda_server(client) as endpoint:
        options = to(endpoint, "--batch", "2")
        with process(SOURCE, broker, topic, *options, "--die-before-commit", "2") as killed:
            assert killed.finish() == -signal.SIGKILL
        assert [each["outcome"] for each in killed.log.batches()] == [
            "taken",
            "killed before commit",
        ]
        assert committed(broker, topic)[0] == 2
        with process(SOURCE, broker, topic, *options):
            assert until(lambda: committed(broker, topic)[0] == 5)
    read = [offsets[f"{topic}-0"] for offsets in client.offsets()]
    assert read == [[0, 1], [2, 3], [2, 3], [4]]


def test_term_ends_it_after_the_batch_in_hand(broker: Broker, topic: str) -> None:
    """The call goes on to its end and is committed, then the member leaves: exit code 0."""
    entered, leave = threading.Event(), threading.Event()

    def slow(_: dict[str, Any]) -> None:
        entered.set()
        assert leave.wait(WITHIN_S)

    produce(broker, topic, FIVE)
    client = FakeLambda(slow)
    with (
        lambda_server(client) as endpoint,
        process(SOURCE, broker, topic, *to(endpoint)) as running,
    ):
        assert entered.wait(WITHIN_S)
        running.child.send_signal(signal.SIGTERM)
        leave.set()
        assert running.finish() == 0
    assert committed(broker, topic)[0] == 5
    assert running.log.lines[-1]["event"] == "revoked"


def test_a_killed_members_partitions_go_to_the_other(broker: Broker, topic: str) -> None:
    """After its session is over the other reads them from the last commit."""
    client = FakeLambda()
    with (
        lambda_server(client) as endpoint,
        process(SOURCE, broker, topic, *to(endpoint)) as one,
        process(SOURCE, broker, topic, *to(endpoint)) as two,
    ):
        assert until(lambda: len(one.log.owned()) == len(two.log.owned()) == 1)
        for partition in range(PARTITIONS):
            produce(broker, topic, FIVE[:2], partition=partition)
        assert until(lambda: committed(broker, topic) == [2, 2])
        one.child.kill()
        for partition in range(PARTITIONS):
            produce(broker, topic, FIVE[2:], partition=partition)
        assert until(lambda: committed(broker, topic) == [5, 5])
        assert two.log.owned() == {f"{topic}-0", f"{topic}-1"}
    seen = Counter(
        (name, offset)
        for offsets in client.offsets()
        for name, each in offsets.items()
        for offset in each
    )
    assert set(seen) == {(f"{topic}-{number}", each) for number in range(2) for each in range(5)}


def test_one_frozen_until_it_lost_its_partition_commits_nothing(broker: Broker, topic: str) -> None:
    """Its call has succeeded, but another has read on meanwhile: its commit would go back."""
    entered, leave = threading.Event(), threading.Event()

    def slow(_: dict[str, Any]) -> None:
        entered.set()
        assert leave.wait(WITHIN_S)

    frozen, after = FakeLambda(slow), FakeLambda()
    produce(broker, topic, FIVE[:2])
    with (
        lambda_server(frozen, timeout_s=60) as endpoint,
        process(SOURCE, broker, topic, *to(endpoint)) as one,
    ):
        assert entered.wait(WITHIN_S)
        one.child.send_signal(signal.SIGSTOP)
        produce(broker, topic, FIVE[2:])
        with source(broker, topic, after):
            assert until(lambda: committed(broker, topic)[0] == 5)
            one.child.send_signal(signal.SIGCONT)
            # Its heartbeats go on first; they are told that it is no member any more.
            assert not until(lambda: committed(broker, topic)[0] != 5, within_s=1)
            leave.set()
            assert until(one.log.batches)
            assert one.log.batches()[0]["committed"] == {}
            assert committed(broker, topic)[0] == 5


def test_a_call_is_made_once_and_waited_for_longer_than_the_function_may_run() -> None:
    """A second call by the SDK itself, or one begun while the first still runs, nobody counts."""
    fault = ClientError({"Error": {"Code": "ServiceException"}}, "Invoke")

    def function(_: dict[str, Any]) -> None:
        raise fault

    fake = FakeLambda(function)
    with (
        lambda_server(fake, timeout_s=60) as endpoint,
        closing(lambda_client(endpoint, "messages")) as client,
    ):
        assert client.meta.config.read_timeout > 60
        with pytest.raises(ClientError):
            client.invoke(FunctionName="messages", Payload=b"{}")
    assert len(fake.events) == 1


def test_a_source_without_its_function_says_so(
    broker: Broker, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where nothing answers as Lambda it ends with the reason, and reads nothing."""
    with process(SOURCE, broker, topic, *to("http://127.0.0.1:9")) as running:
        assert running.finish() == 1
    assert "kafka source: Could not connect" in capfd.readouterr().err


def test_the_naive_consumer_costs_the_customer_again(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    """A message twice in the log, a death before the commit, a new reading: each debits again."""
    records = [{"key": guid, "value": json.dumps(TRANSFER)} for guid in ("r1", "r1", "r2")]
    send(broker, topic, records)
    with CoreProcess(tmp_path / "journal.jsonl") as core:
        options = ["--core", core.url, "--batch", "1"]
        with process(NAIVE, broker, topic, *options, "--die-before-commit", "3") as killed:
            assert killed.finish() == -signal.SIGKILL
        assert committed(broker, topic)[0] == 2
        with process(NAIVE, broker, topic, *options):
            assert until(lambda: committed(broker, topic)[0] == 3)
        assert Counter(each.guid for each in core.control.journal()) == {"r1": 2, "r2": 2}
        with process(NAIVE, broker, topic, *options, "--from-beginning") as again:
            assert until(lambda: len(again.log.batches()) == 3)
        assert Counter(each.guid for each in core.control.journal()) == {"r1": 4, "r2": 3}


def test_the_naive_consumer_reads_on_only_after_an_answer(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    """With the core's port closed the record comes again; it is no worse than at least once."""
    send(broker, topic, [{"key": "r1", "value": json.dumps(TRANSFER)}])
    with CoreProcess(tmp_path / "journal.jsonl") as core:
        core.control.set_faults([{"kind": "refuse"}])
        with process(NAIVE, broker, topic, "--core", core.url) as running:
            assert until(lambda: len(running.log.batches()) > 1)
            assert committed(broker, topic)[0] is None
            core.control.clear()
            assert until(lambda: committed(broker, topic)[0] == 1)
        assert len(core.control.journal("r1")) == 1

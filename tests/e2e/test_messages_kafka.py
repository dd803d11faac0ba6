"""Messages by Kafka, from a real broker: members killed, a core that is away, a record refused."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from local.core_client import CoreControl
from local.fault_proxy import refuses
from local.kafka_broker import Broker, running_broker
from local.rounds import until_settled
from local.stack import SHORT_LIMITS, Stack, StackConfig
from tests.e2e.conftest import LOGS
from tests.e2e.kafka_crowd import (
    Crowd,
    Payment,
    Topic,
    adds_up,
    answering_in_parts,
    counted,
    crowd,
    deliveries,
    executed_on,
    executions,
    noted,
    nothing_is_skipped,
    until,
)
from tests.integration.kafka_kit import Running, needs_broker

pytestmark = [pytest.mark.e2e, needs_broker]

LIMITS: Final = {
    **SHORT_LIMITS,
    "CircuitAfter": "0",  # Else the core stays closed for a while when it is back.
    "KafkaKeyIsGuid": "true",
    "SourceOperations": '{"kafka:receipts":"receipt"}',
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Run one broker for the module."""
    with running_broker({}, log=LOGS / "kafka" / "broker.log") as running:
        yield running


@pytest.fixture(scope="module")
def hub(built: None) -> Iterator[Stack]:
    """Return a stack whose function fails a batch whole, with a fault proxy before AWS."""
    del built
    config = StackConfig(logs=LOGS / "kafka", parameters=LIMITS, has_faults=True)
    with Stack.running(config) as running:
        yield running


@pytest.fixture
def bank(hub: Stack) -> Iterator[CoreControl]:
    """Return the core's control; no faults before and after."""
    control = CoreControl(hub.control_url)
    control.clear()
    yield control
    control.clear()
    hub.faults.set_rules([])
    control.close()


RECEIPTS: Final = 800
PARTITIONS: Final = 6
FAR: Final = RECEIPTS // 2
KILLS: Final = 8
KILL_EVERY_S: Final = 2.0
# For each record, so that whoever is killed is at work on a fast machine too.
CORE_TAKES_S: Final = 0.05
PORTION: Final = 100
# A dead member is missed after it. With less the broker's join is over before all have joined, and
# three members never share the topic.
SESSION_S: Final = 1.0
READ_S: Final = 90.0  # A third of it on two cores; more for a machine that is busy.


def receipt(number: int, partitions_on: int = 0) -> Payment:
    """Return a receipt on the partition of its key's hash, or so many behind that one."""
    guid = f"r-{number}"
    home = zlib.crc32(guid.encode())
    return Payment(guid, number + 1, (home + partitions_on) % PARTITIONS)


def receipts() -> list[Payment]:
    """Return 1,000 records: 50 are there twice in a row, 100 far apart, 50 on two partitions."""
    log: list[Payment] = []
    for number in range(RECEIPTS):
        log += [receipt(number)] * (2 if number % 16 == 0 else 1)
        if number >= FAR and number % 4 == 0:
            log.append(receipt(number - FAR))
        if number >= FAR and number % 8 == 1:
            log.append(receipt(number - FAR, partitions_on=1))
    return log


def kill_members(stack: Stack, group: Crowd, portions: Iterator[list[Payment]]) -> None:
    """Kill one after the other and start another for each, while records come in.

    Half-way a fourth member joins, which shares the topic and leaves after the last kill.
    """
    fourth: Running | None = None
    for number in range(KILLS):
        group.topic.send(next(portions))
        time.sleep(KILL_EVERY_S)
        group.kill_an_owner(spared=fourth)
        group.join()
        nothing_is_skipped(stack, group.topic)
        if number == KILLS // 2:
            fourth = group.join()
    assert fourth
    group.topic.send(next(portions))
    # The broker never ends a join in which the leader has left.
    until(group.is_at_rest)
    group.leave(fourth)


def test_of_1000_messages_with_200_duplicates_800_are_executed_once_each(
    hub: Stack, bank: CoreControl, broker: Broker
) -> None:
    """Three members, one killed every two seconds, a fourth comes and goes: none is skipped."""
    log = receipts()
    assert (len(log), len({each.guid for each in log})) == (1_000, RECEIPTS)
    opening = bank.accounts()
    topic = Topic.made(broker, "receipts", PARTITIONS)
    portions = iter([log[at : at + PORTION] for at in range(0, len(log), PORTION)])
    options = ("--batch", "25", "--window", "0.1", "--session", str(SESSION_S))
    with crowd(hub, topic, *options) as group:
        for _ in range(3):
            group.join()
        until(group.is_at_rest)
        bank.set_faults([{"kind": "slow", "seconds": CORE_TAKES_S}])
        kill_members(hub, group, portions)
        bank.clear()
        for portion in portions:
            topic.send(portion)
        until(topic.is_read, within_s=READ_S)
    assert sum(topic.ends().values()) == len(log)
    # A killed member's records came again, so the kills have struck something.
    assert len(noted(hub, "message", topic=topic.name, taken="recorded")) > len(log)
    assert set(until_settled(hub, within_s=60)) == {"DONE"}
    adds_up(hub, bank, opening, log)
    assert {each.operation for each in executions(hub, "r-")} == {"receipt"}


ACCOUNTS: Final = ("A003", "A004", "A005", "A006", "A007")
THIRD: Final = 100


def thirds() -> list[list[Payment]]:
    """Return 300 payments of five accounts, keyed by these, on one partition."""
    log = [
        Payment(f"t-{number}", number + 1, account=ACCOUNTS[number % 5], by_account=True)
        for number in range(3 * THIRD)
    ]
    return [log[at : at + THIRD] for at in range(0, len(log), THIRD)]


def claims(history: list[dict[str, Any]]) -> list[str]:
    """Return who has claimed the row, in order."""
    return [entry["by"] for entry in history if entry["event"] == "claimed"]


def test_a_core_that_is_away_for_the_middle_third_stalls_no_partition(
    hub: Stack, bank: CoreControl, broker: Broker
) -> None:
    """All of it is committed while the core is away; the hub sends it later, and the total fits."""
    log = thirds()
    opening, at_risk = bank.accounts(), counted(hub, "OrderAtRisk")
    topic = Topic.made(broker, "thirds", 1)
    middle = {each.guid for each in log[1]}
    with crowd(hub, topic, "--batch", "25", "--window", "0.1") as group:
        group.join()
        topic.send(log[0])
        until(topic.is_read, within_s=READ_S)
        bank.set_faults([{"kind": "refuse"}])
        topic.send(log[1])
        until(topic.is_read, within_s=READ_S)
        assert bank.health()["door"] == "refused"
        rows = {row["guid"]: row for row in hub.scan_rows() if row["guid"] in middle}
        assert (set(rows), {row["state"] for row in rows.values()}) == (middle, {"FAILED"})
        assert not middle & {each.guid for each in executions(hub, "t-")}
        bank.clear()
        topic.send(log[2])
        until(topic.is_read, within_s=READ_S)
    assert set(until_settled(hub, within_s=120)) == {"DONE"}
    adds_up(hub, bank, opening, [each for third in log for each in third])
    resent = [row["history"] for row in hub.scan_rows() if row["guid"] in middle]
    assert all(claims(history)[:2] == ["messages", "reprocessor"] for history in resent)
    noticed = noted(hub, "order_at_risk", topic=topic.name)
    assert {line["guid"] for line in noticed} == middle
    assert counted(hub, "OrderAtRisk") - at_risk == len(noticed)


REFUSED: Final = 3  # Its offset.


def row_of_payments(mark: str, partition: int, numbers: range) -> list[Payment]:
    """Return payments of one partition; each one's GUID says where it lies."""
    return [Payment(f"{mark}{partition}-{number}", 1 + number, partition) for number in numbers]


def test_a_record_that_the_ledger_refuses_stops_its_partition_in_order(
    hub: Stack, bank: CoreControl, broker: Broker
) -> None:
    """Its batch comes again whole; the other partition goes on; then it does, none is skipped."""
    del bank
    topic = Topic.made(broker, "stops", 2)
    refused = f"s0-{REFUSED}"
    hub.faults.set_rules([refuses("PutItem", refused)])
    with crowd(hub, topic, "--window", "0.1") as group:
        for _ in range(2):
            group.join()
        until(group.is_at_rest)
        topic.send(row_of_payments("s", 0, range(8)))
        for begin in (0, 4):
            topic.send(row_of_payments("s", 1, range(begin, begin + 4)))
            until(lambda: topic.committed()[1] == topic.ends()[1])
        until(lambda: len(noted(hub, "message_given_back", guid=refused)) > 1)
        assert topic.committed()[0] <= REFUSED
        assert executed_on(hub, topic, 0) == topic.sent[0][:REFUSED]
        assert [hub.ledger_row(guid) for guid in topic.sent[0][REFUSED:]] == [None] * 5
        hub.faults.set_rules([])
        until(topic.is_read)
    for partition, sent in topic.sent.items():
        assert executed_on(hub, topic, partition) == sent


def test_of_a_partial_answer_only_what_was_not_taken_comes_again(
    hub: Stack, bank: CoreControl, broker: Broker
) -> None:
    """The refused record and those behind it in its partition; all others are committed."""
    del bank
    topic = Topic.made(broker, "parts", 2)
    topic.send([*row_of_payments("p", 1, range(8)), *row_of_payments("p", 0, range(8))])
    hub.faults.set_rules([refuses("PutItem", f"p0-{REFUSED}")])
    # One that lost its partitions for want of a heartbeat would be handed the taken ones again.
    options = ("--partial", "--batch", "25", "--window", "1", "--session", "4")
    with answering_in_parts(hub), crowd(hub, topic, *options) as group:
        member = group.join()
        until(lambda: topic.committed() == {0: REFUSED, 1: 8})
        until(lambda: len(member.log.batches()) > 2)
        assert executed_on(hub, topic, 0) == topic.sent[0][:REFUSED]
        hub.faults.set_rules([])
        until(topic.is_read)
        handed_over = deliveries(member)
    assert handed_over[1] == Counter(range(8))
    assert [handed_over[0][offset] for offset in range(REFUSED)] == [1] * REFUSED
    assert all(handed_over[0][offset] > 1 for offset in range(REFUSED, 8))
    for partition, sent in topic.sent.items():
        assert executed_on(hub, topic, partition) == sent

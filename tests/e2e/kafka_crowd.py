"""What the Kafka tests of the deployed stack share: a topic that is counted, members that die."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from local.core_client import CoreControl
from local.core_ledger import Execution, read_journal
from local.kafka_broker import Broker
from local.stack import Stack
from local.stack_operator import json_lines
from tests.integration.kafka_kit import WITHIN_S, Running, group_of, process

SOURCE: Final = "local.kafka_source"
FUNCTION: Final = "MessagesFunction"
REJECTS: Final = "IntakeRejectsQueue"
PARTIAL: Final = "KAFKA_PARTIAL_BATCHES"
TARGET: Final = "A002"
_POLL_S: Final = 0.2  # Each look is a new client of the broker, or reads the function's whole log.


def until(true: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Return when it is true; fail when time is up."""
    ends_s = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < ends_s, "it did not come true in time"
        time.sleep(_POLL_S)


@dataclass(frozen=True)
class Payment:
    """A record as it is sent; its key is the GUID, unless it is keyed by the account."""

    guid: str
    amount: int
    partition: int = 0
    account: str = "A001"
    by_account: bool = False

    def record(self) -> dict[str, Any]:
        """Return it as the client library takes it."""
        body = f'{{"from":"{self.account}","to":"{TARGET}","amount":{self.amount}}}'
        return {
            "partition": self.partition,
            "key": (self.account if self.by_account else self.guid).encode(),
            "value": body.encode(),
            "headers": [("idempotency-key", self.guid.encode())] if self.by_account else [],
        }


@dataclass(frozen=True)
class Topic:
    """A topic, and the GUIDs that each of its partitions was sent; nobody else writes to it."""

    broker: Broker
    name: str
    sent: Mapping[int, list[str]]

    @classmethod
    def made(cls, broker: Broker, name: str, partitions: int) -> Topic:
        """Make the topic."""
        broker.create_topics({name: partitions})
        return cls(broker, name, {number: [] for number in range(partitions)})

    def send(self, payments: Iterable[Payment]) -> None:
        """Append the payments in their order, and wait until the broker has them all."""
        faults: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            faults.extend([error] if error else [])

        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for payment in payments:
            producer.produce(self.name, on_delivery=note, **payment.record())
            self.sent[payment.partition].append(payment.guid)
        assert producer.flush(WITHIN_S) == 0
        assert not faults

    def ends(self) -> dict[int, int]:
        """Return where each partition ends, by what was sent: the broker's own word is wrong."""
        return {number: len(guids) for number, guids in self.sent.items()}

    def committed(self) -> dict[int, int]:
        """Return how many records of each partition the group has committed."""
        found = self.broker.committed(group_of(self.name), self.name, len(self.sent))
        return {number: offset or 0 for number, offset in found.items()}

    def is_read(self) -> bool:
        """Say whether everything is committed."""
        return self.committed() == self.ends()


@dataclass
class Crowd:
    """The members of the topic's group, each a process of its own, the oldest first."""

    topic: Topic
    options: tuple[str, ...]
    owned: ExitStack
    members: list[Running] = field(default_factory=list)

    def join(self) -> Running:
        """Start a member."""
        made = process(SOURCE, self.topic.broker, self.topic.name, *self.options)
        self.members.append(self.owned.enter_context(made))
        return self.members[-1]

    def kill(self, member: Running) -> None:
        """Kill (SIGKILL) a member, whatever it is doing."""
        self.members.remove(member)
        member.child.kill()
        assert member.finish() == -signal.SIGKILL

    def leave(self, member: Running) -> None:
        """Let a member end in order."""
        self.members.remove(member)
        member.child.send_signal(signal.SIGTERM)
        assert member.finish() == 0

    def owners(self) -> list[Running]:
        """Return the members that have a partition, the oldest first."""
        return [member for member in self.members if member.log.owned()]

    def is_at_rest(self) -> bool:
        """Say whether the members share all partitions, and none of them has nothing."""
        shares = [len(member.log.owned()) for member in self.members]
        return all(shares) and sum(shares) == len(self.topic.sent)

    def kill_an_owner(self, spared: Running | None) -> None:
        """Kill the oldest member that has a partition; wait for one, if the group is between."""
        found: list[Running] = []

        def has_found() -> bool:
            found[:] = [member for member in self.owners() if member is not spared]
            return bool(found)

        until(has_found)
        self.kill(found[0])


@contextmanager
def crowd(stack: Stack, topic: Topic, *options: str) -> Iterator[Crowd]:
    """Yield a group without members; whoever has joined has ended when the context has."""
    function, endpoint = stack.name_of(FUNCTION), stack.emulator.endpoint
    with ExitStack() as owned:
        yield Crowd(topic, ("--function", function, "--endpoint", endpoint, *options), owned)


def executions(stack: Stack, mark: str) -> list[Execution]:
    """Return what the core executed of the GUIDs that begin with the mark, in its order."""
    return [each for each in read_journal(stack.journal) if each.guid.startswith(mark)]


def executed_on(stack: Stack, topic: Topic, partition: int) -> list[str]:
    """Return what the core executed of a partition, in the core's order."""
    sent = topic.sent[partition]
    return [each.guid for each in executions(stack, "") if each.guid in sent]


def nothing_is_skipped(stack: Stack, topic: Topic) -> None:
    """Of all that is committed at this moment the ledger holds a row."""
    committed = topic.committed()
    held = {row["guid"] for row in stack.scan_rows()}
    skipped = {guid for number in committed for guid in topic.sent[number][: committed[number]]}
    assert not skipped - held, f"committed, and without a row: {sorted(skipped - held)}"


def balances_after(opening: Mapping[str, int], payments: Iterable[Payment]) -> dict[str, int]:
    """Return the accounts when each payment was made once, however often it was sent."""
    moved: Counter[str] = Counter()
    for each in {each.guid: each for each in payments}.values():
        moved[each.account] -= each.amount
        moved[TARGET] += each.amount
    return {name: balance + moved[name] for name, balance in opening.items()}


def adds_up(
    stack: Stack, core: CoreControl, opening: Mapping[str, int], payments: list[Payment]
) -> None:
    """Journal, ledger and accounts agree that each payment was made once; nothing was put aside."""
    wanted = Counter({(each.guid, each.amount) for each in payments})
    guids = {guid for guid, _ in wanted}
    made = Counter((each.guid, each.amount) for each in executions(stack, "") if each.guid in guids)
    assert made == wanted, f"too often: {made - wanted}, missing: {wanted - made}"
    codes = {row["guid"]: row["code"] for row in stack.scan_rows() if row["guid"] in guids}
    assert codes == dict.fromkeys(guids, "0000"), f"not so: {Counter(codes.values())}"
    assert core.accounts() == balances_after(opening, payments)
    assert stack.queue_depth(REJECTS) == 0


def noted(stack: Stack, what: str, **facts: Any) -> list[dict[str, Any]]:
    """Return the function's log lines of that name and with these facts."""
    lines = json_lines(stack.function_logs(FUNCTION))
    wanted = {"message": what, **facts}
    return [line for line in lines if wanted.items() <= line.items()]


def counted(stack: Stack, metric: str) -> int:
    """Return what the function's metric adds up to, in all its lines so far."""
    total = 0.0
    for line in json_lines(stack.function_logs(FUNCTION)):
        values = line.get(metric, 0) if "_aws" in line else 0
        total += sum(values) if isinstance(values, list) else values
    return int(total)


def deliveries(member: Running) -> dict[int, Counter[int]]:
    """Return how often the member handed over each offset, by partition."""
    found: dict[int, Counter[int]] = {}
    for line in member.log.batches():
        for place, offsets in line["offsets"].items():
            found.setdefault(int(place.rpartition("-")[2]), Counter()).update(offsets)
    return found


@contextmanager
def answering_in_parts(stack: Stack) -> Iterator[None]:
    """Let the function name what it did not take, as where KafkaPartialBatches is true."""
    client, name = stack.emulator.client("lambda"), stack.name_of(FUNCTION)
    before = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    assert before[PARTIAL] == "false"

    def set_variables(variables: dict[str, str]) -> None:
        client.update_function_configuration(
            FunctionName=name, Environment={"Variables": variables}
        )

    set_variables({**before, PARTIAL: "true"})
    try:
        yield
    finally:
        set_variables(before)

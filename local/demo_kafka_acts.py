"""The lesson's acts: a topic with a receipt sent twice, a consumer killed, the topic read again.

The same acts are played with two consumers of the same log: Lambda's Kafka event source before the
hub, and one that sends each record straight to the core. What became of a record is read from the
core's own journal: what it executed while that record's batch was in hand.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from local.core_ledger import Execution, read_journal
from local.kafka_broker import Broker
from local.stack_process import Child
from local.stack_start import ROOT

TOPIC: Final = "receipts"
_SENT_S: Final = 10.0
# A start takes 2 s, a dead member's session 2 s, a call at worst the relay's timeout.
_ACT_S: Final = 60.0
_POLL_S: Final = 0.05
TAKEN: Final = "taken"
KILLED: Final = "killed before commit"
_KILLED_AT: Final = 3  # The last record's commit: the work is done, and nobody wrote it down.
_ENV: Final = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}


class ActError(Exception):
    """An act did not come to its end; the message holds the end of the consumer's log."""


@dataclass(frozen=True)
class Payment:
    """A receipt as its system sends it; `paid` is in yen."""

    guid: str
    paid: int

    def body(self) -> bytes:
        """Return the record's value: a transfer as the core takes it."""
        fields = {"from": "A001", "to": "A002", "amount": self.paid, "currency": "JPY"}
        return json.dumps(fields).encode()


LOG: Final = (
    Payment("r1001", 3000),
    Payment("r1001", 3000),  # Sent again, because no acknowledgement came.
    Payment("r1002", 1200),
)
TOTAL: Final = sum({each.guid: each.paid for each in LOG}.values())


@dataclass(frozen=True)
class Front:
    """A consumer of the topic in a group of its own, and the core behind it."""

    name: str
    command: Sequence[str]
    journal: Path


@dataclass(frozen=True)
class Seen:
    """One record as one act's consumer had it: how often it was executed then, and before."""

    act: str
    offset: int
    payment: Payment
    outcome: str
    executed: int
    before: int
    committed: int | None

    @property
    def became(self) -> str:
        """What became of it, in words."""
        if self.outcome not in (TAKEN, KILLED):
            return f"not taken: {self.outcome}"
        if self.executed:
            return "executed again" if self.before else "executed"
        return "duplicate skipped" if self.before else "not executed"


@dataclass(frozen=True)
class Played:
    """A front's whole story; `wrong` says in words what should not be, its total apart."""

    front: Front
    story: Sequence[Seen]
    wrong: Sequence[str] = ()

    @property
    def total(self) -> int:
        """What the core behind it moved, by its own journal."""
        return sum(each.amount for each in read_journal(self.front.journal))


@dataclass(frozen=True)
class Act:
    """How the consumer is started, and when the act is over by what it has printed."""

    about: str
    options: Sequence[str]
    is_over: Callable[[Sequence[Mapping[str, Any]]], bool]
    ends_by: int | None = None  # The signal that it ends itself by.


def _has_committed_all(batches: Sequence[Mapping[str, Any]]) -> bool:
    return bool(batches) and _committed(batches[-1]) == len(LOG)


ACTS: Final = (
    Act(  # Between the work and its commit.
        "read, then killed",
        ("--die-before-commit", str(_KILLED_AT)),
        lambda batches: len(batches) == _KILLED_AT,
        ends_by=signal.SIGKILL,
    ),
    Act("started again", (), _has_committed_all),
    Act("topic read again", ("--from-beginning",), _has_committed_all),
)


def fill(broker: Broker) -> None:
    """Send the receipts to the topic, in their order, and wait until the log holds them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for payment in LOG:
        producer.produce(TOPIC, key=payment.guid.encode(), value=payment.body())
    if producer.flush(_SENT_S):
        raise ActError(f"the broker did not take the receipts; see {broker.child.log}")


def front_of(name: str, module: str, broker: Broker, journal: Path, *options: str) -> Front:
    """Return the front of a consumer that takes one record at a time, so that each is seen."""
    command = [
        *(sys.executable, "-m", module, "--bootstrap", broker.bootstrap, "--topic", TOPIC),
        *("--group", name, "--batch", "1", *options),
    ]
    return Front(name, command, journal)


def play(front: Front, act: Act, logs: Path) -> list[Seen]:
    """Run the front's consumer until the act is over, and return what it had; raises ActError."""
    before = Counter(each.guid for each in read_journal(front.journal))
    log = logs / f"{front.name} {act.about}.log".replace(",", "").replace(" ", "-")
    command = [*front.command, *act.options]
    child = Child.start(f"{front.name} consumer", command, log=log, env=_ENV, cwd=ROOT)
    try:
        _wait(child, act)
    finally:
        child.stop()
    return _seen(act, _batches(log), read_journal(front.journal), before)


def _wait(child: Child, act: Act) -> None:
    ends_s = time.monotonic() + _ACT_S
    while not act.is_over(_batches(child.log)):
        if time.monotonic() > ends_s or not child.is_running():
            raise ActError(f"{act.about}: did not end; {child.log} ends in:\n{child.tail()}")
        time.sleep(_POLL_S)
    if act.ends_by is None:
        return
    try:
        code = child.wait(_ACT_S)
    except subprocess.TimeoutExpired:
        code = 0
    if code != -act.ends_by:
        raise ActError(f"{act.about}: the consumer was not killed; see {child.log}")


def _batches(log: Path) -> list[Mapping[str, Any]]:
    """Return the lines about batches; what libraries say stands between, the last may be half."""
    whole, _, _ = log.read_text(errors="replace").rpartition("\n")
    lines = [json.loads(line) for line in whole.splitlines() if line.startswith('{"event"')]
    return [line for line in lines if line["event"] == "batch"]


def _seen(
    act: Act,
    batches: Sequence[Mapping[str, Any]],
    executions: Sequence[Execution],
    before: Counter[str],
) -> list[Seen]:
    """Match batches and executions by time, each execution with the first batch that fits."""
    left = list(executions)
    counted = Counter(before)
    story: list[Seen] = []
    for line in batches:
        offset = line["offsets"][f"{TOPIC}-0"][0]
        payment = LOG[offset]
        begun_ms, ended_ms = line["between_ms"]
        mine = [e for e in left if e.guid == payment.guid and begun_ms <= e.time_ms <= ended_ms]
        left = [e for e in left if e not in mine]
        about = line["outcome"], len(mine), counted[payment.guid], _committed(line)
        story.append(Seen(act.about, offset, payment, *about))
        counted[payment.guid] += len(mine)
    return story


def _committed(line: Mapping[str, Any]) -> int | None:
    found: int | None = line.get("committed", {}).get(f"{TOPIC}-0")
    return found

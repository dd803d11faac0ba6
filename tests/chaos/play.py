"""Plays a plan on a running stack: the load, what strikes it, the maintenance, the evidence."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from local.core_client import CoreControl
from local.core_ledger import read_journal, read_received
from local.rounds import REPROCESSOR, RESOLVER, until_settled
from local.stack import Stack
from relayhub.row import HELD, PARKED
from tests.chaos import weather
from tests.chaos.book import Book
from tests.chaos.clients import Clients, MessageSender
from tests.chaos.kills import CoreKiller, KillList, confirmed
from tests.chaos.logs import alarms
from tests.chaos.plan import Plan
from tests.chaos.strikes import INTAKE, MAINTAINED, PURGER, Striker, maintain, run_by_hand
from tests.chaos.truth import Evidence, Truth

Tell = Callable[[str, int], None]

SETTLE_S: Final = 300.0
_PAUSE_S: Final = 1.0
_OPEN_INDEX: Final = "open"
_TELL_S: Final = 0.5
_REJECTS: Final = "IntakeRejectsQueue"
_DEAD: Final = "IntakeDeadLetterQueue"


@dataclass(frozen=True)
class Outcome:
    """A run that is over: what is true, and what was done to get there."""

    plan: Plan
    truth: Truth
    book: Book
    kills: KillList
    in_core: Sequence[str]  # GUIDs whose sender was killed while the core had the request.
    proxy: weather.FiredLog
    core_faults: Counter[str]
    alarms: Sequence[Mapping[str, Any]]
    load_s: float
    settle_s: float

    @property
    def unsent(self) -> int:
        """How many acts were not begun before the time was up."""
        return len(self.plan.acts) - len(self.book.sent)

    @property
    def dropped(self) -> int:
        """How many replies were dropped after the request took effect."""
        return self.proxy.dropped().total()

    @property
    def is_right(self) -> bool:
        """Whether the whole plan was played, and nothing is wrong."""
        return self.truth.is_right and not self.unsent

    def last_line(self) -> str:
        """Return the one line that says it all."""
        truth = self.truth
        return (
            f"chaos: {len(self.book.sent)} sent, {len(truth.doubles)} doubles,"
            f" {len(truth.lost)} lost, {truth.open_count} open, {self.kills.count} kills,"
            f" {self.dropped} replies dropped"
        )


def play(
    stack: Stack,
    plan: Plan,
    *,
    clients: int,
    limit_s: float,
    settle_s: float = SETTLE_S,
    tell: Tell = lambda *_: None,
) -> Outcome:
    """Play the plan on a stack that was started with the weather's limits and a fault proxy.

    The load ends after `limit_s` at the latest, the settling after `settle_s`.
    """
    control = CoreControl(stack.control_url)
    opening = next(iter(control.accounts().values()))
    book, kills, stopped = Book(), KillList(), threading.Event()
    striker = Striker(plan, stack, control, book, kills, stopped)
    _show_again_soon(stack)
    stack.warm(clients)
    begun = time.monotonic()
    striker.begin()
    with _beside(stopped, _jobs(striker, tell)):
        _clients(stack, plan, book, begun + limit_s).run(clients)
    striker.end()
    loaded = time.monotonic()
    settle(stack, control, within_s=settle_s, tell=tell)
    truth = Truth(gather(stack, control, plan, book, opening))
    control.close()
    return Outcome(
        plan,
        truth,
        book,
        kills,
        confirmed(book.told, read_received(stack.journal), kills.in_core_ms()),
        striker.proxy,
        striker.core_faults,
        alarms(stack),
        loaded - begun,
        time.monotonic() - loaded,
    )


def _clients(stack: Stack, plan: Plan, book: Book, ends_s: float) -> Clients:
    sender = MessageSender(stack.emulator.client("sqs"), stack.name_of(INTAKE))
    return Clients(plan, book, {"atm": stack.atm, "app": stack.app}, sender.send, ends_s)


def _show_again_soon(stack: Stack) -> None:
    """Let a message whose function was killed come again while the run lasts."""
    stack.emulator.client("sqs").set_queue_attributes(
        QueueUrl=stack.name_of(INTAKE),
        Attributes={"VisibilityTimeout": str(weather.VISIBLE_AGAIN_S)},
    )


def _jobs(striker: Striker, tell: Tell) -> list[Callable[[], None]]:
    """Return what goes on beside the load until stopped, each in a thread of its own."""
    stack, stopped = striker.stack, striker.stopped
    return [
        striker.run,
        striker.read_log,
        CoreKiller(stack, striker.kills, stopped).run,
        partial(_tell_progress, striker.book, stopped, tell),
        *(partial(maintain, stack, function, stopped) for function in MAINTAINED),
    ]


def _tell_progress(book: Book, stopped: threading.Event, tell: Tell) -> None:
    while not stopped.wait(_TELL_S):
        tell("steps begun", book.begun)


@contextmanager
def _beside(stopped: threading.Event, jobs: Sequence[Callable[[], None]]) -> Iterator[None]:
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stopped.set()
        for each in threads:
            each.join()


def settle(stack: Stack, control: CoreControl, *, within_s: float, tell: Tell) -> None:
    """Let the maintenance end what is open, in the ledger, in the queue and at the core."""
    ends = time.monotonic() + within_s
    while time.monotonic() < ends:
        run_by_hand(stack, RESOLVER)
        run_by_hand(stack, REPROCESSOR)
        is_open = open_rows(stack)
        tell("settling, rows open", is_open)
        if not is_open and not stack.queue_depth(INTAKE) and not control.health()["in_works"]:
            break
        time.sleep(_PAUSE_S)
    # The index has said so; this reads the rows themselves.
    until_settled(stack, within_s=max(0.0, ends - time.monotonic()))
    run_by_hand(stack, PURGER)


def open_rows(stack: Stack) -> int:
    """Count the rows in the index of open ones, less those that wait for a person."""
    pages = stack.emulator.client("dynamodb").get_paginator("scan")
    keys = [
        item["open_shard"]["S"]
        for page in pages.paginate(TableName=stack.operator.table, IndexName=_OPEN_INDEX)
        for item in page["Items"]
    ]
    return sum(not key.startswith((PARKED, HELD)) for key in keys)


def gather(stack: Stack, control: CoreControl, plan: Plan, book: Book, opening: int) -> Evidence:
    """Collect what the channels, the queues, the ledger and the core say at the end."""
    return Evidence(
        sent={guid: plan.by_guid[guid].transfer for guid in book.sent},
        told=book.told,
        messages=book.messages,
        left=stack.queue_depth(INTAKE) + stack.queue_depth(_DEAD),
        aside=[str(each.get("guid")) for each in _take_all(stack, _REJECTS)],
        rows=stack.scan_rows(),
        journal=read_journal(stack.journal),
        opening=opening,
        balances=control.accounts(),
    )


def _take_all(stack: Stack, queue: str) -> Iterator[dict[str, Any]]:
    """Take everything off a queue that nobody else reads."""
    client, url = stack.emulator.client("sqs"), stack.name_of(queue)
    while found := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for each in found:
            client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            yield json.loads(each["Body"])

"""Worlds for the maintenance functions: DynamoDB's clock is the test's own, waits turn the clock.

`Works` answers by script, for one row; a `Plant` has a bank that executes, and can be killed at any
single call to the outside.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any

from botocore.exceptions import ClientError

from functions.reprocessor.handler import take
from relayhub.core import Answered, CoreRequest, Doubt, Finding, NotSent, SendOutcome
from relayhub.hub import Hub
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.row import Row
from relayhub.settings import Settings
from tests.emulated import FaultyClient, client
from tests.maintenance import AWAY, NOT_FOUND, RUN_MS, items, processed, resolver, sweep, wipe
from tests.world import EXECUTED, START_MS, KilledError, World


@dataclass
class Fuse:
    """Ends the function before its n-th call to the outside: nothing after that happens.

    That is as good as the end after the call before it.
    """

    at: int = 0
    calls: int = 0

    def arm(self, at: int) -> None:
        """Blow at the n-th call from now; 0 never."""
        self.at, self.calls = at, 0

    def pass_on(self, call: Callable[[], Any]) -> Any:
        """Make the call, unless the function has ended."""
        self.calls += 1
        if 0 < self.at <= self.calls:
            raise KilledError
        return call()


class Fused:
    """A client or core whose calls go through a fuse."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        """Return the operation, behind the fuse."""
        operation = getattr(self._inner, name)
        return lambda *args, **more: self._fuse.pass_on(lambda: operation(*args, **more))


@dataclass
class Bank:
    """A core that is not idempotent: each request that begins is executed once more."""

    now_ms: Callable[[], int]
    is_away: bool = False
    begins_after_ms: int | None = None  # None: at once, with an answer. Else late, without one.
    executed: Counter[str] = field(default_factory=Counter)
    sends: list[tuple[str, int]] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)  # When each was made or tried.
    waiting: list[tuple[int, str]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def prepare(self) -> None:
        """There is no secret."""

    def settle(self) -> None:
        """Execute what has waited long enough."""
        with self.lock:
            due = [each for each in self.waiting if each[0] <= self.now_ms()]
            self.waiting = [each for each in self.waiting if each not in due]
            self.executed.update(guid for _, guid in due)

    def send(self, request: CoreRequest, *, within_s: float) -> SendOutcome:
        """Execute it now, or take it and execute it later."""
        assert within_s > 0
        with self.lock:
            self.connections.append(self.now_ms())
            if self.is_away:
                return NotSent("connect_refused")
            self.sends.append((request.guid, request.attempt))
            if self.begins_after_ms is None:
                self.executed[request.guid] += 1
                return Answered(EXECUTED)
            self.waiting.append((self.now_ms() + self.begins_after_ms, request.guid))
            return Doubt("answer_timeout", aborted=True)

    def ask(self, guid: str, *, inquiry_id: str, within_s: float) -> Finding:
        """Tell what became of the GUID so far."""
        del inquiry_id, within_s
        with self.lock:
            self.connections.append(self.now_ms())
            if self.is_away:
                return AWAY
            self.settle()
            return processed() if self.executed[guid] else NOT_FOUND


class Inbox:
    """Queues in memory, at the seam of the SQS client."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.accepted: list[str] = []
        self.rejected: list[str] = []

    def send_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        MessageBody: str,  # noqa: N803
        MessageAttributes: object = None,  # noqa: N803
    ) -> dict[str, str]:
        """Take one message."""
        del MessageAttributes
        queues = {"hints": self.bodies, "intake": self.accepted, "rejects": self.rejected}
        queues[QueueUrl].append(MessageBody)
        return {}


class Dated:
    """A client whose answers bear the time of a clock that the test turns."""

    def __init__(self, inner: Any, now_ms: Callable[[], int]) -> None:
        self._inner = inner
        self._now_ms = now_ms

    def __getattr__(self, name: str) -> Any:
        """Return the operation, its answers dated."""
        operation = getattr(self._inner, name)

        def call(**request: Any) -> Any:
            dated: Any = {"HTTPHeaders": {"date": formatdate(self._now_ms() // 1000, usegmt=True)}}
            try:
                return {**operation(**request), "ResponseMetadata": dated}
            except ClientError as error:
                error.response["ResponseMetadata"] |= dated
                raise

        return call


class Works(World):
    """A world whose waits turn the clock, and where DynamoDB may have a clock of its own."""

    def __init__(self, **changes: Any) -> None:
        self.fuse = Fuse()
        self.dynamo_ahead_ms = 0
        self.table: Any = client("dynamodb")
        super().__init__(**changes)

    def use(self, table: Any) -> None:
        """Go on with another client of the table."""
        self.table = table
        self.deploy()

    def make_hub(self, settings: Settings) -> Hub:
        """Return a fresh function's hub: nothing outlives the one before."""
        dated = Dated(self.table, lambda: self.clock() + self.dynamo_ahead_ms)
        self.dynamo = FaultyClient(Fused(dated, self.fuse))
        self.s3 = FaultyClient(Fused(client("s3"), self.fuse))
        return replace(super().make_hub(settings), sleep=self.clock.advance)


class Plant(Works):
    """Works with a bank instead of a script, hints in memory, and a fuse before every call."""

    def __init__(self, **changes: Any) -> None:
        self.inbox = Inbox()
        self.bank = Bank(lambda: self.clock())  # noqa: PLW0108 - the clock is yet to be made
        super().__init__(**changes)

    def make_hub(self, settings: Settings) -> Hub:
        """Return a fresh function's hub, with the bank behind the fuse."""
        return replace(
            super().make_hub(settings),
            core=Fused(self.bank, self.fuse),
            hints=HintQueue(Fused(self.inbox, self.fuse), "hints", "rejects"),
            intake=IntakeQueue(Fused(self.inbox, self.fuse), "intake", "rejects"),
        )

    def killed(self, run: Callable[[], object], at: int) -> bool:
        """Run it and end it before its n-th call to the outside; tell whether it came so far."""
        self.fuse.arm(at)
        try:
            run()
        except KilledError:
            return True
        finally:
            self.fuse.arm(0)
            self.deploy()
        return False

    def deliver(self) -> None:
        """Hand every hint that waits to the reprocessor, as its event source does."""
        bodies, self.inbox.bodies = self.inbox.bodies, []
        for body in bodies:
            if not take(self.hub, {"messageId": "1", "body": body}, self.clock() + RUN_MS):
                self.inbox.bodies.append(body)

    def schedules(self, minutes: int, each: Callable[[], object] = lambda: None) -> None:
        """Let so many minutes pass, with the schedules that belong to each."""
        for _ in range(minutes):
            self.clock.ms += 60_000 - (self.clock() - START_MS) % 60_000
            resolver(self)
            sweep(self)
            self.deliver()
            each()

    def rows(self) -> dict[str, Row]:
        """Return every GUID's row."""
        guids = (item["guid"]["S"] for item in items())
        return {guid: self.held(guid) for guid in guids if not guid.startswith("!")}

    def start_again(self) -> None:
        """Empty everything and turn the clock back."""
        wipe()
        self.clock.ms = START_MS
        self.bank = Bank(self.clock)
        self.inbox = Inbox()
        self.deploy()

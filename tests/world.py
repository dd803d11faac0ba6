"""A hub for tests: the real flows and ledger on moto, a scripted core, a clock that one turns."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from relayhub.answers import AnswerStore
from relayhub.controls import Controls
from relayhub.core import Answered, CoreRequest, Doubt, Finding, NotSent, SendOutcome
from relayhub.credentials import CredentialsError
from relayhub.flows.steps import Ticket
from relayhub.hub import Hub
from relayhub.ledger import Ledger, Outcome
from relayhub.message import Answer
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.replies import Reply
from relayhub.row import Entry, Row, encode, from_item
from relayhub.settings import Settings, load
from relayhub.states import Code, Event, Verdict, Why
from relayhub.upkeep import Upkeep
from tests.emulated import (
    FaultyClient,
    aws,
    client,
    make_bucket,
    make_queue,
    make_table,
    never_arrives,
    refused,
    reply_lost,
)
from tests.environment import BUCKET, ENVIRONMENT, TABLE
from tests.events import get_event, post_event

__all__ = [
    "BUCKET",
    "ENVIRONMENT",
    "EXECUTED",
    "REFUSED",
    "START_MS",
    "TABLE",
    "TIMEOUT_MS",
    "Clock",
    "KilledError",
    "ScriptedCore",
    "World",
    "aws",
    "document",
    "get_event",
    "never_arrives",
    "post_event",
    "refused",
    "reply_lost",
]

START_MS: Final = 1_800_000_000_000
TIMEOUT_MS: Final = 25_000
EXECUTED: Final = Answer(200, "application/json", b'{"code":"0000","reference":"R1"}', "0000")
REFUSED: Final = Answer(422, "application/json", b'{"code":"B201"}', "B201")


class KilledError(BaseException):
    """Ends a function as the platform does: nothing after it runs, no handler catches it."""


@dataclass
class Clock:
    """Epoch milliseconds that only move when told to."""

    ms: int = START_MS

    def __call__(self) -> int:
        """Return now."""
        return self.ms

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.ms += int(seconds * 1000)


@dataclass
class ScriptedCore:
    """A core that does as it is told, at the seam that the flows use; executes by default."""

    clock: Clock
    outcomes: list[SendOutcome] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    sent: list[CoreRequest] = field(default_factory=list)
    within_s: list[float] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    during: list[Callable[[], object]] = field(default_factory=list)
    during_ask: list[Callable[[], object]] = field(default_factory=list)
    unprepared: bool = False

    def prepare(self) -> None:
        """Do nothing, or say that the secret cannot be read."""
        if self.unprepared:
            raise CredentialsError("the core's secret is not JSON with unique names")

    def send(self, request: CoreRequest, *, within_s: float) -> SendOutcome:
        """Take the request and give the next outcome."""
        assert within_s > 0
        self.sent.append(request)
        self.within_s.append(within_s)
        if self.during:
            self.during.pop(0)()
        return self.outcomes.pop(0) if self.outcomes else Answered(EXECUTED)

    def ask(self, guid: str, *, inquiry_id: str, within_s: float) -> Finding:
        """Give the next finding, by default an undecided one."""
        del inquiry_id, within_s
        self.asked.append(guid)
        if self.during_ask:
            self.during_ask.pop(0)()
        default = Finding(Verdict.UNDECIDED, None, "core_unreachable")
        return self.findings.pop(0) if self.findings else default


class World:
    """One hub and everything around it."""

    def __init__(self, **changes: Any) -> None:
        self.clock = Clock()
        self.dynamo = FaultyClient(client("dynamodb"), self.clock)
        self.switchboard = FaultyClient(
            client("dynamodb"), self.clock
        )  # For the control row alone.
        self.sqs = FaultyClient(client("sqs"))
        self.s3 = FaultyClient(client("s3"))
        self.core = ScriptedCore(self.clock)
        self.steps: list[tuple[Entry, Row]] = []
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self._ids = map("claim-{}".format, itertools.count(1))
        self._lock = threading.Lock()
        make_table()
        make_bucket()
        self.queue_url = make_queue()
        self.rejects_url = make_queue("relayhub-hint-rejects")
        self.intake_url = make_queue("relayhub-intake")
        self.intake_rejects_url = make_queue("relayhub-intake-rejects")
        self.hub = self.make_hub(replace(load(ENVIRONMENT), **changes))

    def make_hub(self, settings: Settings) -> Hub:
        """Return a hub on this world under other settings, as after a deploy."""
        return Hub(
            settings=settings,
            ledger=Ledger(
                self.dynamo,
                TABLE,
                shards=settings.shards,
                on_step=lambda entry, row: self.steps.append((entry, row)),
                pause=lambda _: None,
            ),
            upkeep=Upkeep(
                self.dynamo,
                TABLE,
                now_ms=self.clock,
                skew_s=settings.clock_skew_s,
                pause=lambda _: None,
            ),
            controls=Controls(self.switchboard, TABLE, now_ms=self.clock, pause=lambda _: None),
            core=self.core,
            hints=HintQueue(self.sqs, self.queue_url, self.rejects_url),
            intake=IntakeQueue(self.sqs, self.intake_url, self.intake_rejects_url),
            store=AnswerStore(self.s3, BUCKET),
            now_ms=self.clock,
            new_id=self.new_id,
            chance=lambda: 0.5,
            note=lambda what, **facts: self.notes.append((what, facts)),
        )

    def deploy(self, **changes: Any) -> None:
        """Go on under other settings."""
        self.hub = self.make_hub(replace(self.hub.settings, **changes))

    def new_id(self) -> str:
        """Return the next id; one thread at a time."""
        with self._lock:
            return next(self._ids)

    def row(self, guid: str = "G-1") -> Row | None:
        """Return the row as the table holds it."""
        item = self.item(guid)
        return from_item(item) if item else None

    def item(self, guid: str = "G-1") -> dict[str, Any]:
        """Return the item as the table holds it; empty if there is none."""
        key = {"guid": {"S": guid}}
        found = client("dynamodb").get_item(TableName=TABLE, Key=key, ConsistentRead=True)
        return dict(found.get("Item", {}))

    def held(self, guid: str = "G-1") -> Row:
        """Return the row, which must be there."""
        row = self.row(guid)
        assert row is not None, f"no row of {guid}"
        return row

    def edit(self, guid: str = "G-1", **values: Any) -> None:
        """Change attributes past all rules, as a fault or another version might; None removes."""
        sets = {name: value for name, value in values.items() if value is not None}
        removed = [f"#{name}" for name in values if name not in sets]
        parts = [
            "SET " + ", ".join(f"#{name} = :{name}" for name in sets) if sets else "",
            "REMOVE " + ", ".join(removed) if removed else "",
        ]
        coded = {f":{name}": encode(value) for name, value in sets.items()}
        client("dynamodb").update_item(
            TableName=TABLE,
            Key={"guid": {"S": guid}},
            UpdateExpression=" ".join(parts).strip(),
            ExpressionAttributeNames={f"#{name}": name for name in values},
            **({"ExpressionAttributeValues": coded} if coded else {}),
        )

    def fail(self, guid: str = "G-1", **more: Any) -> Row:
        """Make a FAILED row by a POST that the core never got."""
        self.core.outcomes.append(NotSent("connect_refused"))
        self.post(guid, **more)
        return self.held(guid)

    def doubt(self, guid: str = "G-1", **more: Any) -> Row:
        """Make an UNKNOWN row by a POST that the core left without an answer."""
        self.core.outcomes.append(Doubt("no_answer", aborted=True))
        self.post(guid, **more)
        return self.held(guid)

    def kill(self, guid: str = "G-1", **more: Any) -> Row:
        """Leave a SENT row by a POST whose function is killed after the bytes left."""

        def die() -> None:
            raise KilledError

        self.core.during.append(die)
        try:
            self.post(guid, **more)
        except KilledError:
            return self.held(guid)
        raise AssertionError("nobody called the core")

    def move(self, event: Event, guid: str = "G-1", by: str = "resolver", **changes: Any) -> Row:
        """Take a step as another of the hub's functions or a person would; return the row."""
        self.hub.ledger.move(self.held(guid), event, by, self.clock(), **changes)
        return self.held(guid)

    def abandon(self, guid: str = "G-1") -> Row:
        """Move a SENT row to UNKNOWN, as the resolver does past dead_at."""
        due_at = self.clock() + 15_000
        return self.move(Event.ABANDONED, guid, code=Code.E901, doubted=True, due_at=due_at)

    def not_found(self, guid: str = "G-1") -> Row:
        """Move an UNKNOWN row to FAILED, as the resolver does on a NOT_FOUND."""
        due_at = self.clock() + 10_000
        return self.move(Event.NOT_FOUND, guid, code=Code.E902, why=Why.NOT_FOUND, due_at=due_at)

    def claim_again(self, guid: str = "G-1", by: str = "reprocessor") -> Outcome:
        """Claim a FAILED row as another function would."""
        row = self.held(guid)
        ticket = Ticket(self.new_id(), self.clock(), self.clock() + TIMEOUT_MS)
        changes: dict[str, Any] = {"attempt": row.attempt + 1, "code": None, "why": None}
        fields = ticket.fields(self.hub)
        return self.hub.ledger.move(row, Event.CLAIMED, by, self.clock(), **changes, **fields)

    def hints(self) -> list[dict[str, Any]]:
        """Take the hints off the queue."""
        found = client("sqs").receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10)
        return [json.loads(each["Body"]) for each in found.get("Messages", [])]

    def noted(self, what: str) -> int:
        """Return how often the hub noted it."""
        return sum(1 for note, _ in self.notes if note == what)

    def post(self, guid: str | None = "G-1", body: bytes = b'{"amount":100}', **more: Any) -> Reply:
        """Send a POST of a channel through the handler, with a fresh function's whole time."""
        return self.call(post_event(guid, body, **more))

    def get(self, guid: str = "G-1", channel: str = "atm") -> Reply:
        """Ask for the status of a GUID."""
        return self.call(get_event(guid, channel))

    def call(self, event: dict[str, Any], *, left_ms: int = TIMEOUT_MS) -> Reply:
        """Hand an event to the relay's handler."""
        from functions.relay.handler import answer  # noqa: PLC0415 - it builds its hub at import

        return answer(self.hub, event, self.clock() + left_ms)


def document(reply: Reply) -> dict[str, Any]:
    """Return the reply's JSON object."""
    loaded = json.loads(reply.body)
    assert isinstance(loaded, dict)
    return loaded

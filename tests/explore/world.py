"""The hub as it is deployed, on a table, queues, a core and a clock that the explorer holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from functions.relay.handler import answer as relay_answer
from functions.relay.messages import NotTakenError, take_all
from functions.reprocessor.handler import take as take_hint
from relayhub.answers import AnswerStore
from relayhub.core import HttpCore
from relayhub.credentials import Credentials
from relayhub.flows import purge, reprocess, resolve
from relayhub.hub import Hub
from relayhub.ledger import Ledger
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.replies import Reply
from relayhub.row import Entry, Row
from relayhub.settings import Settings
from relayhub.upkeep import Upkeep, UpkeepError
from tests.explore import events, moments
from tests.explore.aws import Aws
from tests.explore.bank import AT_LAST, NEVER, Bank, Habits
from tests.explore.chooser import Chooser
from tests.explore.coverage import Coverage
from tests.explore.net import Net
from tests.explore.rules import Rules
from tests.explore.scheduler import Actor, Bounds, Move, Scheduler, ViolationError
from tests.explore.table import Table

START_MS: Final = 1_800_000_000_000
HINTS: Final = "hints"
INTAKE: Final = "intake"
_TIMEOUT_MS: Final = {"post": 25_000, "cancel": 25_000, "status": 25_000}
JOB_MS: Final = 60_000
FOR_EVER_MS: Final = 10**12
# No secret, and one context for all: making one reads the machine's certificates.
_CREDENTIALS: Final = Credentials("", None, monotonic=lambda: 0.0)


@dataclass(frozen=True)
class Setup:
    """A set-up: who takes part, what core and clocks do, how far a schedule may go."""

    name: str
    about: str
    cast: Callable[[World], None]
    bounds: Bounds
    settings: Settings
    habits: Habits = field(default_factory=Habits)
    later: Settings | None = None  # Of the functions of the next deploy.
    moments: tuple[str, ...] = moments.DEFAULT  # To which of them time may pass.
    reads_index_at_points: bool = False  # Whether others may go on before a read of the index.
    late_ms: int = 0  # How long a holder may still write after its connection was closed.
    has_wrong_clock: bool = False  # Whether a clock is off by more than the settings allow.
    keeps_past: bool = False  # Whether the ledger can be restored.
    has_nets: bool = True  # Whether the nets under the bound of `ask_after` are as shipped.
    has_end: bool = True  # Whether time passes after the actors have ended, until all is settled.
    only_doubles: bool = False  # Whether the core breaks its contract, so that words may be wrong.


class Other(Protocol):
    """Somebody outside the hub who goes on after the actors have ended, until he is through."""

    def goes_on(self) -> bool:
        """Do what is to be done now; tell whether more is."""

    def state(self) -> object:
        """Return what decides how he goes on."""

    def moves(self) -> Iterator[Move]:
        """Return what he may do by himself."""

    def executed(self, guid: str) -> None:
        """Hear of an execution."""

    def check_end(self) -> None:
        """Raise ViolationError if what he was told does not agree with what is."""


class World:
    """One schedule's world."""

    def __init__(self, setup: Setup, chooser: Chooser, coverage: Coverage) -> None:
        self.setup = setup
        self.ms = START_MS
        self.table = Table()
        self.past: list[dict[str, Any]] = []  # Copies of the table, one after each write.
        self.others: list[Other] = []  # Who else must come to an end.
        self.deploy = ""  # Which settings run the jobs after the end: "" or "later".
        self._deploy_of: dict[str, str] = {}
        self._clock_of: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._time_moves_left = setup.bounds.time_moves
        self._is_late: set[str] = set()
        self._moment: tuple[object, int | None] = (None, None)
        self.scheduler = Scheduler(chooser, setup.bounds, coverage, self.now_ms)
        self.scheduler.environment = self._environment
        self.bank = Bank(
            self.scheduler, self.now_ms, self._longest_ms, setup.habits, setup.only_doubles
        )
        self.rules = Rules(
            self.bank,
            setup.settings,
            coverage,
            self.who,
            holder_lives=self._lives,
            has_wrong_clock=setup.has_wrong_clock,
            only_doubles=setup.only_doubles,
        )
        self.bank.on_receipt = self._on_receipt
        self.bank.on_execution = self._on_execution
        self.aws = Aws(
            self.table,
            self.scheduler,
            self.rules,
            self.now_ms,
            setup.reads_index_at_points,
            self._on_write,
        )
        net = Net(
            self.scheduler,
            self.bank,
            self.now_ms,
            self.advance_to,
            on_sent=self.rules.sent,
            on_heard=self.rules.heard,
            on_close=self._on_close,
        )
        self.sockets = net.as_module()
        self.hubs = {"": self._make_hub(setup.settings)}
        if setup.later is not None:
            self.hubs["later"] = self._make_hub(setup.later)

    def close(self) -> None:
        """Leave nothing that only the collector of cycles could free."""
        self.scheduler.end()
        for part in (self.scheduler, self.aws, self.rules, self.bank, self):
            vars(part).clear()

    # --- Time ---

    def now_ms(self) -> int:
        """Return the virtual time, epoch ms."""
        return self.ms

    def clock(self) -> int:
        """Return what the clock of the current actor shows."""
        return self.ms + self._clock_of.get(self.who(), 0)

    def advance_to(self, ms: int) -> None:
        """Let time pass; whoever is past his end is ended by the platform."""
        if ms > self.ms:
            self.ms = ms
            self.scheduler.kill_overdue()

    def next_moment(self, names: tuple[str, ...]) -> int | None:
        """Return the next time at which something becomes due, believable or over."""
        ahead_ms = 0 if self.scheduler.is_free else max(self._clock_of.values(), default=0)
        found = moments.following(
            self.table.items.values(), self.setup.settings, names, self.ms + ahead_ms
        )
        return None if found is None else found - ahead_ms

    # --- Actors ---

    def who(self) -> str:
        """Return the name of the current actor; empty after the end."""
        return self.scheduler.current.name if self.scheduler.current else ""

    def add(
        self,
        kind: str,
        run: Callable[[], object],
        *,
        after: str = "",
        deploy: str = "",
        clock_ms: int = 0,
        timeout_ms: int = 0,
    ) -> Actor:
        """Let a function take part; `clock_ms` is how far its clock is ahead."""
        number = 1 + sum(each.kind == kind for each in self.scheduler.actors)
        name = f"{kind}-{number}"
        timeout_ms = timeout_ms or _TIMEOUT_MS.get(kind, JOB_MS)
        actor = Actor(name, kind, run, timeout_ms, tuple(after.split()))
        self.scheduler.add(actor)
        if deploy:
            self._deploy_of[name] = deploy
        if clock_ms:
            self._clock_of[name] = clock_ms
        return actor

    @property
    def hub(self) -> Hub:
        """The hub of the deploy that the current actor belongs to."""
        who = self.who()
        return self.hubs[self._deploy_of.get(who, "") if who else self.deploy]

    def call(self, event: dict[str, Any], guid: str) -> Reply | None:
        """Hand an event to the relay's handler and check what it says; None: nobody hears it."""
        self.rules.begins()
        reply = relay_answer(self.hub, event, self.clock() + _TIMEOUT_MS["post"])
        if self.scheduler.current is not None and self.scheduler.current.is_over:
            return None
        self.scheduler.tell("told", f"{reply.code} of {guid} ({reply.status})")
        self.rules.told(guid, reply)
        return reply

    def resolver(self) -> object:
        """Run the resolver."""
        return resolve.run(self.hub, self.clock() + JOB_MS)

    def sweep(self) -> object:
        """Run the reprocessor's sweep."""
        return reprocess.sweep(self.hub, self.clock() + JOB_MS)

    def reprocessor(self) -> None:
        """Hand the reprocessor the oldest hint, if there is one."""
        for message in self.aws.receive(HINTS, 1):
            event = {"messageId": "1", "body": message.body}
            if take_hint(self.hub, event, self.clock() + JOB_MS):
                self.aws.acknowledge(HINTS, message)

    def messages(self, count: int = 2) -> None:
        """Hand the message function what the intake queue holds."""
        batch = self.aws.receive(INTAKE, count)
        if not batch:
            return
        answer = take_all(self.hub, events.of_queue(batch), self.clock() + JOB_MS)
        given_back = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        for number, message in enumerate(batch):
            if str(number) not in given_back:
                self._taken(events.guid_of(message))
                self.aws.acknowledge(INTAKE, message)

    def kafka(self, topic: events.Topic) -> None:
        """Hand the message function the next records of a topic's only partition."""
        first, batch = topic.poll()
        if not batch:
            return
        try:
            answer = take_all(self.hub, topic.event(first, batch), self.clock() + JOB_MS)
        except NotTakenError:
            return
        failed = [each["itemIdentifier"]["offset"] for each in answer["batchItemFailures"]]
        end = min(failed, default=first + len(batch))
        for offset in range(first, end):
            self._taken(topic.guid(offset))
        if self.scheduler.point("commit offset", ("lost",)) != "lost":
            topic.offset = max(topic.offset, end)

    def purger(self) -> None:
        """Run the purger; one that cannot read the table fails, and the next one goes on."""
        with contextlib.suppress(UpkeepError):
            purge.run(self.hub, self.clock() + JOB_MS)

    def _taken(self, guid: str) -> None:
        is_aside = any(guid in each.body for each in self.aws.queues.get("rejects", ()))
        self.rules.taken(guid, self.table.items.get(guid), is_aside=is_aside)

    # --- What the hub's doubles ask ---

    def _longest_ms(self) -> int:
        longest_s = self.setup.habits.longest_s
        return 1000 * (self.hub.settings.core_longest_s if longest_s is None else longest_s)

    def _on_receipt(self, guid: str, number: int) -> None:
        self.rules.received(guid, number, self.table.items.get(guid))

    def _on_execution(self, guid: str) -> None:
        self.rules.executed(guid)
        for other in self.others:
            other.executed(guid)

    def _on_write(self) -> None:
        if self.setup.keeps_past:
            self.past.append(dict(self.table.items))

    def _on_close(self, word: str) -> None:
        """Let the holder's writes come late: its sending has ended in time, and only that."""
        actor = self.scheduler.current
        if self.setup.late_ms and word == "answer" and actor and actor.name not in self._is_late:
            self._is_late.add(actor.name)
            actor.dead_at += self.setup.late_ms

    def _lives(self, claim_id: str) -> bool:
        if self.setup.late_ms or self.setup.has_wrong_clock:
            return False
        name = claim_id.rpartition(".")[0]
        return any(each.name == name and not each.is_over for each in self.scheduler.actors)

    def _make_hub(self, settings: Settings) -> Hub:
        no_pause: Callable[[int], None] = lambda _: None  # noqa: E731
        return Hub(
            settings=settings,
            ledger=Ledger(
                self.aws, "t", shards=settings.shards, on_step=self._on_step, pause=no_pause
            ),
            upkeep=Upkeep(
                self.aws, "t", now_ms=self.clock, skew_s=settings.clock_skew_s, pause=no_pause
            ),
            core=HttpCore(
                settings.core_url,
                connect_s=settings.core_connect_s,
                codes=settings.definite_codes,
                answer_bytes_max=settings.answer_bytes_max,
                credentials=_CREDENTIALS,
                now_ms=self.clock,
                monotonic=lambda: self.ms / 1000,
            ),
            hints=HintQueue(self.aws, HINTS, "rejects"),
            intake=IntakeQueue(self.aws, INTAKE, "rejects"),
            store=AnswerStore(None, "none"),
            now_ms=self.clock,
            new_id=self._new_id,
            chance=lambda: 0.5,
            sleep=lambda seconds: self.advance_to(self.ms + int(seconds * 1000) + 1),
            note=self._note,
        )

    def _new_id(self) -> str:
        """Return an id by actor, so that the order of the actors does not show in it."""
        name = self.who() or "settle"
        self._ids[name] = self._ids.get(name, 0) + 1
        return f"{name}.{self._ids[name]}"

    def _on_step(self, entry: Entry, row: Row) -> None:
        del row
        self.scheduler.coverage.steps[str(entry["event"]), entry.get("from")] += 1

    def _note(self, what: str, **facts: Any) -> None:
        if what in {"row_fault", "fault"}:
            raise ViolationError(f"a function broke: {what} {facts}")

    # --- What the environment may do ---

    def _environment(self) -> Iterator[Move]:
        yield from self.bank.moves()
        for other in self.others:
            yield from other.moves()
        for place in range(len(self.aws.late)):
            yield partial(self.aws.apply_late, place)
        if self._time_moves_left > 0 and self._next_moment() is not None:
            yield self._pass_time

    def _next_moment(self) -> int | None:
        """Return where time may pass to; looked for again only when something has changed."""
        key = (self.aws.writes, self.ms)
        if self._moment[0] != key:
            self._moment = (key, self.next_moment(self.setup.moments))
        return self._moment[1]

    def _pass_time(self) -> None:
        moment = self._next_moment()
        assert moment is not None
        self._time_moves_left -= 1
        self.scheduler.tell_of_environment(f"time passes: {(moment - self.ms) / 1000:g} s")
        self.advance_to(moment)

    def decide(self) -> None:
        """Choose what becomes of requests that still wait within the core, and of late writes."""
        for attempt in self.bank.waiting():
            what = f"attempt {attempt.number} of {attempt.guid}"
            if self.scheduler.decide(what, (NEVER, AT_LAST)) == NEVER:
                attempt.until = -1
        while self.aws.late:
            what = self.aws.late[0][0]
            if self.scheduler.decide(what, ("is lost", "is made")) == "is made":
                self.aws.apply_late(0)
            else:
                self.aws.late.pop(0)

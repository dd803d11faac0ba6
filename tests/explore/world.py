"""The hub as it is deployed, on a table, queues, a core and a clock that the explorer holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from functions.relay.handler import answer as relay_answer
from functions.relay.messages import NotTakenError, take_all
from functions.reprocessor.handler import take as take_hint
from relayhub.flows import purge, reprocess, resolve
from relayhub.hub import Hub
from relayhub.replies import Reply
from relayhub.row import Entry, Row
from relayhub.upkeep import UpkeepError
from tests.explore import events, moments
from tests.explore.aws import Aws
from tests.explore.bank import AT_LAST, NEVER, Bank
from tests.explore.chooser import Chooser
from tests.explore.coverage import Coverage
from tests.explore.hubs import HINTS, INTAKE, REJECTS, make_hub
from tests.explore.net import Net
from tests.explore.rules import Rules
from tests.explore.scheduler import Actor, Move, Scheduler, ViolationError
from tests.explore.setup import Other, Setup
from tests.explore.table import Table

START_MS: Final = 1_800_000_000_000
RELAY_MS: Final = 25_000
JOB_MS: Final = 60_000
FOR_EVER_MS: Final = 10**12
_BY_HTTP: Final = {"post", "cancel", "status"}


class World:
    """One schedule's world."""

    def __init__(self, setup: Setup, chooser: Chooser, coverage: Coverage) -> None:
        self.setup = setup
        self.ms = START_MS
        self.table = Table()
        self.first: dict[str, Any] = {}  # The table as the cast has put it.
        self.past: list[dict[str, Any]] = []  # Copies of it, one after each write.
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
        self.hubs = {"": make_hub(self, setup.settings)}
        if setup.later is not None:
            self.hubs["later"] = make_hub(self, setup.later)

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
        settings = tuple(hub.settings for hub in self.hubs.values())
        found = moments.following(self.table.items.values(), settings, names, self.ms + ahead_ms)
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
        timeout_ms = timeout_ms or (RELAY_MS if kind in _BY_HTTP else JOB_MS)
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
        reply = relay_answer(self.hub, event, self.clock() + RELAY_MS)
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
        is_aside = any(guid in each.body for each in self.aws.queues.get(REJECTS, ()))
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

    def new_id(self) -> str:
        """Return an id by actor, so that the order of the actors does not show in it."""
        name = self.who() or "settle"
        self._ids[name] = self._ids.get(name, 0) + 1
        return f"{name}.{self._ids[name]}"

    def stepped(self, entry: Entry, row: Row) -> None:
        """Hear of a step that the ledger has written."""
        del row
        self.scheduler.coverage.steps[str(entry["event"]), entry.get("from")] += 1

    def noted(self, what: str, **facts: Any) -> None:
        """Hear what the hub notes."""
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

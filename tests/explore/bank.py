"""A core that is not idempotent: it executes what it receives, when it likes.

A request that it received may be executed at any moment until its longest time is over, whether its
sender lives or not, and whether an answer comes or not. It remembers what it executed and refused,
unless a set-up makes it forget. It checks the first rule of all by itself: a GUID may come again
only if nothing that came before was executed, or still can be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tests.explore.scheduler import Move, Scheduler, ViolationError

EXECUTES: Final = "executes"
SILENT: Final = "executes, silent"
WAITS: Final = "takes its time"
REFUSES: Final = "refuses"
GATEWAY: Final = "executes, a gateway says 502"
WAYS: Final = (EXECUTES, SILENT, WAITS, REFUSES)

NEVER: Final = "is never executed"
AT_LAST: Final = "is executed at the last moment"


@dataclass(eq=False)
class Line:
    """One connection: what came, and what goes back."""

    came: bytes = b""
    goes: bytes = b""


@dataclass(eq=False)
class Attempt:
    """A request that arrived; it can be executed until `until`, epoch ms."""

    guid: str
    number: int
    until: int
    arrived_at: int
    fate: str = WAITS
    answer: bytes = b""
    line: Line | None = None


@dataclass(frozen=True)
class Habits:
    """What the core of a set-up does."""

    ways: tuple[str, ...] = WAYS
    lags: bool = False  # Whether the inquiry may not yet know what was executed.
    keeps_refusals: bool = True
    memory_ms: int | None = None  # After so long the inquiry has forgotten a request.
    longest_s: int | None = None  # None: as the settings of the sender say.
    admits: bool = False  # Whether it always says of what waits that it is at it.
    caches: bool = False  # Whether something on the way may repeat an old verdict.


@dataclass
class Bank:
    """The core; `longest_ms` is how long what arrives now may take."""

    scheduler: Scheduler
    now_ms: Callable[[], int]
    longest_ms: Callable[[], int]
    habits: Habits = field(default_factory=Habits)
    only_doubles: bool = False  # Whether only a second execution counts, and not what leads to it.
    on_receipt: Callable[[str, int], None] = lambda *_: None
    on_execution: Callable[[str], None] = lambda _: None
    attempts: list[Attempt] = field(default_factory=list)
    verdicts: dict[str, bytes] = field(default_factory=dict)  # The last inquiry's answer, by GUID.

    def executions(self, guid: str) -> int:
        """Return how often the GUID was executed."""
        return sum(each.guid == guid and each.fate == EXECUTES for each in self.attempts)

    def answers(self, guid: str) -> set[bytes]:
        """Return the bodies that the core has ever given for the GUID."""
        return {each.answer for each in self.attempts if each.guid == guid and each.answer}

    def waiting(self) -> list[Attempt]:
        """Return what can still be executed."""
        now_ms = self.now_ms()
        return [each for each in self.attempts if each.fate == WAITS and now_ms <= each.until]

    def in_play(self) -> frozenset[str]:
        """Return the GUIDs that were executed, or still may be."""
        now_ms = self.now_ms()
        return frozenset(
            each.guid
            for each in self.attempts
            if each.fate == EXECUTES or (each.fate == WAITS and now_ms <= each.until)
        )

    def moves(self) -> Iterator[Move]:
        """Return the late executions that may happen now."""
        for each in self.waiting():
            yield partial(self._execute_late, each)

    def _execute_late(self, attempt: Attempt) -> None:
        what = f"the core executes attempt {attempt.number} of {attempt.guid}"
        self.scheduler.tell_of_environment(what)
        self.execute(attempt)

    def receive(self, line: Line, guid: str, number: int) -> None:
        """Take a whole request."""
        self._expect_first(guid, number)
        self.on_receipt(guid, number)
        now_ms = self.now_ms()
        attempt = Attempt(guid, number, now_ms + self.longest_ms(), now_ms, line=line)
        self.attempts.append(attempt)
        way = self.scheduler.choose("the core", self.habits.ways)
        if way == REFUSES:
            attempt.fate, attempt.answer = REFUSES, _json({"code": "B201", "guid": guid})
            line.goes = http(422, attempt.answer)
        elif way != WAITS:
            if way != EXECUTES:
                attempt.line = None
            if way == GATEWAY:
                line.goes = http(502, b"{}")
            self.execute(attempt)

    def _expect_first(self, guid: str, number: int) -> None:
        if self.only_doubles:
            return
        now_ms = self.now_ms()
        for before in self.attempts:
            if before.guid != guid:
                continue
            sent_again = f"{guid} was sent again (attempt {number})"
            if before.fate == WAITS and now_ms <= before.until:
                raise ViolationError(f"{sent_again} while attempt {before.number} may be executed")
            if before.fate == EXECUTES or (before.fate == REFUSES and self.habits.keeps_refusals):
                raise ViolationError(f"{sent_again} after the core {before.fate} it")

    def execute(self, attempt: Attempt) -> None:
        """Execute it; an answer goes to whoever still listens."""
        if self.executions(attempt.guid):
            raise ViolationError(f"DOUBLE: {attempt.guid} is executed a second time")
        attempt.fate = EXECUTES
        reference = f"R-{attempt.guid}-{attempt.number}"
        attempt.answer = _json({"code": "0000", "reference": reference})
        self.on_execution(attempt.guid)
        if attempt.line is not None:
            attempt.line.goes = http(200, attempt.answer)

    def ask(self, line: Line, guid: str, inquiry_id: str, *, is_cached: bool) -> None:
        """Answer an inquiry; a cache repeats the last answer, which names another inquiry."""
        if is_cached:
            line.goes = self.verdicts[guid]
            return
        known = self._known(guid)
        word = self.scheduler.choose("the inquiry", self._words(guid, known))
        head = {"X-GUID": guid, "X-Inquiry-Id": inquiry_id, "X-Verdict": word}
        body = b"{}"
        if word == "PROCESSED":
            head["X-Original-Status"] = "200" if known[-1].fate == EXECUTES else "422"
            body = known[-1].answer
        status = {"PROCESSED": 200, "NOT_FOUND": 404, "PROCESSING": 202}[word]
        line.goes = http(status, body, head)
        if self.habits.caches:
            self.verdicts[guid] = line.goes

    def _known(self, guid: str) -> list[Attempt]:
        habits, now_ms = self.habits, self.now_ms()
        return [
            each
            for each in self.attempts
            if each.guid == guid
            and (each.fate == EXECUTES or (each.fate == REFUSES and habits.keeps_refusals))
            and (habits.memory_ms is None or now_ms < each.arrived_at + habits.memory_ms)
        ]

    def _words(self, guid: str, known: list[Attempt]) -> tuple[str, ...]:
        if known:
            may_lag = self.habits.lags and self.now_ms() <= known[-1].until
            return ("PROCESSED", "NOT_FOUND") if may_lag else ("PROCESSED",)
        if any(each.guid == guid for each in self.waiting()):
            return ("PROCESSING",) if self.habits.admits else ("NOT_FOUND", "PROCESSING")
        return ("NOT_FOUND",)


def _json(document: dict[str, str]) -> bytes:
    return json.dumps(document).encode()


def http(status: int, body: bytes, head: dict[str, str] | None = None) -> bytes:
    """Return a complete answer as it goes over the line."""
    lines = [f"HTTP/1.1 {status} x", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (head or {}).items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body

"""The obedient channel: a customer's one business act, by what the answers tell and nothing else.

It reads `executed`, `resend`, `new_guid`, `ask_after` and `valid_until` of the hub's document, and
of the core's own answer what its code means; whatever has no code is E901. At each step it does one
of the things that it may: resend, ask, cancel, start anew under a new GUID, give up. Whatever it
chooses, the act must not be executed twice over all its GUIDs; if it did not give up, exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from relayhub.replies import Reply
from tests.events import get_event, post_event
from tests.explore import words
from tests.explore.casts import cancel_event
from tests.explore.rows import BODY
from tests.explore.scheduler import Actor, Move, ViolationError
from tests.explore.words import NO_WORD, Words
from tests.explore.world import FOR_EVER_MS, World

SENDS: Final = "sends"
ASKS: Final = "asks"
CANCELS: Final = "cancels"
GIVES_UP: Final = "gives up"  # By a cancel, never by silence.
ANEW: Final = "starts anew"
LEAVES: Final = "leaves it"

EXECUTED: Final = "executed"
GIVEN_UP: Final = "given up"
TO_A_PERSON: Final = "left to a person"


@dataclass(eq=False)
class Customer:
    """One act; `steps` is how often the explorer chooses for it before the end."""

    world: World
    name: str
    steps: int
    headers: dict[str, str] = field(default_factory=dict)
    guids: list[str] = field(default_factory=list)
    heard: Words = NO_WORD
    end: str = ""
    wants_out: bool = False
    _calls: Actor | None = None
    _is_impatient: bool = False

    def run(self) -> None:
        """Live through the explored part of the act."""
        self._begin()
        while self.steps > 0 and not self.end:
            self.steps -= 1
            self._do(self.world.scheduler.choose("the customer", self._ways()))

    def goes_on(self) -> bool:
        """Take the next sensible step after the actors have ended; tell whether more are due."""
        if not self.guids or self.end:
            return False
        if any("hold" in self.world.table.items.get(guid, {}) for guid in self.guids):
            self.end = TO_A_PERSON
            return False
        waits_until_ms = self.heard.ask_after_ms or 0
        if self.heard.executed == "unknown" and waits_until_ms > self.world.ms:
            return True
        self._do(self._ways()[0])
        return not self.end

    def state(self) -> object:
        """Return what decides how the act goes on."""
        return (tuple(self.guids), self.heard, self.end, self.wants_out)

    def moves(self) -> Iterator[Move]:
        """Let it stop waiting for an answer; the call goes on without it."""
        scheduler = self.world.scheduler
        if self._calls is not None and not self._is_impatient and scheduler.faults_left > 0:
            yield self._stop_waiting

    def executed(self, guid: str) -> None:
        """Hear of an execution, as the customer's account does."""
        if guid in self.guids and self._executions() > 1:
            raise ViolationError(f"PAID TWICE: {guid} is executed beside {self.guids}")

    def check_end(self) -> None:
        """Check that the act came to an end, and that what it came to is what happened."""
        self.world.scheduler.coverage.ends[f"act {self.end or 'open'}"] += 1
        count = self._executions()
        right = {EXECUTED: count == 1, GIVEN_UP: count == 0, TO_A_PERSON: count <= 1}
        if self.guids and not right.get(self.end, False):
            ended = self.end or "not at an end"
            raise ViolationError(f"{self.name}'s act is {ended}, and was executed {count} times")

    def _executions(self) -> int:
        return sum(self.world.bank.executions(guid) for guid in self.guids)

    def _begin(self) -> None:
        self.guids.append(f"{self.name}{len(self.guids) + 1}")
        self.heard = NO_WORD
        self._do(SENDS)

    def _ways(self) -> tuple[str, ...]:
        """Return what the last answer allows, the most sensible first."""
        if self.heard.new_guid == "yes":
            return (LEAVES,) if self.wants_out else (ANEW, LEAVES)
        if self.wants_out:
            return (CANCELS, ASKS)
        return (SENDS, ASKS, CANCELS, GIVES_UP)

    def _do(self, what: str) -> None:
        self.wants_out = self.wants_out or what == GIVES_UP
        if what == ANEW:
            self._begin()
        elif what == LEAVES:
            self.end = GIVEN_UP
        else:
            self.heard = self._call(what)
            self._look_at(self.heard)

    def _look_at(self, heard: Words) -> None:
        if heard.executed == "yes":
            self.end = EXECUTED
        elif heard.executed == "unknown" and heard.resend == "no":
            self.end = TO_A_PERSON

    def _call(self, what: str) -> Words:
        guid, world = self.guids[-1], self.world
        kind, event = {
            SENDS: ("post", post_event(guid, BODY, headers=self.headers)),
            ASKS: ("status", get_event(guid)),
        }.get(what, ("cancel", cancel_event(guid)))
        if world.scheduler.is_free:
            return words.of(world.call(event, guid))
        replies: list[Reply | None] = []
        self._calls = world.add(kind, partial(self._hear, replies, event, guid))
        world.scheduler.wait(self._waits)
        self._calls, self._is_impatient = None, False
        how = world.scheduler.ends(f"hears of its {kind}", ("lost",) if replies else ())
        return NO_WORD if how == "lost" or not replies else words.of(replies[0])

    def _hear(self, replies: list[Reply | None], event: dict[str, Any], guid: str) -> None:
        replies.append(self.world.call(event, guid))

    def _waits(self) -> bool:
        return self._calls is not None and not self._calls.is_over and not self._is_impatient

    def _stop_waiting(self) -> None:
        self.world.scheduler.tell_of_environment(f"{self.name} stops waiting")
        self.world.scheduler.faults_left -= 1
        self._is_impatient = True


def customer(
    world: World, name: str = "A", steps: int = 3, headers: dict[str, str] | None = None
) -> None:
    """Let a customer live through one act."""
    act = Customer(world, name, steps, headers or {})
    world.others.append(act)
    world.add("customer", act.run, timeout_ms=FOR_EVER_MS)

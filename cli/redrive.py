"""Moves dead letters back one after the other, at a pace, and keeps what became of each.

The rule that it protects: a message is deleted only after its copy was sent, and what a run ends
over is shown to others again. One message is taken at a time, so a run that is killed hides one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from cli.command import Here
from cli.dead_letters import DeadLetters, Letter, attributes_back
from cli.exits import CommandError

# What fails three times in a row fails for all: a permission, the network.
_FAILURES_MAX: Final = 3
# A run sees what it left again when that is no longer hidden; it must not do so for ever.
_SEEN_AGAIN_MAX: Final = 1_000


@dataclass
class Pace:
    """Lets so many pass in a second, evenly."""

    here: Here
    per_s: int
    last_ms: int | None = None

    def wait(self) -> None:
        """Return when the next one may pass."""
        if self.last_ms is not None:
            passed_s = (self.here.now_ms() - self.last_ms) / 1000
            # A clock that was set back makes it wait no longer than for one.
            if (left_s := min(1 / self.per_s - passed_s, 1 / self.per_s)) > 0:
                self.here.sleep(left_s)
        self.last_ms = self.here.now_ms()


@dataclass
class Redrive:
    """What was taken from the dead letters, and what became of it, by message id."""

    letters: DeadLetters
    pace: Pace
    moved: set[str] = field(default_factory=set)
    left: dict[str, tuple[Letter, str]] = field(default_factory=dict)
    undeleted: dict[str, tuple[Letter, str]] = field(default_factory=dict)
    hidden: dict[str, Letter] = field(default_factory=dict)  # By us, and still in the dead letters.
    failed: int = 0  # In a row.
    has_failed: bool = False
    is_short: bool = False

    def move(self, turns: Iterable[int]) -> None:
        """Move a message at each turn, until there is none. Raises CommandError."""
        for _ in turns:
            letter = self._next()
            if letter is None:
                self.is_short = True
                return
            fault = self._move_one(letter)
            self.failed = self.failed + 1 if fault else 0
            self.has_failed |= bool(fault)
            if self.failed == _FAILURES_MAX:
                raise CommandError(f"{_FAILURES_MAX} in a row failed, the rest was left: {fault}")

    def give_back(self) -> None:
        """Show others at once what is still there; else they would see it by and by."""
        with suppress(CommandError):
            # What was taken last first: the hiding of the first ones may be over.
            for letter in reversed(self.hidden.values()):
                self.letters.give_back(letter)

    def _next(self) -> Letter | None:
        """Return a message that this run has not seen, None if there is none."""
        for _ in range(_SEEN_AGAIN_MAX):
            letter = self.letters.take()
            if letter is None:
                return None
            self.hidden[letter.message_id] = letter
            if letter.message_id in self.moved:
                self._delete(letter)
            elif letter.message_id not in self.left:
                return letter
        return None

    def _move_one(self, letter: Letter) -> str | None:
        """Return what AWS refused, None if it refused nothing."""
        attributes = attributes_back(letter)
        if isinstance(attributes, str):
            self.left[letter.message_id] = (letter, attributes)
            return None
        self.pace.wait()
        if fault := _fault(lambda: self.letters.send(letter, attributes)):
            self.left[letter.message_id] = (letter, fault)
            return fault
        self.moved.add(letter.message_id)
        return self._delete(letter)

    def _delete(self, letter: Letter) -> str | None:
        self.undeleted.pop(letter.message_id, None)
        if fault := _fault(lambda: self.letters.delete(letter)):
            self.undeleted[letter.message_id] = (letter, fault)
            return fault
        del self.hidden[letter.message_id]
        return None


def _fault(call: Callable[[], None]) -> str | None:
    try:
        call()
    except CommandError as error:
        return str(error)
    return None

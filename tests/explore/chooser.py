"""Who decides at each choice: a script, depth first, or chance from a seed."""

from __future__ import annotations

import random
from typing import Final

_FIRST_MOVE: Final = (0.3, 0.5, 0.7, 0.85)  # How often a random schedule just goes on.


class NoSuchMoveError(BaseException):
    """A script names a move that its schedule does not have; no handler of the hub catches it."""


class Chooser:
    """Names one of `count` moves; what it named, and out of how many, is the schedule."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.counts: list[int] = []

    def choose(self, count: int) -> int:
        """Return a number below `count`; a choice of one is none and leaves no trace."""
        if count == 1:
            return 0
        number = self._next(count)
        self.taken.append(number)
        self.counts.append(count)
        return number

    def _next(self, count: int) -> int:
        raise NotImplementedError


class Scripted(Chooser):
    """Follows a script, and takes the first move of each choice after its end."""

    def __init__(self, script: tuple[int, ...] = ()) -> None:
        super().__init__()
        self._script = script

    def _next(self, count: int) -> int:
        place = len(self.taken)
        number = self._script[place] if place < len(self._script) else 0
        if number >= count:
            raise NoSuchMoveError(f"choice {place} has {count} moves, the script says {number}")
        return number

    def following(self, fixed: int = 0) -> tuple[int, ...] | None:
        """Return the next script, depth first, that keeps the first `fixed` choices; None: none."""
        for place in range(len(self.taken) - 1, fixed - 1, -1):
            if self.taken[place] + 1 < self.counts[place]:
                return (*self.taken[:place], self.taken[place] + 1)
        return None

    def left(self, fixed: int = 0) -> list[tuple[int, ...]]:
        """Return the prefixes of all schedules that come after this one, depth first.

        Each begins a part of the tree of its own, and together they are the whole rest.
        """
        return [
            (*self.taken[:place], number)
            for place in range(len(self.taken) - 1, fixed - 1, -1)
            for number in range(self.taken[place] + 1, self.counts[place])
        ]


class Seeded(Chooser):
    """Chooses by chance, the first move more often: long stretches of one actor, then a switch."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._first = self._random.choice(_FIRST_MOVE)

    def _next(self, count: int) -> int:
        if self._random.random() < self._first:
            return 0
        return self._random.randrange(count)

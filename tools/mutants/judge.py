"""Which checks are tried on a mutant, in which order, and what that comes to."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from tools.mutants.catalogue import EQUIVALENT, is_there, known_killers, order, selection
from tools.mutants.patch import Mutant
from tools.mutants.trial import EXPLORE, Copy, Failure, TrialError

T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant: the check that failed, or (without one) why it lives."""

    mutant: Mutant
    by: Failure | None
    seconds: float
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether it must be killed, or was."""
        return self.by is not None or self.mutant.name not in EQUIVALENT

    @property
    def rank(self) -> int:
        """Its place in the table: killed, equivalent, alive."""
        return 0 if self.by else 2 if self.counts else 1

    def line(self) -> str:
        """Return the table's line: mutant, file, seconds, killed by."""
        if self.by:
            told = self.by.check
        elif self.counts:
            told = f"LIVES: {self.mutant.why} ({self.why})"
        else:
            told = f"equivalent: {EQUIVALENT[self.mutant.name]}"
        return f"{self.mutant.name:<44} {self.mutant.path:<32} {self.seconds:>6.1f} s  {told}"


class Judge:
    """Tries mutants in the copies, each of which works for one at a time."""

    def __init__(self, copies: Sequence[Copy]) -> None:
        self._count = len(copies)
        self._free: queue.Queue[Copy] = queue.Queue()
        for copy in copies:
            self._free.put(copy)
        self._files = selection(copies[0].place)
        self._known = known_killers(copies[0].place)
        self._holds: set[str] = set()  # What holds for the source as it is: files, tests,
        self._explores: set[tuple[str, ...]] = set()  # and runs of the explorer.

    def prove_all(self) -> None:
        """Run every test on the source as it is, a share in each copy. Raises TrialError."""
        shares = [self._files[number :: self._count] for number in range(self._count)]
        with ThreadPoolExecutor(self._count) as pool:
            list(pool.map(self._prove_share, shares))

    def judge(self, mutant: Mutant) -> Verdict:
        """Try the mutant."""
        return self._in_a_copy(lambda copy: self._judge(copy, mutant))

    def _in_a_copy(self, act: Callable[[Copy], T]) -> T:
        copy = self._free.get()
        try:
            return act(copy)
        finally:
            self._free.put(copy)

    def _prove_share(self, files: Sequence[str]) -> None:
        self._in_a_copy(lambda copy: self._prove(copy, files))

    def _prove(self, copy: Copy, checks: Sequence[str]) -> None:
        """Run the checks on the source as it is, unless they were. Raises TrialError."""
        unproven = [each for each in checks if not {each, each.partition("::")[0]} & self._holds]
        if unproven and (failure := copy.failure(unproven)):
            raise TrialError(f"{failure.check} fails on the source as it is: {failure.error}")
        self._holds.update(unproven)

    def _judge(self, copy: Copy, mutant: Mutant) -> Verdict:
        started_s = time.monotonic()
        by, why = None, "no check misses it"
        try:
            by = self._tried(copy, mutant)
        except TrialError as error:
            why = str(error)
        return Verdict(mutant, by, time.monotonic() - started_s, why)

    def _tried(self, copy: Copy, mutant: Mutant) -> Failure | None:
        known = self._known.get(mutant.name, "")
        if known.startswith(EXPLORE):
            setup = known.removeprefix(EXPLORE)
            if failure := self._explored(copy, mutant, "--setup", setup):
                return failure
        for checks in self._stages(copy, mutant, known):
            self._prove(copy, checks)
            with copy.without(mutant):
                if failure := copy.failure(checks):
                    return failure
        return None if mutant.name in EQUIVALENT else self._explored(copy, mutant, "--short")

    def _stages(self, copy: Copy, mutant: Mutant, known: str) -> Iterator[list[str]]:
        """Return the tests, those first that most likely miss the guard."""
        first, rest = order(mutant, self._files)
        if is_there(copy.place, known):
            yield [known]
        if first:
            yield first
        if rest and mutant.name not in EQUIVALENT:
            yield rest

    def _explored(self, copy: Copy, mutant: Mutant, *options: str) -> Failure | None:
        """Let the explorer try it, if it finds nothing in the source as it is."""
        if options not in self._explores:
            if failure := copy.violation(*options):
                raise TrialError(f"{failure.check} fails on the source as it is: {failure.error}")
            self._explores.add(options)
        with copy.without(mutant):
            return copy.violation(*options)

"""The whole run: the bounded set-ups depth first, then storms by chance, on all cores."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

from tests.explore import report
from tests.explore.coverage import Coverage
from tests.explore.engine import Explorer, Failure, Part, Script, chooser_of, shrink
from tests.explore.registry import find
from tests.explore.world import Setup

SLICE_S: Final = 2.0  # A task is given back after so long, so that no core waits for another.
_FIRST_SLICE_S: Final = 0.3
_STORM_RUNS: Final = 100_000  # More than a slice can take: the time ends it.

Say = Callable[[str], object]
Task = tuple[Any, ...]  # What a process is to do: a function of this module, and its arguments.
_explorers: dict[str, Explorer] = {}


def prepare() -> None:
    """Let this process do nothing but explore: a schedule leaves next to nothing to collect."""
    gc.collect()
    gc.freeze()
    gc.disable()


def _explorer(name: str) -> Explorer:
    if name not in _explorers:
        _explorers[name] = Explorer(find(name))
    return _explorers[name]


def _exhaust(name: str, prefixes: list[Script], seconds: float) -> Part:
    return _explorer(name).exhaust(prefixes, time.monotonic() + seconds)


def _some(name: str, first: int, seconds: float) -> Part:
    numbers = range(first, first + _STORM_RUNS)
    return _explorer(name).some(numbers, time.monotonic() + seconds)


@dataclass
class Tally:
    """What is known of one set-up so far."""

    setup: Setup
    runs: int = 0
    distinct: int = 0
    cpu_s: float = 0.0
    tasks: int = 0  # That run or wait.

    def line(self, how: str) -> str:
        """Return what is told of the set-up."""
        rate = self.runs / self.cpu_s if self.cpu_s else 0
        counted = f"{self.distinct:>9,} schedules, {how}, {rate:,.0f}/s a core"
        return f"{self.setup.name:<18} {counted}; {report.bounds(self.setup)}: {self.setup.about}"


@dataclass
class Run:
    """One run of the explorer; `say` prints a line."""

    say: Say
    until_s: float
    wanted: int
    hashes: set[int] = field(default_factory=set)
    coverage: Coverage = field(default_factory=Coverage)
    failure: Failure | None = None
    exhausted: bool = True

    def bounded(self, pool: ProcessPoolExecutor, setups: tuple[Setup, ...]) -> None:
        """Exhaust the set-ups, as far as the time allows."""
        tallies = {each.name: Tally(each, tasks=1) for each in setups}
        waiting: deque[Task] = deque((_exhaust, each.name, [()], _FIRST_SLICE_S) for each in setups)

        def following() -> Task | None:
            return waiting.popleft() if waiting and time.monotonic() < self.until_s else None

        for part in self._parts(pool, following):
            tally = tallies[part.setup]
            for half in _halves(part.left):
                tally.tasks += 1
                waiting.appendleft((_exhaust, part.setup, half, SLICE_S))
            self._add(tally, part)
        self.exhausted = not any(tally.tasks for tally in tallies.values())
        for tally in tallies.values():
            if tally.tasks:
                self.say(tally.line("not exhausted"))

    def storms(self, pool: ProcessPoolExecutor, setups: tuple[Setup, ...], seconds: float) -> None:
        """Run random schedules for so long, and then until there are enough or the time is over."""
        tallies = {each.name: Tally(each) for each in setups}
        least_s = time.monotonic() + seconds
        # Two turns of one storm never take the same numbers.
        turns = ((name, number * _STORM_RUNS) for number, name in enumerate(cycle(tallies)))

        def following() -> Task | None:
            now_s = time.monotonic()
            is_enough = len(self.hashes) >= self.wanted and now_s >= least_s
            if not tallies or is_enough or now_s >= self.until_s:
                return None
            return (_some, *next(turns), SLICE_S)

        for part in self._parts(pool, following):
            self._add(tallies[part.setup], part)
        for tally in tallies.values():
            if tally.runs:
                self.say(tally.line("by chance"))

    def _parts(
        self, pool: ProcessPoolExecutor, following: Callable[[], Task | None]
    ) -> Iterator[Part]:
        """Yield what the tasks came to, with every core at one; a failure ends it."""
        running: set[Future[Part]] = set()
        while self.failure is None:
            while len(running) < _cores() and (task := following()) is not None:
                running.add(pool.submit(*task))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for each in ended:
                yield each.result()

    def _add(self, tally: Tally, part: Part) -> None:
        before = len(self.hashes)
        self.hashes.update(part.hashes)
        self.coverage.add(part.coverage)
        tally.runs += part.runs
        tally.distinct += len(self.hashes) - before
        tally.cpu_s += part.cpu_s
        tally.tasks -= 1
        if tally.tasks == 0 and part.failure is None:
            self.say(tally.line("exhausted"))
        self.failure = self.failure or part.failure


def _cores() -> int:
    return os.cpu_count() or 1


def _halves(left: list[Script]) -> list[list[Script]]:
    """Split what is left into two tasks, so that two cores can go on with it."""
    return [half for half in (left[::2], left[1::2]) if half]


@dataclass(frozen=True)
class Plan:
    """What a run takes on."""

    bounded: tuple[Setup, ...]
    storms: tuple[Setup, ...]
    minutes: float  # The longest run.
    storm_s: float  # The least time for storms, if there is as much.
    wanted: int  # So many distinct schedules, if the time allows.


def explore(say: Say, plan: Plan) -> int:
    """Run all; print what was met and the last line; return the exit code."""
    run = Run(say, time.monotonic() + plan.minutes * 60, plan.wanted)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_cores(), mp_context=context, initializer=prepare) as pool:
        run.bounded(pool, plan.bounded)
        run.storms(pool, plan.storms, plan.storm_s)
        pool.shutdown(cancel_futures=True)
    for line in report.coverage(run.coverage):
        say(line)
    if run.failure is not None:
        for line in report.failure(run.failure):
            say(line)
    return last_line(say, len(run.hashes), run.failure, exhausted=run.exhausted)


def last_line(say: Say, schedules: int, failure: Failure | None, *, exhausted: bool) -> int:
    """Print the last line and return the exit code."""
    violations = 0 if failure is None else 1
    is_whole = "yes" if exhausted and not violations else "no"
    say(f"explore: {schedules} schedules, {violations} violations, exhausted {is_whole}")
    return violations


def replay(say: Say, seed: str) -> int:
    """Run the one schedule of the seed and print it; return the exit code. Raises ValueError."""
    prepare()
    name, chooser = chooser_of(seed)
    explorer = Explorer(find(name))
    lines, failure = explorer.replay(chooser)
    for line in report.timeline(lines):
        say(line)
    if failure is not None:
        say(f"VIOLATION: {failure.violation}")
        short = shrink(explorer, failure)
        if len(short.timeline) < len(lines):
            say(f"a shorter one: {short.seed}")
    return last_line(say, 1, failure, exhausted=False)

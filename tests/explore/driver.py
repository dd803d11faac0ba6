"""The whole run: the bounded set-ups depth first, then storms by chance, on all cores."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

from tests.explore import report
from tests.explore.coverage import Coverage
from tests.explore.engine import Explorer, Failure, Part, Script, chooser_of, shrink
from tests.explore.registry import find
from tests.explore.setup import Setup

SLICE_S: Final = 2.0  # A task is given back after so long, so that no core waits for another.
_FIRST_SLICE_S: Final = 0.3
_TURN: Final = 100_000  # Schedules of a storm's turn: more than a slice can take, so time ends it.
SAMPLE_S: Final = 20.0  # The longest sample of one set-up.

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


def _some(name: str, first: int, count: int, seconds: float) -> Part:
    numbers = range(first, first + count)
    return _explorer(name).some(numbers, time.monotonic() + seconds)


@dataclass
class Tally:
    """What is known of one set-up so far."""

    setup: Setup
    runs: int = 0
    distinct: int = 0
    cpu_s: float = 0.0

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
    tallies: dict[str, Tally] = field(default_factory=dict)
    hashes: set[int] = field(default_factory=set)
    coverage: Coverage = field(default_factory=Coverage)
    failure: Failure | None = None
    exhausted: bool = True

    def samples(self, pool: ProcessPoolExecutor, setups: tuple[Setup, ...], count: int) -> None:
        """Run so many schedules of each set-up by chance: what is easily found is found at once."""
        waiting: deque[Task] = deque((_some, each.name, 0, count, SAMPLE_S) for each in setups)
        for part in self._parts(pool, self._in_order(waiting)):
            self._add(part)

    def bounded(self, pool: ProcessPoolExecutor, setups: tuple[Setup, ...]) -> None:
        """Exhaust the set-ups, as far as the time allows."""
        tasks = Counter({each.name: 1 for each in setups})  # By set-up: those that run or wait.
        waiting: deque[Task] = deque((_exhaust, each.name, [()], _FIRST_SLICE_S) for each in setups)
        for part in self._parts(pool, self._in_order(waiting)):
            name, halves = part.setup, _halves(part.left)
            waiting.extendleft((_exhaust, name, half, SLICE_S) for half in halves)
            tasks[name] += len(halves) - 1
            self._add(part)
            if not tasks[name] and self.failure is None:
                self.say(self._tally(name).line("exhausted"))
        self.exhausted = not tasks.total()
        for name, count in tasks.items():
            if count:
                self.say(self._tally(name).line("not exhausted"))

    def storms(self, pool: ProcessPoolExecutor, setups: tuple[Setup, ...], seconds: float) -> None:
        """Run random schedules for so long, and then until there are enough or the time is over."""
        least_s = time.monotonic() + seconds
        turn_s = min(SLICE_S, max(0.2, seconds * _cores() / max(1, len(setups))))
        # Two turns of one storm never take the same numbers.
        turns = ((each.name, number * _TURN) for number, each in enumerate(cycle(setups)))

        def following() -> Task | None:
            now_s = time.monotonic()
            is_enough = len(self.hashes) >= self.wanted and now_s >= least_s
            if not setups or is_enough or now_s >= self.until_s:
                return None
            return (_some, *next(turns), _TURN, turn_s)

        for part in self._parts(pool, following):
            self._add(part)
        if setups:
            self.say(_storms_line([self._tally(each.name) for each in setups]))

    def _in_order(self, waiting: deque[Task]) -> Callable[[], Task | None]:
        return lambda: waiting.popleft() if waiting and time.monotonic() < self.until_s else None

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

    def _tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally(find(name)))

    def _add(self, part: Part) -> None:
        before = len(self.hashes)
        self.hashes.update(part.hashes)
        self.coverage.add(part.coverage)
        tally = self._tally(part.setup)
        tally.runs += part.runs
        tally.distinct += len(self.hashes) - before
        tally.cpu_s += part.cpu_s
        self.failure = self.failure or part.failure


def _storms_line(tallies: list[Tally]) -> str:
    runs, cpu_s = sum(each.runs for each in tallies), sum(each.cpu_s for each in tallies)
    counted = f"{sum(each.distinct for each in tallies):>9,} schedules, by chance"
    bounds = [each.setup.bounds for each in tallies if each.runs]
    faults = max((each.faults for each in bounds), default=0)
    moves = max((each.time_moves for each in bounds), default=0)
    return (
        f"{'storms':<18} {counted}, {runs / (cpu_s or 1):,.0f}/s a core; {len(bounds)} casts,"
        f" faults up to {faults}, preemptions any, time moves up to {moves}"
    )


def _cores() -> int:
    return os.cpu_count() or 1


def _halves(left: list[Script]) -> list[list[Script]]:
    """Split what is left into two tasks, so that two cores can go on with it."""
    return [half for half in (left[::2], left[1::2]) if half]


@dataclass(frozen=True)
class Plan:
    """What a run takes on."""

    sampled: tuple[Setup, ...]
    bounded: tuple[Setup, ...]
    storms: tuple[Setup, ...]
    sample: int  # So many schedules of each sampled set-up by chance, first of all.
    minutes: float  # The longest run.
    storm_s: float  # The least time for storms, if there is as much.
    wanted: int  # So many distinct schedules, if the time allows.


def explore(say: Say, plan: Plan) -> int:
    """Run all; print what was met and the last line; return the exit code."""
    run = Run(say, time.monotonic() + plan.minutes * 60, plan.wanted)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_cores(), mp_context=context, initializer=prepare) as pool:
        run.samples(pool, plan.sampled, plan.sample)
        run.bounded(pool, plan.bounded)
        run.storms(pool, plan.storms, plan.storm_s)
        pool.shutdown(cancel_futures=True)
    if run.failure is None:
        for line in report.coverage(run.coverage):
            say(line)
    else:
        short = shrink(Explorer(find(run.failure.seed.partition("/")[0])), run.failure)
        for line in report.failure(short, found_as=run.failure.seed):
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

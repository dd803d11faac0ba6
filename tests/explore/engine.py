"""Runs schedules of a set-up: one, a part of its tree depth first, or some by chance."""

from __future__ import annotations

import gc
import hashlib
import time
import traceback
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.explore import nets, seams
from tests.explore.chooser import Chooser, NoSuchMoveError, Scripted, Seeded
from tests.explore.coverage import Coverage
from tests.explore.scheduler import Line, ViolationError
from tests.explore.settle import fingerprint, settle
from tests.explore.setup import Setup
from tests.explore.world import World

Script = tuple[int, ...]
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_COLLECT_EVERY: Final = 300  # Schedules between two collections: greenlets are cycles.


@dataclass(frozen=True)
class Failure:
    """A schedule that broke a rule; `seed` replays it."""

    seed: str
    violation: str
    timeline: tuple[Line, ...]
    script: Script


@dataclass
class Part:
    """What a part of the run came to; `left` are the prefixes of what it had no time for."""

    setup: str
    runs: int = 0
    cpu_s: float = 0.0
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    coverage: Coverage = field(default_factory=Coverage)
    left: list[Script] = field(default_factory=list)
    failure: Failure | None = None


class Explorer:
    """Runs the schedules of one set-up in this process; remembers which ends it has settled."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._coverage = Coverage()
        self._settled: set[int] = set()
        self._runs = 0

    def run(self, chooser: Chooser, seed: str = "") -> tuple[int, Failure | None]:
        """Run one schedule; return its hash, and what went wrong."""
        digest, violation, timeline = self._run(chooser)
        if violation is None:
            return digest, None
        script = tuple(chooser.taken)
        seed = seed or seed_of(self.setup, script)
        return digest, Failure(seed, violation, tuple(timeline), script)

    def replay(self, chooser: Chooser) -> tuple[list[Line], Failure | None]:
        """Run one schedule; return its timeline, and what went wrong."""
        _, violation, timeline = self._run(chooser)
        script = tuple(chooser.taken)
        if violation is None:
            return timeline, None
        return timeline, Failure(seed_of(self.setup, script), violation, tuple(timeline), script)

    def exhaust(self, prefixes: Iterable[Script], until_s: float) -> Part:
        """Run every schedule that begins with one of the prefixes, as far as the time allows.

        `until_s` is on the monotonic clock; at least one schedule is run.
        """
        part, todo = self._begin(), list(prefixes)
        while todo and part.failure is None and (not part.runs or time.monotonic() < until_s):
            prefix = todo.pop()
            self._exhaust(part, prefix, until_s)
        part.left += todo
        return self._end(part)

    def some(self, numbers: Iterable[int], until_s: float) -> Part:
        """Run the random schedules of these numbers, as far as the time allows."""
        part = self._begin()
        for number in numbers:
            if part.failure is not None or time.monotonic() >= until_s:
                break
            seed = f"{self.setup.name}/r{number}"
            self._count(part, *self.run(Seeded(seed), seed))
        return self._end(part)

    def _exhaust(self, part: Part, prefix: Script, until_s: float) -> None:
        script: Script | None = prefix
        while script is not None:
            chooser = Scripted(script)
            self._count(part, *self.run(chooser))
            script = chooser.following(len(prefix))
            if part.failure is not None or (script and time.monotonic() >= until_s):
                part.left += chooser.left(len(prefix))
                return

    def _begin(self) -> Part:
        self._coverage = Coverage()
        return Part(self.setup.name, cpu_s=-time.process_time(), coverage=self._coverage)

    def _end(self, part: Part) -> Part:
        part.cpu_s += time.process_time()
        return part

    def _count(self, part: Part, digest: int, failure: Failure | None) -> None:
        part.runs += 1
        part.hashes.append(digest)
        part.failure = failure
        self._runs += 1
        if self._runs % _COLLECT_EVERY == 0:
            gc.collect()

    def _run(self, chooser: Chooser) -> tuple[int, str | None, list[Line]]:
        if self.setup.has_nets:
            return self._run_as_set_up(chooser)
        with nets.off():
            return self._run_as_set_up(chooser)

    def _run_as_set_up(self, chooser: Chooser) -> tuple[int, str | None, list[Line]]:
        world = World(self.setup, chooser, self._coverage)
        timeline = world.scheduler.timeline
        violation, chosen = None, None
        try:
            with seams.in_place(world.sockets):
                self.setup.cast(world)
                world.first = dict(world.table.items)
                world.scheduler.run()
                world.decide()
                chosen = len(timeline)
                if self.setup.has_end:
                    self._settle(world)
        except (ViolationError, NoSuchMoveError) as error:
            violation = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, its schedule must be told
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} in {where.name}, line {where.lineno}: {error}"
            violation = f"a function broke: {what}"
        finally:
            world.close()
        return self._digest(timeline[:chosen]), violation, timeline

    def _settle(self, world: World) -> None:
        found = fingerprint(world)
        if found not in self._settled:
            settle(world)
            self._settled.add(found)

    def _digest(self, timeline: list[Line]) -> int:
        """Return the hash of the sequence of who did what and how it ended."""
        digest = hashlib.blake2b(f"{self.setup.name}\n".encode(), digest_size=8)
        digest.update("\n".join(f"{who} {what} {how}" for _, who, what, how in timeline).encode())
        return int.from_bytes(digest.digest(), "big")


def seed_of(setup: Setup, script: Script) -> str:
    """Return the seed that replays the script; choices of over 36 moves have no digit."""
    return f"{setup.name}/{''.join(_DIGITS[number] for number in script)}"


def chooser_of(seed: str) -> tuple[str, Chooser]:
    """Return the set-up's name and the choices that the seed stands for. Raises ValueError."""
    name, mark, choices = seed.partition("/")
    if not mark:
        raise ValueError(f"{seed} is no seed: <set-up>/<choices> or <set-up>/r<number>")
    if choices[1:].isdigit() and choices.startswith("r"):
        return name, Seeded(seed)
    return name, Scripted(tuple(int(digit, 36) for digit in choices))


def shrink(explorer: Explorer, failure: Failure, tries_max: int = 1_000) -> Failure:
    """Return the shortest schedule found that breaks a rule in the same words."""
    best, tries = failure, 0
    while True:
        for script in _simpler(best.script):
            tries += 1
            if tries > tries_max:
                return best
            _, found = explorer.run(Scripted(script))
            if found is not None and found.violation == best.violation:
                best = found
                break
        else:
            return best


def _simpler(script: Script) -> Iterable[Script]:
    """Yield scripts with fewer choices, or with one that is the first move instead."""
    for length in (8, 4, 2, 1):
        for place in range(len(script) - length, -1, -1):
            yield (*script[:place], *script[place + length :])
    for place, number in enumerate(script):
        if number:
            yield (*script[:place], 0, *script[place + 1 :])

"""What a run says: a schedule's timeline, what a set-up is, what was met and what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from relayhub.states import STEPS, Event, State, Step
from tests.explore.casts import KINDS
from tests.explore.chooser import Scripted
from tests.explore.coverage import Coverage
from tests.explore.engine import Failure
from tests.explore.scheduler import OK, Line
from tests.explore.setup import Setup
from tests.explore.world import START_MS, World

_WAITS: Final = "only rows in UNKNOWN and FAILED are made to wait"
_HOLDS: Final = "a late answer on an open row holds it instead"
# Steps of the table that no actor takes, and why.
_BY_NOBODY: Final = {
    (Event.BACKED_OFF, State.RECEIVED): _WAITS,
    (Event.BACKED_OFF, State.SENT): _WAITS,
    (Event.FENCED, State.RECEIVED): _HOLDS,
    (Event.FENCED, State.SENT): _HOLDS,
    (Event.FENCED, State.UNKNOWN): _HOLDS,
    (Event.FENCED, State.FAILED): _HOLDS,
}


def timeline(lines: Iterable[Line]) -> Iterator[str]:
    """Return the schedule as lines: seconds since the start, who, what, and how it ended."""
    for ms, who, what, how in lines:
        ended = "" if how == OK else f": {how}" if how else ""
        yield f"{(ms - START_MS) / 1000:11.3f} s  {who or '-':<14} {what}{ended}"


def failure(found: Failure, found_as: str = "") -> Iterator[str]:
    """Return what went wrong, how to see it again, and what happened."""
    yield ""
    yield f"VIOLATION: {found.violation}"
    yield f"seed: {found.seed}"
    if found_as not in {"", found.seed}:
        yield f"first found as: {found_as}"
    yield from timeline(found.timeline)
    yield ""


def bounds(setup: Setup) -> str:
    """Return how far the set-up's schedules go."""
    world = World(setup, Scripted(), Coverage())
    setup.cast(world)
    actors, limits = len(world.scheduler.actors), setup.bounds
    world.close()
    switches = "any" if limits.preemptions is None else str(limits.preemptions)
    is_any = limits.kinds is None or limits.kinds >= set(KINDS)
    kinds = "" if is_any else f" ({', '.join(sorted(limits.kinds or ()))})"
    return (
        f"actors {actors}, faults {limits.faults}{kinds}, preemptions {switches},"
        f" time moves {limits.time_moves}"
    )


def coverage(met: Coverage) -> Iterator[str]:
    """Return what was taken at least once, and what was not."""
    yield from _steps(met)
    yield from _faults(met)
    yield f"ends: {_counts(met.ends)}"
    yield f"told: {_counts(met.told)}"


def _steps(met: Coverage) -> Iterator[str]:
    can = [step for step in STEPS if not _why_not(step)]
    never = [step for step in can if not met.steps[str(step.event), step.source]]
    yield f"steps: {len(can) - len(never)} of the {len(can)} that the actors may take were taken"
    for step in never:
        yield f"  not taken: {_told(step)}"
    for step in STEPS:
        if why := _why_not(step):
            yield f"  out of reach: {_told(step)}: {why}"


def _why_not(step: Step) -> str:
    """Return why no actor takes the step; empty if some may."""
    return _BY_NOBODY.get((step.event, step.source), "") if step.source else ""


def _told(step: Step) -> str:
    return f"{step.event}, {_state(step.source)} -> {_state(step.target)}"


def _state(state: State | None) -> str:
    return "no row" if state is None else str(state)


def _faults(met: Coverage) -> Iterator[str]:
    taken: Counter[str] = Counter()
    missed: dict[str, list[str]] = {}
    for call, kinds in sorted(met.faults.items()):
        for how in sorted(kinds):
            if met.calls[call, how]:
                taken[how] += 1
            else:
                missed.setdefault(call, []).append(how)
    pairs = sum(map(len, met.faults.values()))
    yield f"calls: {len(met.faults)} kinds, {sum(met.calls.values()):,} made"
    yield f"faults: {taken.total()} of {pairs} (call, fault) pairs were taken: {_counts(taken)}"
    for call, kinds_missed in missed.items():
        yield f"  not taken: {call}: {', '.join(kinds_missed)}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))

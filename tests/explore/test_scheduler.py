"""Who may go on when: actors at their points, kills, faults, and the bounds of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.explore.chooser import Scripted
from tests.explore.coverage import Coverage
from tests.explore.scheduler import KILLED, KILLED_AFTER, Actor, Bounds, Move, Scheduler

Cast = Callable[[Scheduler, list[str]], None]


def runs(cast: Cast, bounds: Bounds) -> list[list[str]]:
    """Return what happened in every schedule, depth first."""
    found: list[list[str]] = []
    script: tuple[int, ...] | None = ()
    while script is not None:
        chooser = Scripted(script)
        seen: list[str] = []
        scheduler = Scheduler(chooser, bounds, Coverage(), lambda: 0)
        cast(scheduler, seen)
        scheduler.run()
        scheduler.end()
        found.append(seen)
        script = chooser.following()
    return found


def actor(scheduler: Scheduler, seen: list[str], name: str, calls: int, **more: object) -> None:
    """Let an actor take part that makes so many calls."""

    def run() -> None:
        for number in range(1, calls + 1):
            how = scheduler.point("call", (KILLED, KILLED_AFTER, "lost"))
            seen.append(f"{name}{number}" if how == "ok" else f"{name}{number} {how}")
            if how == KILLED_AFTER:
                scheduler.stop_current()

    scheduler.add(Actor(name, name, run, 1_000, **more))  # type: ignore[arg-type]


def two(scheduler: Scheduler, seen: list[str]) -> None:
    """Let two actors take part, each with one call."""
    actor(scheduler, seen, "A", 1)
    actor(scheduler, seen, "B", 1)


def test_every_order_of_two_actors_is_run() -> None:
    """Each has two steps, up to its call and after it: six orders."""
    found = runs(two, Bounds(faults=0))
    assert len(found) == 6
    assert sorted(map(tuple, found)) == [("A1", "B1")] * 3 + [("B1", "A1")] * 3


def test_without_preemptions_one_actor_ends_before_the_next_begins() -> None:
    """Only the order of the two is left."""
    assert runs(two, Bounds(faults=0, preemptions=0)) == [["A1", "B1"], ["B1", "A1"]]


def test_one_fault_is_had_once() -> None:
    """At each call, of each kind, and never twice in a schedule."""
    found = runs(lambda s, seen: actor(s, seen, "A", 2), Bounds(faults=1))
    assert found == [
        ["A1", "A2"],
        ["A1"],
        ["A1", "A2 killed_after"],
        ["A1", "A2 lost"],
        [],
        ["A1 killed_after"],
        ["A1 lost", "A2"],
    ]


def test_only_the_kinds_of_faults_that_are_allowed_are_had() -> None:
    """The rest of the call's faults do not happen."""
    bounds = Bounds(faults=2, kinds=frozenset({"lost"}))
    assert runs(lambda s, seen: actor(s, seen, "A", 1), bounds) == [["A1"], ["A1 lost"]]


def test_an_actor_that_comes_after_another_waits_for_its_end() -> None:
    """Whether it ended by itself or was killed."""

    def cast(scheduler: Scheduler, seen: list[str]) -> None:
        actor(scheduler, seen, "B", 1, after=("A",))
        actor(scheduler, seen, "A", 1)

    found = runs(cast, Bounds(faults=1, kinds=frozenset({KILLED})))
    assert found == [["A1", "B1"], ["A1"], ["B1"]]


def test_nothing_of_an_overdue_actor_happens() -> None:
    """The platform ends it where it stands."""
    seen: list[str] = []
    now = [0]

    def environment() -> Iterator[Move]:
        if not now[0]:
            yield pass_time

    def pass_time() -> None:
        now[0] = 1_001
        scheduler.kill_overdue()

    scheduler = Scheduler(Scripted((0, 1)), Bounds(faults=0), Coverage(), lambda: now[0])
    scheduler.environment = environment
    actor(scheduler, seen, "A", 1)
    scheduler.run()
    assert seen == []
    assert scheduler.timeline[-1] == (1_001, "A", "ended by the platform", "")


def test_an_actor_that_waits_for_nobody_ends_the_schedule() -> None:
    """It is unwound, and nothing after its wait happens."""
    seen: list[str] = []
    scheduler = Scheduler(Scripted(), Bounds(faults=0), Coverage(), lambda: 0)

    def run() -> None:
        scheduler.wait(lambda: True)
        seen.append("went on")

    scheduler.add(Actor("A", "A", run, 1_000))
    scheduler.run()
    scheduler.end()
    assert seen == []

"""The explorer: small set-ups to their end, what is planted is found, and what it finds comes back.

`make explore` runs the same for longer.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from relayhub.states import STEPS
from tests.explore import registry, report, words
from tests.explore.bank import SILENT, Habits
from tests.explore.chooser import Chooser, Scripted, Seeded
from tests.explore.coverage import Coverage
from tests.explore.customer import customer
from tests.explore.engine import Explorer, Part, Script, chooser_of, shrink
from tests.explore.settle import fingerprint
from tests.explore.setup import Setup
from tests.explore.setups_bound import PLANTED
from tests.explore.storms import storm
from tests.explore.table import Table
from tests.explore.words import Words
from tests.explore.world import World

_LONG_S = 600.0  # No test takes as long; it only keeps a broken one from running for ever.
_STORM_RUNS = 6


@pytest.fixture(autouse=True, scope="module")
def _without_collector() -> Iterator[None]:
    """Let the collector of cycles rest: a schedule leaves next to nothing to it."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def exhaust(setup: Setup) -> Part:
    """Run every schedule of the set-up, or those up to the first that breaks a rule."""
    return Explorer(setup).exhaust([()], time.monotonic() + _LONG_S)


def a_setup(**more: object) -> Setup:
    """Return a small set-up: a request and its duplicate, without a fault."""
    return replace(registry.find("two-posts"), bounds=_NO_FAULTS, **more)  # type: ignore[arg-type]


_NO_FAULTS = replace(registry.find("two-posts").bounds, faults=0)


@pytest.mark.parametrize("setup", registry.SHORT, ids=lambda setup: setup.name)
def test_no_order_of_events_breaks_a_rule(setup: Setup) -> None:
    """Every schedule of a small set-up is run, each one once."""
    part = exhaust(setup)
    assert part.failure is None, "\n".join(report.failure(part.failure))
    assert (part.left, len(set(part.hashes))) == ([], part.runs)


def test_no_storm_breaks_a_rule() -> None:
    """A few schedules of each, by chance; the same ones every time."""
    met = Coverage()
    for setup in registry.STORMS:
        part = Explorer(setup).some(range(_STORM_RUNS), time.monotonic() + _LONG_S)
        assert part.failure is None, "\n".join(report.failure(part.failure))
        assert part.runs == _STORM_RUNS
        met.add(part.coverage)
    taken = {(event, source) for event, source in met.steps if met.steps[event, source]}
    assert len(taken) > len(STEPS) // 3


@pytest.mark.parametrize("setup", PLANTED, ids=lambda setup: setup.name)
def test_a_bound_that_is_too_small_is_found(setup: Setup) -> None:
    """Core_longest below the core's real one: the double is found, and its seed shows it again."""
    part = exhaust(setup)
    assert part.failure is not None
    assert part.failure.violation == "DOUBLE: G is executed a second time"
    name, chooser = chooser_of(part.failure.seed)
    lines, again = Explorer(registry.find(name)).replay(chooser)
    assert tuple(lines) == part.failure.timeline
    assert again is not None
    assert again.violation == part.failure.violation


def test_a_failure_is_made_shorter() -> None:
    """The short schedule breaks the same rule."""
    explorer = Explorer(PLANTED[1])
    failure = explorer.exhaust([()], time.monotonic() + _LONG_S).failure
    assert failure is not None
    short = shrink(explorer, failure)
    assert short.violation == failure.violation
    assert len(short.timeline) <= len(failure.timeline)


def test_a_customer_who_takes_no_answer_for_a_failure_pays_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The explorer sees what becomes of a channel that does not obey."""
    monkeypatch.setattr("tests.explore.customer.NO_WORD", Words("no", "yes", "yes"))
    part = exhaust(
        replace(
            registry.find("customer"),
            cast=lambda world: customer(world, steps=1),
            habits=Habits(ways=(SILENT,)),
        )
    )
    assert part.failure is not None
    assert part.failure.violation.startswith("PAID TWICE")
    assert words.NO_WORD.new_guid == "no"


def _breaks(*_: object, **__: object) -> None:
    raise KeyError("gone")


def test_a_fault_that_a_handler_would_only_log_is_a_violation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing that breaks inside passes for an answer."""
    monkeypatch.setattr(Table, "put_item", _breaks)
    part = exhaust(a_setup())
    assert part.failure is not None
    assert part.failure.violation.startswith("a function broke: KeyError")


def test_the_same_choices_are_the_same_run() -> None:
    """A seed stands for one schedule."""
    setup = storm(3)
    first, again = (Explorer(setup).replay(Seeded("storm-3/r7")) for _ in range(2))
    assert first == again


def test_a_tree_in_parts_is_the_whole_tree() -> None:
    """What one process gives back, others run: no schedule is left out, none runs twice."""
    setup = replace(registry.find("batch-again"), bounds=replace(_NO_FAULTS, faults=1))
    whole = exhaust(setup)
    parts: list[int] = []
    todo: list[Script] = [()]
    explorer = Explorer(setup)
    while todo:
        part = explorer.exhaust(todo, time.monotonic())  # No time: one schedule, the rest is left.
        parts += part.hashes
        todo = part.left
    assert len(parts) == len(set(parts)) == whole.runs
    assert set(parts) == set(whole.hashes)


def test_a_schedule_is_counted_once() -> None:
    """The hash goes by who did what and how it ended."""
    explorer = Explorer(a_setup())
    chooser = Scripted()
    first, _ = explorer.run(chooser)
    assert explorer.run(Scripted())[0] == first
    following = chooser.following()
    assert following is not None
    assert explorer.run(Scripted(following))[0] != first


class _Remembering(Explorer):
    """Settles every world, and remembers what each came to by its fingerprint."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.ends: dict[int, set[str]] = {}
        self.settled = 0

    def _settle(self, world: World) -> None:
        self._settled.clear()
        found = fingerprint(world)
        super()._settle(world)
        ms = world.ms
        self.ends.setdefault(found, set()).add(f"{ms} {sorted(world.table.items.items())}")
        self.settled += 1


@pytest.mark.parametrize("name", ["unknown", "customer", "storm-3", "storm-39"])
def test_equal_worlds_settle_alike(name: str) -> None:
    """So settling one of them does for all."""
    explorer = _Remembering(registry.find(name))
    choosers: list[Chooser] = [Seeded(str(number)) for number in range(150)]
    for chooser in choosers:
        _, failure = explorer.run(chooser)
        assert failure is None
    assert len(explorer.ends) < explorer.settled
    assert all(len(ends) == 1 for ends in explorer.ends.values())


def test_a_seed_names_a_setup_and_its_choices() -> None:
    """By digits of base 36, or by a number of chance."""
    assert chooser_of("two-posts/0a")[0] == "two-posts"
    assert isinstance(chooser_of("two-posts/0a")[1], Scripted)
    assert isinstance(chooser_of("storm-1/r12")[1], Seeded)
    with pytest.raises(ValueError, match="no seed"):
        chooser_of("two-posts")


def test_the_report_names_what_was_not_taken() -> None:
    """A step or a fault that no schedule took is told."""
    told = "\n".join(report.coverage(exhaust(a_setup()).coverage))
    assert "not taken: overdue, RECEIVED -> FAILED" in told
    assert "not taken: post: put_item claimed: killed, killed_after, late," in told
    assert "out of reach: backed_off" in told


def test_every_setup_can_be_cast() -> None:
    """Its bounds can be told, and its first schedule breaks no rule."""
    for setup in (*registry.BOUNDED, *registry.STORMS):
        assert report.bounds(setup).startswith("actors ")
        assert Explorer(setup).run(Scripted())[1] is None, setup.name

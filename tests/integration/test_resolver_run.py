"""One run of the resolver: order, limits, budget, time, faults of single rows, two runs at once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from relayhub.flows import resolve
from relayhub.states import State
from tests.maintenance import (
    AWAY,
    UNDECIDED,
    events,
    failed_row,
    processed,
    put_rows,
    resolver,
)
from tests.plant import Plant, Works
from tests.world import START_MS


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


def doubts(works: Works, count: int) -> list[str]:
    """Make so many rows in doubt, each a second older than the next, and all of them due."""
    guids = [f"G-{number}" for number in range(count)]
    for guid in reversed(guids):
        works.doubt(guid)
    for number, guid in enumerate(guids):
        works.edit(guid, due_at=START_MS + number * 1_000)
    works.clock.ms = START_MS + 60_000
    return guids


def test_the_oldest_rows_come_first(works: Works) -> None:
    """By due time, over all shards."""
    guids = doubts(works, 6)
    resolver(works)
    assert works.core.asked == guids[:3]  # Three without a connection end the asking.
    works.core.asked.clear()
    works.core.findings += [UNDECIDED] * 6
    works.clock.advance(30)
    for guid, ms in zip(guids, range(START_MS, START_MS + 6), strict=True):
        works.edit(guid, due_at=ms)
    resolver(works)
    assert works.core.asked == guids


@pytest.mark.parametrize("shards", [1, 16])
def test_a_run_takes_the_oldest_up_to_its_limit_and_says_that_it_left_some(
    make_works: Callable[..., Works], shards: int
) -> None:
    """The next one goes on with the rest."""
    works = make_works(shards=shards, read_shards=shards)
    guids = doubts(works, 5)
    works.core.findings += [processed()] * 5
    first = resolver(works, rows_max=2)
    assert (works.core.asked, first.complete) == (guids[:2], False)
    second = resolver(works, rows_max=3)
    assert (works.core.asked, second.complete) == (guids, True)


@pytest.fixture
def make_works(aws: None) -> Callable[..., Works]:
    """Return a maker of works under other settings."""
    del aws

    def make(**changes: int) -> Works:
        return Works(**changes)

    return make


@pytest.mark.parametrize("per_s", [1, 10])
def test_inquiries_keep_within_their_budget_per_second(works: Works, per_s: int) -> None:
    """One gap between any two of them, however fast the core answers."""
    works.deploy(inquiries_per_s=per_s)
    doubts(works, 8)
    asked_at: list[int] = []
    works.core.during_ask += [lambda: asked_at.append(works.clock())] * 8
    works.core.findings += [UNDECIDED] * 8
    resolver(works)
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert gaps == [1000 // per_s] * 7


def test_a_core_that_three_inquiries_in_a_row_cannot_reach_is_not_asked_again(
    works: Works,
) -> None:
    """The rest of the run only backs the rows off; the next run begins anew."""
    guids = doubts(works, 6)
    report = resolver(works)
    assert (works.core.asked, report.asked) == (guids[:3], 3)
    assert all((works.held(guid).due_at or 0) > works.clock() for guid in guids)
    works.clock.advance(1_000)
    resolver(works)
    assert len(works.core.asked) == 6


def test_one_answer_between_shows_that_the_core_is_there(works: Works) -> None:
    """Only inquiries in a row count."""
    doubts(works, 6)
    works.core.findings += [AWAY, AWAY, UNDECIDED, AWAY, AWAY, AWAY]
    assert resolver(works).asked == 6


def test_a_run_ends_before_its_time_does(works: Works) -> None:
    """It keeps back what one row may take; what is left is the next run's."""
    doubts(works, 6)
    works.core.during_ask += [lambda: works.clock.advance(4.999)] * 6
    works.core.findings += [processed()] * 6
    report = resolver(works, left_ms=20_000)
    assert (report.asked, report.complete) == (3, False)
    assert resolver(works).complete
    assert len(works.core.asked) == 6


@pytest.mark.parametrize(("chance", "shard"), [(0.0, 0), (0.5, 8), (0.999, 15)])
def test_each_run_starts_at_another_shard(works: Works, chance: float, shard: int) -> None:
    """So that no shard's rows are always the last; each is read once per group."""
    works.hub = replace(works.hub, chance=lambda: chance)
    resolver(works)
    read = [
        request["ExpressionAttributeValues"][":shard"]["S"]
        for name, request in zip(works.dynamo.calls, works.dynamo.requests, strict=True)
        if name == "query"
    ]
    assert read[0] == f"SENT#{shard}"
    assert len(read) == len(set(read)) == 3 * 16


def fail_hard() -> None:
    """Do what nobody expected."""
    raise RuntimeError("a fault of this row alone")


def test_a_row_whose_handling_fails_waits_and_harms_no_other(works: Works) -> None:
    """It is backed off by a plain write, counted, and looked at again."""
    guids = doubts(works, 3)
    works.core.during_ask.append(fail_hard)
    works.core.findings += [processed()] * 3
    report = resolver(works)
    states = [works.held(guid).state for guid in guids]
    assert states == [State.UNKNOWN, State.DONE, State.DONE]
    assert (report.steps["fault"], works.noted("row_fault")) == (1, 1)
    assert works.held(guids[0]).due_at == works.clock() - 200 + 60_000
    works.clock.advance(60)
    resolver(works)
    assert works.held(guids[0]).state is State.DONE


@pytest.mark.parametrize(
    "values",
    [{"hold": "of a newer version", "schema": 2}, {"request_zip": b"not zipped"}],
    ids=["newer", "garbled"],
)
def test_a_row_that_cannot_be_read_harms_no_other(works: Works, values: dict[str, object]) -> None:
    """Words of a newer version, or a fault in the table: the others are resolved."""
    guids = doubts(works, 3)
    works.edit(guids[0], **values)
    works.core.findings += [processed()] * 3
    resolver(works)
    assert [works.held(guid).state for guid in guids[1:]] == [State.DONE, State.DONE]


def scene(plant: Plant) -> None:
    """Leave one row of each kind that the resolver has to deal with; then time passes."""
    rows = [replace(failed_row(guid, START_MS, 1), why=None, code="E901") for guid in SCENE]
    processed, cancelled, counted, absent, overdue = rows
    doubt: dict[str, Any] = {
        "state": State.UNKNOWN,
        "open_shard": "UNKNOWN#0",
        "doubted": True,
        "ask_after": START_MS + 65_000,
        "ended_at": START_MS,
    }
    overdue = replace(overdue, state=State.RECEIVED, open_shard="RECEIVED#0", attempt=0)
    put_rows(
        [
            replace(processed, **doubt),
            replace(cancelled, cancel={"at": START_MS, "by": "atm"}, **doubt),
            replace(counted, not_found_at=START_MS + 66_000, **doubt),
            replace(absent, state=State.SENT, open_shard="SENT#0"),
            replace(overdue, claim_id=None, sent_at=None, dead_at=None, core=None),
        ]
    )
    plant.bank.executed["PROCESSED"] += 1
    plant.clock.ms = START_MS + 130_000


SCENE = ("PROCESSED", "CANCELLED", "COUNTED", "ABSENT", "OVERDUE")
ENDS = {
    "PROCESSED": ("DONE", "0000", 1),
    "CANCELLED": ("DONE", "E908", 1),
    "COUNTED": ("FAILED", "E902", 1),
    "ABSENT": ("FAILED", "E902", 1),
    "OVERDUE": ("FAILED", "E902", 0),
}


HINTED = {"COUNTED", "ABSENT", "OVERDUE"}


def ends(plant: Plant) -> dict[str, tuple[str, str | None, int]]:
    """Return where each row of the scene stands, each step to another state taken once."""
    rows = plant.rows()
    for row in rows.values():
        steps = [entry["event"] for entry in row.history if entry["to"] != entry.get("from")]
        assert len(steps) == len(set(steps))
    return {guid: (str(row.state), row.code, row.attempt) for guid, row in rows.items()}


def run_on(plant: Plant) -> None:
    """Let three more runs go by, with nobody to send anything."""
    for _ in range(3):
        plant.clock.ms += 61_000
        resolver(plant)


def test_each_kind_of_row_ends_where_it_must(plant: Plant) -> None:
    """The scene that is killed and doubled below, undisturbed."""
    scene(plant)
    resolver(plant)
    run_on(plant)
    assert ends(plant) == ENDS
    assert {json.loads(body)["guid"] for body in plant.inbox.bodies} == HINTED


def test_a_resolver_killed_at_any_call_leaves_nothing_but_work_for_the_next(plant: Plant) -> None:
    """Before every single call to ledger, core and queue: the same ends, each step once."""
    at = 0
    while True:
        at += 1
        plant.start_again()
        scene(plant)
        if not plant.killed(lambda: resolver(plant), at):
            break
        resolver(plant)
        run_on(plant)
        assert (ends(plant), at) == (ENDS, at)
        assert plant.bank.executed == {"PROCESSED": 1}
    assert at > 20


HOOKS = [
    *[("query", skip) for skip in range(3)],
    *[(name, skip) for name in ("get_item", "update_item") for skip in range(5)],
]


@pytest.mark.parametrize(("name", "skip"), HOOKS)
def test_two_resolvers_at_once_change_nothing_twice(plant: Plant, name: str, skip: int) -> None:
    """The second one runs whole between the first one's read and write, wherever that is."""
    scene(plant)
    ran: list[resolve.Report] = []
    plant.dynamo.before[name] += [
        *[lambda: None] * skip,
        lambda: ran.append(resolver(plant)),
    ]
    resolver(plant)
    assert len(ran) == 1
    run_on(plant)
    assert ends(plant) == ENDS
    assert {json.loads(body)["guid"] for body in plant.inbox.bodies} == HINTED


def test_two_resolvers_that_ask_at_once_both_hear_and_the_row_is_written_once(
    works: Works,
) -> None:
    """Whoever comes second finds what he would have written, and writes nothing."""
    works.doubt()
    works.clock.ms = START_MS + 20_000
    works.core.findings += [processed(), processed()]
    works.core.during_ask.append(lambda: resolver(works))
    resolver(works)
    assert len(works.core.asked) == 2
    assert events(works) == ["claimed", "doubted", "processed"]

"""The purger deletes what is done and past its stored time, and nothing else, whatever happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from relayhub.flows.purge import Report
from relayhub.row import Row
from relayhub.states import Hold, State
from relayhub.upkeep import UpkeepError
from tests.maintenance import (
    DAY_MS,
    failed_row,
    items,
    purger,
    put_rows,
)
from tests.plant import Works
from tests.world import START_MS, KilledError, refused

NOW_S = START_MS // 1000


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core; one segment makes calls count."""
    del aws
    return Works(scan_segments=1)


def done(guid: str = "G-1", **changes: Any) -> Row:
    """Return a DONE row that is past its time."""
    row = failed_row(guid, START_MS - 40 * DAY_MS)
    bare = replace(row, state=State.DONE, code="0000", why=None, open_shard=None, due_at=None)
    return replace(bare, **{"expires_at": NOW_S, **changes})


def left(works: Works) -> set[str]:
    """Return the GUIDs that still have a row."""
    del works
    return {item["guid"]["S"] for item in items() if not item["guid"]["S"].startswith("!")}


@pytest.mark.parametrize(("expires_at", "deleted"), [(NOW_S, 1), (NOW_S + 1, 0), (None, 0)])
def test_a_done_row_goes_at_its_stored_second_and_not_before(
    works: Works, expires_at: int | None, deleted: int
) -> None:
    """What is stored is the law; a row without it stays."""
    put_rows([replace(done(), expires_at=expires_at)])
    works.clock.ms = START_MS + 999
    report = purger(works)
    assert (report.deleted, len(left(works))) == (deleted, 1 - deleted)


OPEN = [State.RECEIVED, State.SENT, State.UNKNOWN, State.FAILED]


@pytest.mark.parametrize("state", OPEN)
def test_a_row_that_is_not_done_is_never_deleted(works: Works, state: State) -> None:
    """However old, and even if it bears the attribute that it must not."""
    put_rows([done(state=state, open_shard=f"{state}#2", due_at=1)])
    assert purger(works).deleted == 0
    assert works.held().expires_at is None


@pytest.mark.parametrize("hold", list(Hold))
def test_a_row_on_hold_is_never_deleted(works: Works, hold: Hold) -> None:
    """Its expiry comes off, until a person has looked."""
    put_rows([done(hold=hold)])
    assert (purger(works).deleted, purger(works).deleted) == (0, 0)
    assert works.held().expires_at is None


CHANGES: list[Any] = [
    pytest.param({"hold": "contradiction"}, id="held"),
    pytest.param({"expires_at": NOW_S + 1}, id="later"),
    pytest.param({"expires_at": None}, id="never"),
    pytest.param({"state": "UNKNOWN"}, id="not_done"),
    pytest.param({"schema": 2}, id="newer"),
]


@pytest.mark.parametrize("values", CHANGES)
def test_a_row_that_changed_since_it_was_read_is_not_deleted(
    works: Works, values: dict[str, Any]
) -> None:
    """State, time, hold and schema stand in the delete's own condition."""
    put_rows([done()])
    works.dynamo.before["delete_item"].append(lambda: works.edit(**values))
    report = purger(works)
    assert (report.deleted, left(works)) == (0, {"G-1"})


def test_a_row_that_is_gone_already_is_no_fault(works: Works) -> None:
    """TTL, or another run, was faster."""
    put_rows([done()])
    works.dynamo.before["delete_item"].append(lambda: purger(works))
    assert purger(works).deleted == 0
    assert left(works) == set()


def test_a_row_of_a_newer_version_is_neither_deleted_nor_repaired(works: Works) -> None:
    """Old code writes nothing to it: its reasons to keep it may be new ones."""
    put_rows([done("G-1", schema=2), done("G-2", state=State.FAILED, schema=2)])
    before = items()
    for dry_run in (True, False):
        report = purger(works, dry_run=dry_run)
        assert (report.deleted, report.repaired, items()) == (0, 0, before)


def test_a_row_that_cannot_be_read_harms_no_other(works: Works) -> None:
    """Words of a newer version: the others are purged all the same."""
    put_rows([done("G-1"), done("G-2"), done("G-3")])
    works.edit("G-2", hold="of a newer version", schema=2)
    purger(works)
    assert left(works) == {"G-2"}


def _crowd(works: Works) -> tuple[set[str], set[str]]:
    """Put rows to delete and rows to keep; return both sets of GUIDs."""
    works.clock.ms = START_MS
    dead = [done(f"D-{number}") for number in range(12)]
    kept = [done(f"K-{number}", expires_at=NOW_S + 60) for number in range(6)]
    old = START_MS - 500 * DAY_MS
    unknown = [
        replace(failed_row(f"U-{n}", old), state=State.UNKNOWN, open_shard="UNKNOWN#1")
        for n in range(3)
    ]
    failed = [failed_row(f"F-{number}", old) for number in range(3)]
    put_rows([*dead, *kept, *unknown, *failed])
    return {row.guid for row in dead}, {row.guid for row in [*kept, *unknown, *failed]}


def test_exactly_the_expired_go_and_the_rest_is_counted_by_state_and_age(works: Works) -> None:
    """The oldest age comes from the table itself."""
    dead, kept = _crowd(works)
    report = purger(works)
    assert (report.deleted, report.scanned, left(works)) == (len(dead), 24, kept)
    assert report.kept == {"DONE >=30d": 6, "UNKNOWN >=30d": 3, "FAILED >=30d": 3}
    assert report.oldest_ms == {"UNKNOWN": 500 * DAY_MS, "FAILED": 500 * DAY_MS}
    assert report.complete


@pytest.mark.parametrize(
    ("age_s", "name"),
    [(3_599, "<1h"), (3_600, "<1d"), (86_400, "<30d"), (30 * 86_400, ">=30d")],
)
def test_the_ages_that_are_told_have_bounds(works: Works, age_s: int, name: str) -> None:
    """An hour, a day, thirty days."""
    put_rows([failed_row("G-1", START_MS - age_s * 1000)])
    assert purger(works).kept == {f"FAILED {name}": 1}


def test_a_dry_run_counts_what_a_run_would_do_and_does_nothing(works: Works) -> None:
    """Not even its place is kept."""
    dead, _ = _crowd(works)
    works.edit("F-0", expires_at=1)
    before, calls = items(), len(works.dynamo.calls)
    report = purger(works, dry_run=True)
    assert (report.deleted, report.repaired, items()) == (len(dead), 1, before)
    assert set(works.dynamo.calls[calls:]) == {"scan"}
    wet = purger(works)
    assert (wet.deleted, wet.repaired) == (len(dead), 1)


class Pages:
    """The table in pages of a few rows, as a table of gigabytes is."""

    def __init__(self, inner: Any, rows: int) -> None:
        self._inner = inner
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        """Return the operation; scans in small pages."""
        operation = getattr(self._inner, name)
        more = {"Limit": self._rows} if name == "scan" else {}
        return lambda **request: operation(**request, **more)


def test_a_run_out_of_time_goes_on_where_it_stopped(works: Works) -> None:
    """In as many runs as it takes; each page is scanned once, and the last run says so."""
    dead, kept = _crowd(works)
    works.use(Pages(works.table, 3))

    def run() -> Report:
        return purger(works, left_ms=14_999, on_page=lambda _: works.clock.advance(2))

    reports = [run() for _ in range(3)]  # Each has time for three pages of two seconds.
    assert [report.complete for report in reports] == [False, False, True]
    assert sum(report.scanned for report in reports) == 24
    assert sum(report.deleted for report in reports) == len(dead)
    assert (left(works), works.item("!purge#1#0")) == (kept, {})


def test_a_purger_killed_at_any_call_deletes_the_same_in_the_end(works: Works) -> None:
    """Before every scan, delete and note of its place; a fresh run goes on."""
    works.use(Pages(works.table, 5))
    at = 0
    while True:
        at += 2  # Every other call: deletes and pages are many alike.
        dead, kept = _crowd(works)
        works.fuse.arm(at)
        try:
            purger(works)
        except KilledError:
            works.fuse.arm(0)
        else:
            works.fuse.arm(0)
            break
        purger(works)
        purger(works)
        assert (left(works), at) == (kept, at)
        assert dead.isdisjoint(left(works))
    assert at > 12


def test_a_table_that_cannot_be_read_ends_the_run_and_keeps_its_place(works: Works) -> None:
    """Loudly; the next run goes on."""
    _, kept = _crowd(works)
    works.use(Pages(works.table, 8))
    throttled = [refused("ThrottlingException")] * 2
    # The first page is read; the faults are laid for the one after it.
    works.dynamo.before["scan"].append(
        lambda: works.dynamo.before["put_item"].append(
            lambda: works.dynamo.faults["scan"].extend(throttled)
        )
    )
    with pytest.raises(UpkeepError):
        purger(works)
    assert works.item("!purge#1#0")
    assert purger(works).scanned == 16
    assert left(works) == kept


@pytest.mark.parametrize("segments", [1, 4, 7])
def test_segments_share_the_table_without_loss(works: Works, segments: int) -> None:
    """Each row is seen once."""
    dead, kept = _crowd(works)
    works.deploy(scan_segments=segments)
    report = purger(works)
    assert (report.scanned, report.deleted, left(works)) == (24, len(dead), kept)


def test_rows_are_judged_as_they_are_and_not_as_they_were(works: Works) -> None:
    """Every page is read consistently."""
    purger(works)
    calls = zip(works.dynamo.calls, works.dynamo.requests, strict=True)
    assert [request["ConsistentRead"] for name, request in calls if name == "scan"] == [True]


@pytest.mark.parametrize("ahead_ms", [-4_000, 4_000])
def test_no_row_is_deleted_under_a_clock_that_is_off(works: Works, ahead_ms: int) -> None:
    """Off by more than half the skew against the ledger's own time: no purge, a note."""
    put_rows([done()])
    works.dynamo_ahead_ms = ahead_ms
    assert purger(works).deleted == 0
    assert (left(works), works.noted("clock_off") > 0) == ({"G-1"}, True)

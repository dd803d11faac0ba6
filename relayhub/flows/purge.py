"""The purger: delete what is done and past its time, mend what the index or TTL would mislead.

What is stored in `expires_at` is the law: no option deletes earlier, and the delete's own condition
checks state and time. Rows in SENT, UNKNOWN, RECEIVED and FAILED are never deleted; they are
counted, with their age from the table itself.

A large answer's object goes after its row, never before: while the row is there its answer may be
asked for. What is left of it when the purger dies in between, or when TTL was faster, is removed by
the bucket's lifecycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from relayhub.answers import AnswerStoreError
from relayhub.ledger import Stored
from relayhub.row import HELD, PARKED, Row, open_shard
from relayhub.states import SCHEMA, Event, State
from relayhub.upkeep import FINISHED

if TYPE_CHECKING:
    from relayhub.hub import Hub

BY: Final = "purger"
_KEEP_BACK_MS: Final = 10_000  # For the page in hand and the cursor.
_AGES_S: Final = ((3600, "1h"), (86_400, "1d"), (30 * 86_400, "30d"))


@dataclass
class Report:
    """What one run deleted, repaired and kept."""

    scanned: int = 0
    deleted: int = 0
    repaired: int = 0
    objects_left: int = 0  # Whose row was deleted; the bucket's lifecycle removes them.
    kept: Counter[str] = field(default_factory=Counter)  # By state and age, as "UNKNOWN <1d".
    oldest_ms: dict[str, int] = field(default_factory=dict)  # By state; HELD and PARKED too.
    complete: bool = True  # False: the next run goes on where this one stopped.

    def add(self, other: Report) -> None:
        """Add what another segment saw."""
        self.scanned += other.scanned
        self.deleted += other.deleted
        self.repaired += other.repaired
        self.objects_left += other.objects_left
        self.kept += other.kept
        self.complete = self.complete and other.complete
        for state, age in other.oldest_ms.items():
            self.oldest_ms[state] = max(age, self.oldest_ms.get(state, 0))


def run(
    hub: Hub,
    dead_at_ms: int,
    *,
    dry_run: bool = False,
    on_page: Callable[[int], None] = lambda _: None,
) -> Report:
    """Sweep the table in parallel segments, within the time; a dry run only counts.

    Raises UpkeepError if the table cannot be read. Safe to run twice at once, or to be killed.
    """
    segments = hub.settings.scan_segments
    report = Report()
    # The threads end with this call: none outlives the handler, and none talks to the core.
    with ThreadPoolExecutor(segments) as pool:
        runs = [
            pool.submit(_sweep, hub, segment, dead_at_ms, dry_run=dry_run, on_page=on_page)
            for segment in range(segments)
        ]
        for each in runs:
            report.add(each.result())
    if report.complete and not dry_run:
        hub.upkeep.forget_cursors(segments)
    return report


def _sweep(
    hub: Hub, segment: int, dead_at_ms: int, *, dry_run: bool, on_page: Callable[[int], None]
) -> Report:
    """Sweep one segment from where the last run stopped; a dry run begins at its beginning."""
    report = Report()
    segments = hub.settings.scan_segments
    start = None if dry_run else hub.upkeep.cursor(segment, segments)
    if start == FINISHED:
        return report
    while hub.now_ms() + _KEEP_BACK_MS <= dead_at_ms:
        page = hub.upkeep.scan(segment, segments, start)
        if hub.upkeep.clock_is_off():
            # What is over by a wrong clock may not be over.
            hub.note("clock_off")
            break
        for row in page.rows:
            _handle(hub, row, report, dry_run=dry_run)
        for guid in page.unreadable:
            hub.note("row_fault", guid=guid, error="unreadable")
            report.kept["UNREADABLE"] += 1
        on_page(len(page.rows))
        start = page.next_key
        if not dry_run:
            hub.upkeep.keep_cursor(segment, segments, start or FINISHED)
        if start is None:
            return report
    report.complete = False
    return report


def _handle(hub: Hub, row: Row, report: Report, *, dry_run: bool) -> None:
    report.scanned += 1
    now_ms = hub.now_ms()
    if _is_over(row, now_ms // 1000):
        # A dry run counts what a run would delete.
        if dry_run or hub.upkeep.delete_expired(row.guid, now_ms // 1000):
            report.deleted += 1
            if row.response_object is not None and not dry_run:
                _remove_object(hub, row.guid, row.response_object, report)
            return
    elif changes := wrong_fields(hub, row):
        report.repaired += dry_run or _repair(hub, row, changes)
    age_ms = now_ms - row.accepted_at
    # What only a person moves on is told apart, DONE rows on hold included: no index has those.
    standing = HELD if row.hold else PARKED if row.parked else row.state
    report.kept[f"{standing} {_age(age_ms)}"] += 1
    if standing is not State.DONE:
        report.oldest_ms[standing] = max(age_ms, report.oldest_ms.get(standing, 0))


def _remove_object(hub: Hub, guid: str, stored: Mapping[str, Any], report: Report) -> None:
    """Remove the object of a deleted row; after one that stays, the segment tries no more.

    Each try may take seconds, and the rows are what the run is for.
    """
    if report.objects_left == 0:
        try:
            hub.store.remove(stored)
        except AnswerStoreError as error:
            hub.note("object_left", guid=guid, reason=str(error))
        else:
            return
    report.objects_left += 1


def _is_over(row: Row, now_s: int) -> bool:
    return (
        row.state is State.DONE
        and row.schema <= SCHEMA
        and row.hold is None
        and row.expires_at is not None
        and row.expires_at <= now_s
    )


def wrong_fields(hub: Hub, row: Row) -> dict[str, Any]:
    """Return what must be put right: an expiry on an open or held row, a missing index key."""
    if row.schema > SCHEMA:
        return {}
    changes: dict[str, Any] = {}
    if row.expires_at is not None and (row.state is not State.DONE or row.hold):
        changes["expires_at"] = None
    if row.state is State.DONE:
        return changes
    if not _is_in_index(hub, row):
        changes["open_shard"] = open_shard(replace(row, open_shard=None), hub.settings.shards)
    if row.due_at is None:
        changes["due_at"] = hub.now_ms()
    return changes


def _is_in_index(hub: Hub, row: Row) -> bool:
    """Tell whether some shard that the jobs read holds the row, under the right group."""
    if row.open_shard is None:
        return False
    group, _, shard = row.open_shard.partition("#")
    right = (open_shard(row, hub.settings.shards) or "").partition("#")[0]
    return group == right and shard.isdigit() and int(shard) < hub.settings.read_shards


def _repair(hub: Hub, row: Row, changes: dict[str, Any]) -> bool:
    """Put the fields right, if the row is still as read; a row that moved is right already."""
    outcome = hub.ledger.move(row, Event.REPAIRED, BY, hub.now_ms(), **changes)
    if not isinstance(outcome, Stored):
        return False
    hub.note("repaired", guid=row.guid, state=row.state, fields=sorted(changes))
    return True


def _age(age_ms: int) -> str:
    for limit_s, name in _AGES_S:
        if age_ms < limit_s * 1000:
            return f"<{name}"
    return f">={_AGES_S[-1][1]}"

"""What the index says is due, over all shards, oldest first.

The index is a hint: it lags, and whoever acts reads the row itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relayhub.upkeep import Due, UpkeepError

if TYPE_CHECKING:
    from relayhub.hub import Hub


@dataclass
class DueRows:
    """The rows that are due; not `complete` if a shard held more, or could not be read."""

    rows: list[Due] = field(default_factory=list)
    complete: bool = True
    oldest_ms: dict[str, int] = field(default_factory=dict)  # By group: how long overdue.


def due_rows(hub: Hub, groups: Iterable[str], per_shard: int) -> DueRows:
    """Return what is due in the groups, at most `per_shard` of each shard.

    Each call starts at another shard, so that none is always the last. A shard that cannot be read
    must not hide the others.
    """
    shards = hub.settings.read_shards
    first = int(hub.chance() * shards)
    now_ms = hub.now_ms()
    due = DueRows()
    for group in groups:
        for offset in range(shards):
            try:
                rows = hub.upkeep.due(group, (first + offset) % shards, now_ms, per_shard)
            except UpkeepError as error:
                hub.note("shard_fault", group=group, reason=str(error))
                due.complete = False
                continue
            due.complete = due.complete and len(rows) < per_shard
            due.rows += rows
            if rows:
                overdue_ms = now_ms - rows[0].due_at
                due.oldest_ms[group] = max(due.oldest_ms.get(group, 0), overdue_ms)
    due.rows.sort(key=lambda row: row.due_at)
    return due

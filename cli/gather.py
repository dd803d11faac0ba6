"""Open rows by the index: which there are in a state, read as they are now, oldest first.

The index lags and holds keys only, so each row is read itself; how many may be read is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, islice
from typing import Final

from cli.desk import Desk, telling
from relayhub.row import HELD, PARKED, Row
from relayhub.states import State

KEYS_MAX: Final = 20_000  # Some 10 MB of rows, read one by one in batches of 100.
_BATCH: Final = 100


class Wanted(StrEnum):
    """What rows can be asked for by."""

    RECEIVED = State.RECEIVED
    SENT = State.SENT
    UNKNOWN = State.UNKNOWN
    FAILED = State.FAILED
    PARKED = PARKED
    HELD = HELD


# A row that waits for a person stands apart in the index, and is in its state all the same.
GROUPS: Final = {
    Wanted.RECEIVED: (State.RECEIVED, HELD),
    Wanted.SENT: (State.SENT, HELD),
    Wanted.UNKNOWN: (State.UNKNOWN, HELD),
    Wanted.FAILED: (State.FAILED, PARKED, HELD),
    Wanted.PARKED: (PARKED,),
    # A restored row in doubt is held, and stands where the resolver asks about it.
    Wanted.HELD: (HELD, State.UNKNOWN),
}
ALL: Final = (State.SENT, State.UNKNOWN, State.RECEIVED, State.FAILED, PARKED, HELD)


@dataclass(frozen=True)
class Filter:
    """Which open rows are meant; the age counts from when the hub accepted them."""

    wanted: Wanted | None = None
    channel: str | None = None
    older_than_ms: int = 0

    def takes(self, row: Row, now_ms: int) -> bool:
        """Tell whether the row, as it is now, is meant."""
        if row.state is State.DONE or now_ms - row.accepted_at < self.older_than_ms:
            return False
        return (self.channel in {None, row.channel}) and self._is_wanted(row)

    def _is_wanted(self, row: Row) -> bool:
        match self.wanted:
            case None:
                return True
            case Wanted.HELD:
                return row.hold is not None
            case Wanted.PARKED:
                return row.parked is not None and row.hold is None
            case _:
                return row.state == State(self.wanted)


@dataclass
class Gathered:
    """The rows that were meant; not `complete` if the index has more keys than may be read."""

    rows: list[Row] = field(default_factory=list)
    complete: bool = True
    unreadable: tuple[str, ...] = ()


def gather(desk: Desk, only: Filter, tell: Callable[[str], None] = lambda _: None) -> Gathered:
    """Return the open rows that the filter takes. Raises CommandError."""
    gathered = Gathered()
    with telling():
        keys = list(islice(_keys(desk, only), KEYS_MAX + 1))
        gathered.complete = len(keys) <= KEYS_MAX
        for first in range(0, min(len(keys), KEYS_MAX), _BATCH):
            tell(f"reading rows: {first:,} of {len(keys):,}")
            rows = desk.surveys.rows(keys[first : min(first + _BATCH, KEYS_MAX)])
            gathered.rows += [row for row in rows if only.takes(row, desk.now_ms())]
    gathered.unreadable = tuple(sorted(desk.surveys.unreadable))
    gathered.rows.sort(key=lambda row: (row.accepted_at, row.guid))
    return gathered


def _keys(desk: Desk, only: Filter) -> Iterator[str]:
    groups = ALL if only.wanted is None else GROUPS[only.wanted]
    shards = range(desk.settings.read_shards)
    found = (desk.surveys.open_rows(group, shard) for group in groups for shard in shards)
    return _once(due.guid for due in chain.from_iterable(found))


def _once(guids: Iterable[str]) -> Iterator[str]:
    """Return each GUID once: a row that moves meanwhile may be in two groups."""
    seen: set[str] = set()
    for guid in guids:
        if guid not in seen:
            seen.add(guid)
            yield guid

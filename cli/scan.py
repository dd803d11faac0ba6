"""A bounded scan of the whole table: some segments at once, until it has cost what it may.

Eventually consistent, at half the price of a consistent read; every row that is passed over is paid
for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from cli.desk import Desk, telling
from relayhub.row import Row
from relayhub.surveys import Scanned

SEGMENTS: Final = 4  # A page of each at once: about 500 read units in a round.


@dataclass
class Scan:
    """What a scan saw, and what it cost in read units; not `complete` where it stopped early."""

    rows: int = 0
    units: float = 0.0
    complete: bool = True

    def document(self) -> dict[str, Any]:
        """Return it for a JSON document."""
        return {"rows": self.rows, "read_units": round(self.units, 1), "complete": self.complete}


def scan(
    desk: Desk,
    accepted: range,
    each: Callable[[Row], None],
    units_max: int,
    tell: Callable[[str], None] = lambda _: None,
) -> Scan:
    """Hand over every row that was accepted within the times, epoch ms. Raises CommandError."""
    found = Scan()
    starts: dict[int, str | None] = dict.fromkeys(range(SEGMENTS))

    def page(segment: int) -> Scanned:
        return desk.surveys.scan(segment, SEGMENTS, starts[segment], accepted)

    with telling(), ThreadPoolExecutor(SEGMENTS) as pool:
        while starts:
            if found.units >= units_max:
                found.complete = False
                break
            for segment, scanned in list(zip(starts, pool.map(page, list(starts)), strict=True)):
                found.units += scanned.units
                for row in scanned.rows:
                    found.rows += 1
                    each(row)
                if scanned.next_key is None:
                    del starts[segment]
                else:
                    starts[segment] = scanned.next_key
            tell(f"scanned: {found.rows:,} rows taken, {found.units:,.0f} read units")
    return found

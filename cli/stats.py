"""`relayhub stats`: how many rows stand where, how old they are, and how much money is in doubt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import median_low
from typing import Annotated, Any, Final

import typer

from cli.command import Here
from cli.desk import Desk, open_desk, telling
from cli.exits import Exit
from cli.functions import plural
from cli.gather import Filter, Gathered, gather
from cli.list_rows import tell_missing
from cli.options import UNITS_MAX, UnitsMax
from cli.scan import Scan, scan
from cli.screen import Screen, spoken
from cli.switches import tell_switches
from relayhub.flows.survey import Sums
from relayhub.row import Row
from relayhub.states import State

Kind = tuple[str, str, str]  # State, what stops it, code.
_BAR: Final = 40  # Columns of the longest bar.
# The ages at which somebody should have looked: a minute, ten, an hour, six, a day, a week.
_BOUNDS_S: Final = (60, 600, 3_600, 21_600, 86_400, 604_800)


@dataclass
class Stats:
    """Counts and ages of rows, and the sums in doubt."""

    now_ms: int
    ages_ms: dict[Kind, list[int]] = field(default_factory=dict)
    buckets: Counter[int] = field(default_factory=Counter)
    in_doubt: Sums = field(default_factory=Sums)

    def add(self, row: Row) -> None:
        """Count the row in; ages in the histogram are those of open rows alone."""
        age_ms = max(0, self.now_ms - row.accepted_at)
        stopped = f"held ({row.hold})" if row.hold else f"parked ({row.parked})"
        kind = (row.state, stopped if row.hold or row.parked else "", row.code or "-")
        self.ages_ms.setdefault(kind, []).append(age_ms)
        if row.state is State.UNKNOWN:
            self.in_doubt.add(row)
        if row.state is not State.DONE or row.hold:
            self.buckets[sum(age_ms >= bound * 1000 for bound in _BOUNDS_S)] += 1


def stats(
    here: Here,
    *,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all", help="Scan the whole table, the DONE rows too; it says what it cost."
        ),
    ] = False,
    units_max: UnitsMax = UNITS_MAX,
) -> Exit:
    """Count rows by state and code, with their ages, and sum up the money that is in doubt.

    Without `--all` the open rows alone, by the index. Money is in doubt where a row is UNKNOWN.
    """
    desk = open_desk(here)
    found = Stats(here.now_ms())
    with telling():
        switches = desk.controls.read()
    gathered, scanned = Gathered(), None
    with here.screen.working("counting") as tell:
        if all_rows:
            scanned = scan(desk, range(here.now_ms() + 86_400_000), found.add, units_max, tell)
            gathered.unreadable = tuple(sorted(desk.surveys.unreadable))
        else:
            gathered = gather(desk, Filter(), tell)
            for row in gathered.rows:
                found.add(row)
    complete = gathered.complete and (scanned is None or scanned.complete)
    if here.screen.as_json:
        here.screen.document(_document(found, scanned) | {"complete": complete})
    else:
        tell_switches(here.screen, switches)
        _show(here.screen, desk, found)
        _show_cost(here.screen, scanned, units_max)
    tell_missing(here.screen, gathered)
    return Exit.DONE if complete and not gathered.unreadable else Exit.PARTLY


def _document(found: Stats, scanned: Scan | None) -> dict[str, Any]:
    sums = found.in_doubt
    return {
        "rows": [
            {
                **dict(zip(("state", "stopped", "code"), kind, strict=True)),
                "rows": len(ages),
                "oldest_ms": max(ages),
                "median_ms": median_low(ages),
            }
            for kind, ages in sorted(found.ages_ms.items())
        ],
        "ages": [
            {"from_s": low, "rows": found.buckets[place]}
            for place, low in enumerate((0, *_BOUNDS_S))
        ],
        "in_doubt": [
            {"channel": channel, "currency": currency, "rows": rows, "sum": text_of(total)}
            for (channel, currency), rows, total in lines_of(sums)
        ],
        "uncounted": sums.uncounted,
        "scan": None if scanned is None else scanned.document(),
    }


def lines_of(sums: Sums) -> list[tuple[tuple[str, str], int, Decimal]]:
    """Return the sums by channel and currency, in order."""
    return [(each, sums.rows[each], sums.by.get(each, Decimal(0))) for each in sorted(sums.rows)]


def text_of(total: Decimal) -> str:
    """Return the amount in digits, as it is."""
    return f"{total:f}"


def _show(screen: Screen, desk: Desk, found: Stats) -> None:
    total = sum(map(len, found.ages_ms.values()))
    if not total:
        screen.say("no row is open")
        return
    screen.table(
        ("state", "stopped by", "code", "rows", "oldest", "median"),
        [
            (*kind, len(ages), spoken(max(ages)), spoken(median_low(ages)))
            for kind, ages in sorted(found.ages_ms.items())
        ],
    )
    screen.say("\nAges of what is open", "bold")
    _show_ages(screen, found)
    _show_money(screen, desk, found.in_doubt)


def _show_ages(screen: Screen, found: Stats) -> None:
    longest = max(found.buckets.values(), default=0) or 1
    names = ("under 1 min", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d and more")
    screen.table(
        ("age from", "rows", ""),
        [
            (name, rows, "█" * -(-_BAR * rows // longest))
            for place, name in enumerate(names)
            for rows in (found.buckets[place],)
        ],
    )


def _show_money(screen: Screen, desk: Desk, sums: Sums) -> None:
    if not sums.rows:
        screen.say("\nNo money is in doubt: no row is UNKNOWN")
        return
    screen.say("\nIn doubt", "bold")
    screen.table(
        ("channel", "currency", "rows", "sum"),
        [
            (channel, currency, rows, f"{total:,f}")
            for (channel, currency), rows, total in lines_of(sums)
        ],
    )
    if sums.uncounted:
        why = "" if desk.settings.money_fields else ": MONEY_FIELDS names no amount"
        screen.note(f"{plural(sums.uncounted, 'row')} in doubt bear no amount{why}")


def _show_cost(screen: Screen, scanned: Scan | None, units_max: int) -> None:
    if scanned is None:
        return
    cost = f"{plural(scanned.rows, 'row')} scanned for {scanned.units:,.1f} read units"
    screen.say(f"\n{cost}")
    if not scanned.complete:
        screen.note(f"the scan stopped at {units_max:,} read units (--units-max): rows are missing")

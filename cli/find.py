"""`relayhub find`: a transaction by its amount, time, channel or reference, without its GUID."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import typer

from cli.command import Here
from cli.desk import open_desk
from cli.exits import CommandError, Exit
from cli.functions import plural
from cli.gather import Gathered
from cli.list_rows import tell_missing
from cli.options import UNITS_MAX, OnlyChannel, UnitsMax, amount, moment
from cli.row_view import facts, state_of
from cli.scan import scan
from relayhub.money import number
from relayhub.row import Row
from relayhub.times import rfc3339

_DAY_MS = 86_400_000  # A row's time may lie ahead by no more than clocks differ.


@dataclass(frozen=True)
class Sought:
    """What is known of the transaction; amounts are compared as numbers: 1000 is 1000.00."""

    amount: Decimal | None
    currency: str | None
    reference: str | None
    channel: str | None

    def is_it(self, row: Row) -> bool:
        """Tell whether the row may be the one."""
        if self.amount is not None and number(row.amount) != self.amount:
            return False
        named = ("currency", "reference", "channel")
        return all(getattr(self, each) in {None, getattr(row, each)} for each in named)


def find(
    here: Here,
    *,
    amount_: Annotated[
        str | None, typer.Option("--amount", metavar="N", help="The exact amount, as 1000 or 12.5.")
    ] = None,
    currency: Annotated[str | None, typer.Option(metavar="TEXT", help="The currency.")] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The channel's own reference.")
    ] = None,
    channel: OnlyChannel = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Accepted at this time (RFC 3339) or later."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Accepted before this time.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show at most so many.")] = 20,
    units_max: UnitsMax = UNITS_MAX,
) -> Exit:
    """Find a transaction of which nobody has the GUID, by what the channel's declared fields say.

    It scans the table, whatever the times: one read unit for each 8 KB of all rows. It says what it
    cost, and whether it saw everything.
    """
    sought = Sought(
        amount("--amount", amount_) if amount_ is not None else None, currency, reference, channel
    )
    accepted = _times(here, from_, to)
    if sought == Sought(None, None, None, None) and from_ is None and to is None:
        raise CommandError("say what is known: --amount, --reference, --from, --to", Exit.REFUSED)
    desk = open_desk(here)
    found: list[Row] = []

    def each(row: Row) -> None:
        if sought.is_it(row):
            found.append(row)

    with here.screen.working("scanning") as tell:
        seen = scan(desk, accepted, each, units_max, tell)
    found.sort(key=lambda row: (row.accepted_at, row.guid))
    unreadable = tuple(sorted(desk.surveys.unreadable))
    _show(here, found, limit)
    if here.screen.as_json:
        rows = [facts(row) for row in found[:limit]]
        here.screen.document(
            {
                "found": len(found),
                "unreadable": list(unreadable),
                "rows": rows,
                "scan": seen.document(),
            }
        )
    else:
        here.screen.say(f"{plural(len(found), 'row')} found for {seen.units:,.1f} read units")
    if not seen.complete:
        here.screen.note(
            f"the scan stopped at {units_max:,} read units (--units-max): it did not see everything"
        )
    # One of them may be what is sought: nobody can tell.
    tell_missing(here.screen, Gathered(unreadable=unreadable))
    return Exit.DONE if seen.complete and not unreadable else Exit.PARTLY


def _times(here: Here, from_: str | None, to: str | None) -> range:
    first = moment("--from", from_) if from_ is not None else 0
    end = moment("--to", to) if to is not None else here.now_ms() + _DAY_MS
    if first >= end:
        raise CommandError("--from must be before --to", Exit.REFUSED)
    return range(first, end)


def _show(here: Here, found: list[Row], limit: int) -> None:
    if here.screen.as_json or not found:
        return
    here.screen.table(
        ("GUID", "accepted", "channel", "amount", "currency", "reference", "state", "code"),
        [
            (
                *(row.guid, rfc3339(row.accepted_at), row.channel, row.amount or "-"),
                *(row.currency or "-", row.reference or "-", state_of(row), row.code or "-"),
            )
            for row in found[:limit]
        ],
    )

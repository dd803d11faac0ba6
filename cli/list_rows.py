"""`relayhub list`: the open rows of a state, oldest first."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.command import Here
from cli.desk import open_desk
from cli.exits import Exit
from cli.functions import plural
from cli.gather import KEYS_MAX, Filter, Gathered, Wanted, gather
from cli.options import OlderThan, OnlyChannel, seconds
from cli.row_view import age, facts, state_of
from cli.screen import Cell, Screen
from relayhub.row import Row

HEADS = ("GUID", "channel", "state", "code", "age", "attempt", "resends", "amount", "currency")


def list_rows(
    here: Here,
    *,
    state: Annotated[
        Wanted | None,
        typer.Option(help="Only rows in this state, the held and parked among them; none: all."),
    ] = None,
    older_than: OlderThan = None,
    channel: OnlyChannel = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show at most so many.")] = 50,
) -> Exit:
    """List the rows that are open, oldest first: in doubt, not sent, parked or held.

    They come from the index, and each is read as it is now. DONE rows are in no index, those on
    hold neither: the stats of all rows count them.
    """
    only = Filter(state, channel, seconds("--older-than", older_than) * 1000 if older_than else 0)
    desk = open_desk(here)
    with here.screen.working("reading the index") as tell:
        gathered = gather(desk, only, tell)
    shown = gathered.rows[:limit]
    if here.screen.as_json:
        here.screen.document(
            {
                "found": len(gathered.rows),
                "complete": gathered.complete,
                "unreadable": list(gathered.unreadable),
                "rows": [facts(row) for row in shown],
            }
        )
    else:
        show_rows(here, shown)
        here.screen.say(f"{plural(len(gathered.rows), 'row')}, {len(shown):,} shown, oldest first")
    tell_missing(here.screen, gathered)
    return Exit.DONE if gathered.complete and not gathered.unreadable else Exit.PARTLY


def show_rows(here: Here, rows: list[Row]) -> None:
    """Print rows as a table."""
    if rows:
        here.screen.table(HEADS, [line_of(row, here.now_ms()) for row in rows])


def line_of(row: Row, now_ms: int) -> tuple[Cell, ...]:
    """Return a row as a line of the table."""
    return (
        *(row.guid, row.channel, state_of(row), row.code or "-", age(row, now_ms)),
        *(row.attempt, row.resends, row.amount or "-", row.currency or "-"),
    )


def tell_missing(screen: Screen, gathered: Gathered) -> None:
    """Tell what was not seen."""
    if not gathered.complete:
        screen.note(f"the index holds more than {KEYS_MAX:,} such rows: only so many were read")
    for guid in gathered.unreadable:
        screen.note(f"the row of {guid} cannot be read: somebody has to look at it")

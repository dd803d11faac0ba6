"""`relayhub purge`: delete what is done and past its time, by the purger's function now."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.command import Here
from cli.exits import Exit
from cli.functions import Runs, invoke_until_complete, plural
from cli.screen import Screen, spoken
from cli.stack import Output


def purge(
    here: Here,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Delete and repair nothing: count what a run would.")
    ] = False,
) -> Exit:
    """Delete the rows that are done and past their stored time, and count what is kept.

    It runs the stack's purger until the whole table was seen. What a row's `expires_at` says is
    the law: no option deletes earlier. Rows that are not DONE are never deleted.
    """
    runs = invoke_until_complete(
        *(here, Output.PURGER, {"dry_run": dry_run}),
        doing="counting" if dry_run else "purging",
        # A dry run begins at the beginning each time, so a second one would see no more.
        moved=lambda report: not dry_run and report.get("scanned", 0) > 0,
    )
    _show(here.screen, runs, is_dry=dry_run)
    if runs.complete:
        return Exit.DONE
    here.screen.note(
        "a part of the table was not counted: the purger's time was over"
        if dry_run
        else "a part of the table was not seen: the next run goes on where this one stopped"
    )
    return Exit.PARTLY


def _show(screen: Screen, runs: Runs, *, is_dry: bool) -> None:
    scanned, deleted, repaired = (runs.total(each) for each in ("scanned", "deleted", "repaired"))
    kept, oldest = runs.totals("kept"), runs.largest("oldest_ms")
    if screen.as_json:
        counts = {"scanned": scanned, "deleted": deleted, "repaired": repaired}
        kinds = {"kept": kept, "oldest_ms": oldest}
        screen.document({"dry_run": is_dry} | runs.summary() | counts | kinds)
        return
    would = "to be " if is_dry else ""
    screen.say(
        f"{plural(scanned, 'row')} seen: {deleted:,} {would}deleted, {repaired:,} {would}repaired"
    )
    if kept:
        # The purger's own words: a state, a space, an age.
        screen.table(
            ("kept", "age", "rows"),
            [(*_split(name), count) for name, count in sorted(kept.items())],
        )
    if oldest:
        screen.table(
            ("not done", "oldest"), [(state, spoken(ms)) for state, ms in sorted(oldest.items())]
        )
    if len(runs.reports) > 1 and kept:
        screen.note("it took several runs: rows that were kept may be counted more than once")


def _split(name: str) -> tuple[str, str]:
    state, _, age = name.partition(" ")
    return state, age

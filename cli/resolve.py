"""`relayhub resolve`: what became of the rows in doubt, by a run of the resolver's function now."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from cli.command import Here
from cli.exits import CommandError, Exit
from cli.functions import FunctionError, Report, Runs, invoke_until_complete, plural
from cli.screen import Screen, spoken
from cli.stack import Output
from cli.switches import tell_held
from relayhub.controls import Job

# What the resolver says of a row that is as it was, and still due.
_NOT_MOVED: Final = frozenset({"gone", "lost", "not_written", "skipped", "unreadable"})
# What it says of a row that it could not see to; another run may.
_LEFT: Final = frozenset({"fault", "not_written", "unreadable"})


def resolve(
    here: Here,
    *,
    min_age: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="S",
            help="Believe a NOT_FOUND only this many seconds after the sending ended. An age below"
            " what the core's longest time demands is refused, by the function itself.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nothing and write nothing: count what is due.")
    ] = False,
) -> Exit:
    """Ask the core now what became of the rows that are due, and write what that proves.

    It runs the stack's resolver until nothing that is due is left. Rows whose next turn lies ahead
    are not due: each waits for the moment at which the core's word counts.
    """
    event: dict[str, Any] = {"dry_run": dry_run}
    if min_age is not None:
        event["min_age_s"] = min_age
    try:
        runs = invoke_until_complete(
            *(here, Output.RESOLVER, event),
            doing="counting what is due" if dry_run else "resolving",
            moved=lambda report: not dry_run and _moved(report),
        )
    except FunctionError as error:
        if min_age is not None and "MIN_AGE_S" in error.said:
            raise CommandError(f"--min-age {min_age}: {error.said}", Exit.REFUSED) from error
        raise
    _show(here.screen, runs, is_dry=dry_run)
    if runs.held:
        return tell_held(here, Job.RESOLVER)
    return _end(here.screen, runs, is_dry=dry_run)


def _moved(report: Report) -> bool:
    return any(step not in _NOT_MOVED for step in report.get("steps", {}))


def _show(screen: Screen, runs: Runs, *, is_dry: bool) -> None:
    asked, steps, oldest = (
        runs.total("asked"),
        runs.totals("steps"),
        runs.largest("oldest_due_ms"),
    )
    due = runs.first("due")
    if screen.as_json:
        counts = {"due": due, "asked": asked, "steps": steps, "oldest_due_ms": oldest}
        screen.document({"dry_run": is_dry} | runs.summary() | {"held": runs.held} | counts)
        return
    if runs.held and not due:
        return  # Nobody counted: "no row is due" would say too much.
    screen.say(f"{plural(due, 'row')} due" + ("" if is_dry else f", asked about {asked:,}"))
    if steps:
        screen.table(("step", "rows"), steps.most_common())
    if oldest:
        screen.table(
            ("state", "longest overdue"), [(state, spoken(ms)) for state, ms in oldest.items()]
        )


def _end(screen: Screen, runs: Runs, *, is_dry: bool) -> Exit:
    left = sum(count for step, count in runs.totals("steps").items() if step in _LEFT)
    if not runs.complete:
        what = "counted" if is_dry else "seen to"
        screen.note(f"not every row that is due was {what}: run it again, or leave it to schedule")
        return Exit.PARTLY
    if left:
        screen.note(f"{plural(left, 'row')} could not be seen to; the resolver's log says why")
        return Exit.PARTLY
    return Exit.DONE

"""`relayhub redrive`: new attempts and a new validity for rows that were certainly not executed.

It sends nothing: the reprocessor does, after it has asked the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from cli.acts import Act, Name
from cli.command import Here
from cli.exits import CommandError, Exit
from cli.functions import plural
from cli.gather import Filter, Wanted, gather
from cli.list_rows import tell_missing
from cli.operator import Operator
from cli.options import OlderThan, OperatorName, Reason, seconds
from cli.proposals import show_told
from cli.proposing import Told, on_many, propose, rehearse
from cli.row_view import age, facts, state_of
from relayhub.proposals import Target
from relayhub.row import Row
from relayhub.times import rfc3339

_VALID_MAX_S: Final = 30 * 86_400  # As the template bounds a deferred request's validity.
_STATES: Final = {Wanted.FAILED, Wanted.PARKED}


def redrive(
    here: Here,
    guids: Annotated[
        list[str] | None, typer.Argument(metavar="GUID", help="The rows; none: those of a state.")
    ] = None,
    *,
    reason: Reason,
    state: Annotated[
        Wanted | None,
        typer.Option(help="All rows that are FAILED, or of these the PARKED ones alone."),
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of this channel: the rows, or the GUIDs given."),
    ] = None,
    older_than: OlderThan = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many, the oldest first.")
    ] = None,
    valid_for: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="The new validity, as 24h; else a new request's."),
    ] = None,
    rate: Annotated[
        int,
        typer.Option(
            min=1, max=100, metavar="N", help="At most so many a second: the core has to bear them."
        ),
    ] = 5,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing: show what would be redriven.")
    ] = False,
    operator: OperatorName = None,
) -> Exit:
    """Give rows that were certainly not executed new attempts and a new validity.

    It shows how often each has failed already, and refuses what is not FAILED, held, cancelled or
    interactive. With FOUR_EYES more than one row is proposed, and another person approves it.
    """
    _check(guids, state, older_than)
    who = Operator.at(here, operator, reason)
    valid_s = seconds("--valid-for", valid_for) if valid_for else who.desk.settings.valid_deferred_s
    if valid_s > _VALID_MAX_S:
        raise CommandError("--valid-for: at most 30d", Exit.REFUSED)
    act = Act(Name.REDRIVE, {"valid_for_s": valid_s, "rate": rate})
    older_ms = seconds("--older-than", older_than) * 1000 if older_than else 0
    rows = (
        [who.row(each, channel) for each in dict.fromkeys(guids)]
        if guids
        else _chosen(who, Filter(state, channel, older_ms))
    )[:limit]
    if not rows:
        raise CommandError("no row is to be redriven", Exit.REFUSED)
    if not here.screen.as_json:
        _show_rows(here, rows)
    if dry_run:
        return _rehearsed(who, act, rows)
    if len(rows) > 1 and who.desk.settings.four_eyes:
        return propose(who, act, rows)
    return _carried_out(who, act, rows, rate)


def _check(guids: list[str] | None, state: Wanted | None, older_than: str | None) -> None:
    if guids and (state or older_than):
        raise CommandError("give GUIDs, or --state with its options, not both", Exit.REFUSED)
    if not guids and state is None:
        raise CommandError("name the GUIDs, or all by --state FAILED or PARKED", Exit.REFUSED)
    if state is not None and state not in _STATES:
        raise CommandError(
            f"--state {state}: only rows that were certainly not executed are redriven, which are"
            " FAILED, or of these PARKED",
            Exit.REFUSED,
        )


def _chosen(who: Operator, only: Filter) -> Sequence[Row]:
    with who.here.screen.working("reading the index") as tell:
        gathered = gather(who.desk, only, tell)
    tell_missing(who.here.screen, gathered)
    return gathered.rows


def _show_rows(here: Here, rows: Sequence[Row]) -> None:
    here.screen.table(
        ("GUID", "channel", "state", "age", "attempts", "by the hub", "why", "valid until"),
        [
            (
                *(row.guid, row.channel, state_of(row), age(row, here.now_ms())),
                *(row.attempt, row.resends, row.why or "-"),
                "-" if row.valid_until is None else rfc3339(row.valid_until),
            )
            for row in rows
        ],
    )


def _rehearsed(who: Operator, act: Act, rows: Sequence[Row]) -> Exit:
    fit, refused = rehearse(who, act, rows)
    if who.here.screen.as_json:
        shown = [facts(row) for row in fit]
        who.here.screen.document({"dry_run": True, "would_redrive": shown, "refused": refused})
    else:
        who.here.screen.say(f"{plural(len(fit), 'row')} would be redriven")
        for guid, sentence in refused.items():
            who.here.screen.say(f"{guid} would be refused: {sentence}")
    return Exit.DONE if fit else Exit.REFUSED


def _carried_out(who: Operator, act: Act, rows: Sequence[Row], rate: int) -> Exit:
    targets = [Target(row.guid, str(row.state), row.claim_id or "") for row in rows]
    told = on_many(who, act, targets, who.person, rate)
    if who.here.screen.as_json:
        failed = {row.guid: {"attempt": row.attempt, "resends": row.resends} for row in rows}
        who.here.screen.document({"dry_run": False, **told.document(), "had_failed": failed})
    elif len(rows) > 1 or not told.refused:
        show_told(who.here.screen, act.name, told)
    return _end(rows, told)


def _end(rows: Sequence[Row], told: Told) -> Exit:
    """Return the exit code; what a single row was refused for is the command's own sentence."""
    if len(rows) == 1 and told.refused:
        raise CommandError(next(iter(told.refused.values())), Exit.REFUSED)
    return told.end

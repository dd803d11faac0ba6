"""`relayhub reprocess`: hint at what was not sent, so that the reprocessor's function sees to it.

It never sends by itself. A hint only says where to look: the reprocessor asks the core, claims the
row and sends, or does not, by the row as it is then.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from cli.command import Here
from cli.exits import CommandError, Exit
from cli.functions import Runs, invoke_until_complete, plural
from cli.rows import Rows, why_no_hint
from cli.screen import Screen
from cli.stack import Output
from cli.switches import tell_held
from relayhub.controls import Job
from relayhub.guids import check_guid
from relayhub.message import MalformedError
from relayhub.queues import HintQueue


def reprocess(
    here: Here,
    guids: Annotated[
        list[str] | None,
        typer.Argument(metavar="GUID", help="The rows to hint at; none: those that are due."),
    ] = None,
) -> Exit:
    """Have the rows that were certainly not sent (FAILED) sent again, under the same GUID.

    With GUIDs it writes a hint for each into the stack's queue, or tells why a hint would do
    nothing. Without, it runs the reprocessor's sweep: a hint for each row that is due, and an end
    (E908) for each that is no longer valid. The reprocessor then asks the core before it sends.
    """
    return _hint(here, _checked(guids)) if guids else _sweep(here)


def _checked(guids: list[str]) -> list[str]:
    """Return the GUIDs in their one spelling, each once. Raises CommandError before any is used."""
    try:
        return list(dict.fromkeys(check_guid(each) for each in guids))
    except MalformedError as error:
        raise CommandError(str(error), Exit.REFUSED) from error


@dataclass(frozen=True)
class Hinted:
    """What a GUID came to: `reason` says why there is no hint, None if there is one."""

    guid: str
    state: str | None
    attempt: int | None
    reason: str | None


def _hint(here: Here, guids: list[str]) -> Exit:
    rows = Rows(here.stack)
    # The queue of rejects is none of a writer's.
    queue = HintQueue(here.stack.client("sqs"), here.stack.name(Output.DEAD_LETTER_QUEUE), "")
    told: list[Hinted] = []
    try:
        for guid in here.screen.counted(guids, "hinting"):
            told.append(_hint_one(here, rows, queue, guid))  # noqa: PERF401 - some stand on an error
    finally:
        # What was written is told even where the rest cannot be.
        if told:
            _show_hinted(here.screen, told)
    hinted = sum(each.reason is None for each in told)
    if hinted == len(told):
        return Exit.DONE
    return Exit.PARTLY if hinted else Exit.REFUSED


def _hint_one(here: Here, rows: Rows, queue: HintQueue, guid: str) -> Hinted:
    row = rows.read(guid)
    reason = why_no_hint(row, here.now_ms())
    if row is None:
        return Hinted(guid, None, None, reason)
    if reason is None and (fault := queue.send_hint(guid, row.attempt)):
        raise CommandError(f"the hint for {guid} could not be written: {fault}")
    return Hinted(guid, row.state, row.attempt, reason)


def _show_hinted(screen: Screen, told: list[Hinted]) -> None:
    hinted = sum(each.reason is None for each in told)
    if screen.as_json:
        rows = [{**asdict(each), "hinted": each.reason is None} for each in told]
        screen.document({"hinted": hinted, "rows": rows})
        return
    screen.table(
        ("GUID", "state", "hint"),
        [(each.guid, each.state or "-", each.reason or "written") for each in told],
    )
    screen.say(f"{plural(hinted, 'hint')} written for {plural(len(told), 'GUID')}")


def _sweep(here: Here) -> Exit:
    runs = invoke_until_complete(
        *(here, Output.REPROCESSOR, {}),
        doing="sweeping",
        moved=lambda report: report.get("hinted", 0) + report.get("ended", 0) > 0,
    )
    _show_sweep(here.screen, runs)
    if runs.held:
        return tell_held(here, Job.REPROCESSOR)
    if runs.complete:
        return Exit.DONE
    here.screen.note("not every row that is due was seen to: run it again, or leave it to schedule")
    return Exit.PARTLY


def _show_sweep(screen: Screen, runs: Runs) -> None:
    due, hinted, ended = runs.first("due"), runs.total("hinted"), runs.total("ended")
    if screen.as_json:
        counts = {"due": due, "hinted": hinted, "ended": ended}
        screen.document(runs.summary() | {"held": runs.held} | counts)
        return
    if runs.held and not due:
        return  # Nobody counted: "no row is due" would say too much.
    hints = plural(hinted, "hint")
    screen.say(f"{plural(due, 'row')} due: {hints} written, {ended:,} ended (E908)")
    if hinted + ended < due:
        screen.note(
            "the rest waits: for the core, if it is away (one hint brings the probe), for a person,"
            " or for its channel"
        )

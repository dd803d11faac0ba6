"""`relayhub show`: one row, its history as a timeline, and what comes next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli import outlook
from cli.command import Here
from cli.desk import Desk, open_desk, telling
from cli.exits import Exit
from cli.operator import read_row
from cli.options import Channel, Guid
from cli.row_view import TIMELINE_HEADS, age, facts, payload, state_of, timeline, timeline_lines
from relayhub.guids import guid_of
from relayhub.row import Row


def show(
    here: Here,
    guid: Guid,
    *,
    channel: Channel = None,
    body: Annotated[
        bool,
        typer.Option("--body", help="Print the request's and the answer's bytes too."),
    ] = False,
) -> Exit:
    """Show a row: where it stands, who did what to it, and what would happen to a resend now.

    It reads, and writes nothing. Without `--body` no byte of request or answer is shown.
    """
    desk = open_desk(here)
    row = read_row(desk, guid, channel)
    with telling():
        switches = desk.controls.read()
        bodies = _bodies(desk, row) if body else {}
    if here.screen.as_json:
        here.screen.document(
            {
                "row": facts(row) | {"channel_guid": guid_of(row.guid, desk.settings.guid_scope)},
                "age_ms": max(0, here.now_ms() - row.accepted_at),
                "history": timeline(row),
                **outlook.document(desk, row, switches),
                **bodies,
            }
        )
        return Exit.DONE
    screen = here.screen
    screen.line(state_of(row), f"  {row.guid}, of {row.channel}, {age(row, here.now_ms())} old")
    screen.table(("field", "value"), [(name, str(each)) for name, each in facts(row).items()])
    screen.say("\nWhat happened", "bold")
    screen.table(TIMELINE_HEADS, list(timeline_lines(row)))
    screen.say("\nWhat comes next", "bold")
    screen.say(f"A resend by its channel {outlook.of_resend(desk, row, switches).sentence}.")
    for sentence in outlook.of_hub(desk, row, switches):
        screen.say(f"By itself: {sentence}.")
    for name, each in bodies.items():
        screen.say(f"\nThe {name} ({each['type'] or 'no type'})", "bold")
        screen.say(each.get("text") or each.get("base64", ""))
    return Exit.DONE


def _bodies(desk: Desk, row: Row) -> dict[str, Any]:
    found = {}
    if row.request is not None:
        found["request"] = payload(row.request_type, row.request)
    if row.has_answer():
        body = row.response
        if body is None:
            body = desk.store.get(row.response_object or {})
        found["answer"] = payload(row.response_type or "", body)
    return found

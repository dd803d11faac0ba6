"""`relayhub redrive-messages`: move the intake queue's dead letters back, age and all.

An unclaimed message there has no row that a sweep could find, so a person moves it. SQS's own
StartMessageMoveTask would make it new: the hub's guard against what is older than the ledger's
memory goes by the time of sending. So each copy bears `first-sent-at`.

A message is deleted only after its copy was sent. A crash in between leaves both, and the second
one finds the row of the first: the ledger makes it harmless. So does it a copy that SQS has twice.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.command import Here
from cli.dead_letters import (
    HIDDEN_S,
    DeadLetters,
    Depth,
    Letter,
    attributes_back,
    first_sent_ms,
    guid_of,
)
from cli.exits import CommandError, Exit
from cli.functions import plural
from cli.redrive import Pace, Redrive
from cli.screen import Screen, spoken
from cli.stack import Output
from relayhub.times import rfc3339


def redrive_messages(
    here: Here,
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Move at most so many; else all that are there now."),
    ] = None,
    rate: Annotated[
        int,
        typer.Option(
            min=1,
            max=1_000,
            metavar="N",
            help="Move at most so many a second: the core has to bear them.",
        ),
    ] = 10,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Move nothing: count, and show some, without bodies. SQS counts this as one more"
            " receive of each that is shown.",
        ),
    ] = False,
) -> Exit:
    """Move the intake queue's dead letters back to the intake queue, which hands them over again.

    A message keeps its body, its attributes and, in `first-sent-at`, the time of its first sending:
    what is older than the ledger's memory is still put aside (E907). It is deleted only after its
    copy was sent. When the command dies in between there are both, which the ledger makes harmless.
    """
    letters = _dead_letters(here)
    depth = letters.depth()
    shown = letters.look() if depth.there else []
    if dry_run:
        _show_sample(here, depth, shown)
        return Exit.DONE
    if not here.screen.as_json:
        here.screen.say(_greeting(here, depth, shown))
    run = Redrive(letters, Pace(here, rate))
    try:
        # No more than there were: what comes back meanwhile is for another run.
        run.move(here.screen.counted(range(min(limit or depth.there, depth.there)), "moving"))
    finally:
        # What was moved is told even where the rest cannot be.
        run.give_back()
        _show(here, depth, shown, run)
    return _end(here.screen, depth, run, is_limited=limit is not None)


def _dead_letters(here: Here) -> DeadLetters:
    names = (Output.INTAKE_DEAD_LETTER_QUEUE, Output.INTAKE_QUEUE)
    url, intake_url = (here.stack.name(each) for each in names)
    for each in (url, intake_url):
        if each.endswith(".fifo"):
            raise CommandError(
                f"{each} is a FIFO queue: a copy in it would need a group and an order that this"
                " command does not keep",
                Exit.REFUSED,
            )
    return DeadLetters(here.stack.client("sqs"), url, intake_url)


def _end(screen: Screen, depth: Depth, run: Redrive, *, is_limited: bool) -> Exit:
    if run.undeleted:
        screen.note(
            f"{plural(len(run.undeleted), 'message')} moved and not deleted: another run would move"
            " the same once more, which the ledger makes harmless"
        )
    if run.is_short:
        screen.note("fewer came than SQS counted: another reader has them; run it again to be sure")
    if depth.hidden:
        screen.note(
            f"{plural(depth.hidden, 'message')} hidden by another reader, or by a run that was"
            f" killed (for {spoken(HIDDEN_S * 1000)} at most): run it again after that"
        )
    if run.has_failed and not run.moved:
        return Exit.FAILED
    is_rest = run.is_short or (depth.hidden and not is_limited)
    return Exit.PARTLY if run.left or run.undeleted or is_rest else Exit.DONE


def _oldest_ms(here: Here, shown: list[Letter]) -> int | None:
    times = [first_sent_ms(each) for each in shown]
    return max((here.now_ms() - each for each in times if each is not None), default=None)


def _greeting(here: Here, depth: Depth, shown: list[Letter]) -> str:
    """Return how many there are, and how old the oldest is."""
    count = f"{plural(depth.there, 'message')} in the dead letters"
    oldest_ms = _oldest_ms(here, shown)
    if oldest_ms is None:
        return count
    some = f" of {len(shown)} looked at" if len(shown) < depth.there else ""
    return f"{count}; the oldest{some} was first sent {spoken(oldest_ms)} ago"


def _counts(here: Here, depth: Depth, shown: list[Letter], *, is_dry: bool) -> dict[str, Any]:
    found = {"found": depth.there, "hidden": depth.hidden, "looked_at": len(shown)}
    return {"dry_run": is_dry, **found, "oldest_ms": _oldest_ms(here, shown)}


def _document(letter: Letter, reason: str | None) -> dict[str, Any]:
    first_ms = first_sent_ms(letter)
    return {
        "message_id": letter.message_id,
        "guid": guid_of(letter),
        "first_sent_at": None if first_ms is None else rfc3339(first_ms),
        "receive_count": letter.receive_count,
        "reason": reason,
    }


def _show_sample(here: Here, depth: Depth, shown: list[Letter]) -> None:
    ways = [attributes_back(each) for each in shown]
    told = [
        _document(letter, way if isinstance(way, str) else None)
        for letter, way in zip(shown, ways, strict=True)
    ]
    if here.screen.as_json:
        counts = _counts(here, depth, shown, is_dry=True)
        here.screen.document(counts | {"sample": told})
        return
    here.screen.say(_greeting(here, depth, shown))
    if told:
        _table(here.screen, told)
    _lines(here.screen, [each for each in told if each["reason"]], "would be left")


def _show(here: Here, depth: Depth, shown: list[Letter], run: Redrive) -> None:
    left, undeleted = (
        [_document(*each) for each in kind.values()] for kind in (run.left, run.undeleted)
    )
    if here.screen.as_json:
        counts = _counts(here, depth, shown, is_dry=False) | {"moved": len(run.moved)}
        here.screen.document(counts | {"left": left, "not_deleted": undeleted})
        return
    here.screen.say(f"{plural(len(run.moved), 'message')} moved back to the intake queue")
    _lines(here.screen, left, "left")
    _lines(here.screen, undeleted, "moved, but not deleted")


def _table(screen: Screen, told: list[dict[str, Any]]) -> None:
    names = ("message_id", "guid", "first_sent_at", "receive_count")
    screen.table(
        ("message", "GUID", "first sent", "received"),
        [tuple("-" if each[name] is None else each[name] for name in names) for each in told],
    )


def _lines(screen: Screen, told: list[dict[str, Any]], what: str) -> None:
    # Not a table: a reason is a sentence, and an id that is to be copied stays in one piece.
    for each in told:
        guid = f" ({each['guid']})" if each["guid"] else ""
        screen.say(f"{each['message_id']}{guid} {what}: {each['reason']}")

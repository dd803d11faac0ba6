"""A row as a person reads it: its facts as text, its history as a timeline, its bytes if asked."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from rich.text import Text

from cli.screen import Cell, spoken
from relayhub.row import Row
from relayhub.states import State
from relayhub.times import rfc3339

_TIMES: Final = frozenset(
    {
        *("accepted_at", "updated_at", "sent_at", "dead_at", "ended_at", "ask_after"),
        *("valid_until", "not_found_at", "processing_at", "due_at"),
    }
)
# Bytes, or what only the hub itself compares.
_LEFT_OUT: Final = frozenset(
    {"request", "response", "fingerprint", "history", "response_object", "schema", "open_shard"}
)
_COLOURS: Final = {
    State.RECEIVED: "cyan",
    State.SENT: "yellow",
    State.DONE: "green",
    State.UNKNOWN: "bold yellow",
    State.FAILED: "red",
}


def state_of(row: Row) -> Text:
    """Return the state in its colour, with what stops the row."""
    text = Text(row.state, style=_COLOURS[row.state])
    if row.hold:
        text.append(f" held ({row.hold})", style="magenta")
    if row.parked:
        text.append(f" parked ({row.parked})", style="magenta")
    if row.cancel and row.state is not State.DONE:
        text.append(" cancelled", style="magenta")
    return text


def facts(row: Row) -> dict[str, Any]:
    """Return the row's fields that are set, times as text; no bytes and no history."""
    found: dict[str, Any] = {}
    for each in fields(Row):
        value = getattr(row, each.name)
        if each.name in _LEFT_OUT or value is None or value == "":
            continue
        found[each.name] = _as_text(each.name, value)
    return found


def _as_text(name: str, value: Any) -> Any:
    if name in _TIMES:
        return rfc3339(value)
    if name == "expires_at":
        return rfc3339(value * 1000)
    if name == "cancel":
        return {**value, "at": rfc3339(value["at"])}
    return value


def timeline(row: Row) -> list[dict[str, Any]]:
    """Return the history, times as text; what was dropped of it is an entry of its own."""
    entries: list[dict[str, Any]] = []
    for place, entry in enumerate(row.history):
        if place == 1 and row.history_dropped:
            entries.append({"dropped": row.history_dropped})
        entries.append({**entry, "at": rfc3339(entry["at"])})
    return entries


def timeline_lines(row: Row) -> Iterator[tuple[Cell, ...]]:
    """Return the history as lines of a table."""
    for entry in timeline(row):
        if "dropped" in entry:
            yield (f"({entry['dropped']} more)", "", "", "", "", "", "")
            continue
        source, to = entry.get("from", "-"), entry.get("to", "")
        yield (
            entry["at"],
            str(entry.get("by", "")),
            str(entry.get("event", "")),
            source if source == to else f"{source} > {to}",
            str(entry.get("attempt", "")),
            str(entry.get("code", "")),
            str(entry.get("reason", "")),
        )


TIMELINE_HEADS: Final = ("at", "by", "event", "state", "attempt", "code", "reason")


def payload(kind: str, body: bytes) -> dict[str, str]:
    """Return bytes as text where they are UTF-8, else in base64."""
    try:
        return {"type": kind, "text": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"type": kind, "base64": base64.b64encode(body).decode("ascii")}


def age(row: Row, now_ms: int) -> str:
    """Return how long ago the row was accepted."""
    return spoken(now_ms - row.accepted_at)

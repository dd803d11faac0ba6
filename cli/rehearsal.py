"""An act tried without a write: what the hub's own rules would say of it, row by row.

A proposal that would be refused is not made, and a dry run tells what a run would. The row may
move on before the act itself, whose write has its own conditions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from relayhub.ledger import Stored
from relayhub.row import Row
from relayhub.states import Event, State, target

if TYPE_CHECKING:
    from cli.desk import Desk
    from relayhub.answers import AnswerStore
    from relayhub.ledger import Ledger
    from relayhub.queues import HintQueue


class _Ledger:
    """A ledger that takes every legal step and writes nothing."""

    def move(
        self, row: Row, event: Event, by: str, now_ms: int, *, reason: str, **changes: Any
    ) -> Stored:
        """Return the row as it would be."""
        del by, reason
        state = cast("State", target(event, row.state))
        return Stored(replace(row, state=state, updated_at=now_ms, **changes))


class _Hints:
    """A queue that takes no hint."""

    def send_hint(self, guid: str, attempt: int) -> None:
        """Say that all is well."""
        del guid, attempt


class _Store:
    """A bucket that stores nothing."""

    def put(self, guid: str, claim_id: str, body: bytes) -> dict[str, Any]:
        """Return what the row would keep."""
        return {"key": f"{guid}/{claim_id}", "bytes": len(body), "sha256": ""}


def rehearsing(desk: Desk) -> Desk:
    """Return the desk with a ledger, a queue and a bucket that take everything and keep nothing."""
    return replace(
        desk,
        ledger=cast("Ledger", _Ledger()),
        hints=cast("HintQueue", _Hints()),
        store=cast("AnswerStore", _Store()),
    )

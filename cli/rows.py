"""Reads rows of a stack for a person, by the ledger's own reader; nothing here writes one."""

from __future__ import annotations

from typing import NoReturn

from cli.aws_errors import explain_code
from cli.exits import CommandError
from cli.stack import Output, Stack
from relayhub.ledger import Ledger
from relayhub.row import Row, hub_sends
from relayhub.states import SCHEMA, Delivery, State
from relayhub.times import rfc3339


class Rows:
    """The ledger of one stack, read consistently."""

    def __init__(self, stack: Stack) -> None:
        # The shards are those of a write.
        self._ledger = Ledger(
            stack.raw("dynamodb"),
            stack.name(Output.TABLE),
            shards=1,
            on_step=_no_step,
        )

    def read(self, guid: str) -> Row | None:
        """Return the row, None if there is none. Raises CommandError."""
        row = self._ledger.read(guid)
        if row is None or isinstance(row, Row):
            return row
        raise CommandError(f"the row of {guid} could not be read: {explain_code(row.reason)}")


def _no_step(*_: object) -> NoReturn:
    raise AssertionError("a reader of rows takes no step")


def why_no_hint(row: Row | None, now_ms: int) -> str | None:
    """Return why a hint would send nothing of the row; None if the reprocessor would go to it.

    The reprocessor decides for itself, by the row as it is then: this only tells a person.
    """
    if row is None:
        return "the ledger has no row of it; its channel may still send it"
    if row.schema > SCHEMA:
        return "the row is of a newer version than this command line"
    if row.hold:
        return f"it is held ({row.hold}): a person has to decide"
    if row.state is not State.FAILED:
        return _NOT_FAILED[row.state].format(code=row.code)
    return _why_not_sent(row, now_ms)


def _why_not_sent(row: Row, now_ms: int) -> str | None:
    if row.cancel:
        return "its channel cancelled it: the next sweep ends it (E908)"
    if (row.valid_until or 0) <= now_ms:
        return f"its validity ended at {rfc3339(row.valid_until or 0)}: the next sweep ends it"
    if row.parked:
        return f"it is parked ({row.parked}): only its channel's resend or an operator goes on"
    if row.delivery is Delivery.INTERACTIVE:
        return "it is interactive: only its channel's own resend sends it again"
    return None if hub_sends(row) else "the hub does not send it by itself"


_NOT_FAILED = {
    State.RECEIVED: "it is RECEIVED: accepted, and not sent yet",
    State.SENT: "it is SENT: the request may be on its way",
    State.UNKNOWN: "it is UNKNOWN: it may have been executed; `relayhub resolve` asks the core",
    State.DONE: "it is DONE: it ended with {code}",
}

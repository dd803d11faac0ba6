"""A channel's cancel, at any moment: what was not sent never will be; what may have been is told.

The answer is always the hub's own document, never the core's bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from relayhub.dynamo import NoAnswer, Refused
from relayhub.flows.steps import end_unexecuted, expires_at, is_too_old, scope_fault
from relayhub.ledger import CHANNEL, Found, Stored
from relayhub.replies import Reply, of_cancel, of_code
from relayhub.row import Row
from relayhub.states import SCHEMA, Code, Event, State

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.ledger import Outcome

_TRIES_MAX: Final = 5  # The row may be moved on between two tries; each loss brings the newer row.


def run(hub: Hub, guid: str, channel: str) -> Reply:
    """Cancel the GUID, or tell why it is not; a repeat tells the same. One request at the least."""
    if fault := scope_fault(hub):
        hub.note("not_ready", guid=guid, reason=fault)
        return of_code(Code.E906, guid)
    if is_too_old(hub, guid):
        # It may have been executed before the ledger's memory: no tombstone says otherwise.
        known = hub.ledger.read(guid)
        if known is None:
            return of_code(Code.E907, guid)
        return _cancel(hub, guid, channel, Found(known) if isinstance(known, Row) else known)
    return _cancel(hub, guid, channel, _bury(hub, guid, channel))


def _bury(hub: Hub, guid: str, channel: str) -> Outcome:
    """Put a tombstone, so that a request that arrives after its cancel is not executed."""
    now_ms = hub.now_ms()
    tombstone = Row(
        guid=guid,
        state=State.DONE,
        channel=channel,
        accepted_at=now_ms,
        updated_at=now_ms,
        code=Code.E908,
    )
    expiring = replace(tombstone, expires_at=expires_at(hub, tombstone))
    return hub.ledger.create(expiring, Event.TOMBSTONED, CHANNEL)


def _cancel(hub: Hub, guid: str, channel: str, outcome: Outcome) -> Reply:
    for _ in range(_TRIES_MAX):
        match outcome:
            case Stored(row):
                return of_cancel(row, hub.settings.definite_codes)
            case Found(row):
                step = _next_step(hub, row, channel)
                if isinstance(step, Reply):
                    return step
                outcome = step
            case Refused(reason):
                hub.note("ledger_refused", guid=guid, reason=reason)
                return of_code(Code.E906, guid)
            case NoAnswer(reason):
                # It may be recorded or not: ask again, or cancel again.
                hub.note("cancel_without_answer", guid=guid, reason=reason)
                return of_code(Code.E901, guid)
    return of_code(Code.E903, guid)


def _next_step(hub: Hub, row: Row, channel: str) -> Outcome | Reply:
    """Return the write that the row needs, or the reply if it needs none."""
    if row.channel != channel:
        return of_code(Code.E904, row.guid)
    if row.schema > SCHEMA:
        return of_code(Code.E903, row.guid)
    is_open = row.state in {State.SENT, State.UNKNOWN}
    if row.state is State.DONE or (is_open and row.cancel) or (row.hold and not is_open):
        return of_cancel(row, hub.settings.definite_codes)
    if is_open:
        recorded = {"at": hub.now_ms(), "by": channel}
        return hub.ledger.move(row, Event.CANCEL_RECORDED, CHANNEL, hub.now_ms(), cancel=recorded)
    return end_unexecuted(hub, row, Event.CANCELLED, CHANNEL)

"""Accept now, send later: a request whose channel does not wait, and its message from the queue.

The row is the truth: a message that is lost is made up for by the resolver, which finds the row
overdue and makes it FAILED, and by the reprocessor, which sends it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never

from relayhub.dynamo import NoAnswer, Refused
from relayhub.flows import relay
from relayhub.flows.steps import (
    Ticket,
    claim_fields,
    end_if_over,
    is_too_old,
    new_row,
    scope_fault,
)
from relayhub.ledger import CHANNEL, MESSAGES, Found, Stored
from relayhub.replies import Reply, of_accepted
from relayhub.row import Row
from relayhub.states import SCHEMA, Code, Event, State

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.message import Submission

_DUE_MS: Final = 120_000  # A message that has not come by then counts as lost.


def submit(hub: Hub, request: Submission, dead_at_ms: int) -> Reply:
    """Accept the request for later (202), or answer what the ledger says of its GUID."""
    now_ms = hub.now_ms()
    if fault := _why_not_ready(hub, dead_at_ms - now_ms):
        return relay.refuse(hub, request.guid, fault, what="not_ready")
    if is_too_old(hub, request.guid):
        return relay.submit(hub, request, dead_at_ms)
    row = new_row(hub, request, now_ms)
    # The id tells this very acceptance from another one's of the same GUID.
    row = replace(row, claim_id=hub.new_id(), due_at=_due_at(row, now_ms))
    match hub.ledger.create(row, Event.ACCEPTED, CHANNEL):
        case Stored(accepted) if _waits(accepted):
            fault = hub.intake.announce(accepted.guid)
            if fault:
                hub.note("intake_lost", guid=accepted.guid, reason=fault)
            return of_accepted(accepted)
        case Stored(found) | Found(found):
            # Also one of our own that was ended before the retry of its put found it.
            return _answer(hub, request, found, dead_at_ms)
        case Refused(reason):
            return relay.refuse(hub, request.guid, reason)
        case NoAnswer(reason):
            return relay.claim_without_answer(hub, request.guid, reason)
        case outcome:
            assert_never(outcome)


def _why_not_ready(hub: Hub, left_ms: int) -> str | None:
    if left_ms < hub.settings.margin_s * 1000:
        return "too little time left"
    return scope_fault(hub)


def _due_at(row: Row, now_ms: int) -> int:
    """Return when the message counts as lost, early enough for a short validity; epoch ms."""
    return min(now_ms + _DUE_MS, (now_ms + (row.valid_until or 0)) // 2)


def _answer(hub: Hub, request: Submission, row: Row, dead_at_ms: int) -> Reply:
    """Answer a GUID that has a row; one that waits still is told as accepted again."""
    if row.state is State.FAILED and (fault := relay.why_not_ready(hub, dead_at_ms)):
        return relay.refuse(hub, row.guid, fault, what="not_ready", is_recorded=True)
    ticket = Ticket(hub.new_id(), hub.now_ms(), dead_at_ms)
    reply = relay.answer_existing(hub, request, ticket, row)
    return of_accepted(row) if _waits(row) and reply.code == Code.E903 else reply


def send(hub: Hub, guid: str, dead_at_ms: int) -> Reply | None:
    """Send an accepted request whose message came; None if the row does not wait for it.

    Then it was sent, ended or taken over already, or stands on hold: nothing is lost.
    """
    fault = relay.why_not_ready(hub, dead_at_ms)
    if fault:
        return relay.refuse(hub, guid, fault, what="not_ready")
    row = hub.ledger.read(guid)
    if isinstance(row, Refused | NoAnswer):
        return relay.refuse(hub, guid, row.reason)
    if row is None or not _waits(row) or end_if_over(hub, row, MESSAGES) is not None:
        return None
    return _claim_and_send(hub, row, Ticket(hub.new_id(), hub.now_ms(), dead_at_ms, MESSAGES))


def _waits(row: Row) -> bool:
    return row.state is State.RECEIVED and row.schema <= SCHEMA and not row.hold


def _claim_and_send(hub: Hub, row: Row, ticket: Ticket) -> Reply | None:
    changes = claim_fields(hub, row, ticket)
    match hub.ledger.move(row, Event.CLAIMED, ticket.by, ticket.sent_at, **changes):
        case Stored() as claim:
            return relay.send(hub, claim, ticket.by)
        case Found():
            return None
        case Refused(reason):
            return relay.refuse(hub, row.guid, reason)
        case NoAnswer(reason):
            return relay.claim_without_answer(hub, row.guid, reason, is_recorded=True)
        case outcome:
            assert_never(outcome)

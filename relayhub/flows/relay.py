"""The relay: execute a channel's request at most once, answer every resend from the ledger.

A claim comes before every call to the core, and one request makes it: the loser of the claim gets
the row that beat it, and answers what that row says. Nothing is read first. A request by HTTP and
a message go the same way; the ticket says by which it came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never

from relayhub.answers import AnswerStoreError
from relayhub.credentials import CredentialsError
from relayhub.dynamo import NoAnswer, Refused
from relayhub.flows import attempt
from relayhub.flows.attempt import Settled
from relayhub.flows.steps import (
    Ticket,
    claim_fields,
    end_if_over,
    has_time_to_send,
    hint_if_hub_sends,
    hold_contradiction,
    is_too_old,
    new_row,
    proves_from,
    scope_fault,
    settle_by_inquiry,
)
from relayhub.ledger import CHANNEL, MESSAGES, Found, Outcome, Stored
from relayhub.message import Answer, MalformedError, fingerprint
from relayhub.replies import Reply, not_known, of_code, of_core, of_row, status_of
from relayhub.row import Row, hub_sends
from relayhub.states import SCHEMA, Code, Event, State, Verdict
from relayhub.upkeep import UpkeepError

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.message import Submission

_INQUIRY_S_MAX: Final = 3  # The inquiry before a channel's resend; the call itself needs the rest.


def submit(hub: Hub, request: Submission, dead_at_ms: int, by: str = CHANNEL) -> Reply:
    """Execute the request once, or answer what the ledger says of its GUID.

    `dead_at_ms` is when the platform will certainly have ended this function.
    """
    fault = why_not_ready(hub, dead_at_ms)
    if fault:
        return refuse(hub, request.guid, fault, what="not_ready")
    if is_too_old(hub, request.guid, request.sent_ms):
        answer = resume(hub, request, dead_at_ms, by, may_claim=True)
        return answer or of_code(Code.E907, request.guid)
    ticket = Ticket(hub.new_id(), hub.now_ms(), dead_at_ms, by)
    row = new_row(hub, request, ticket.sent_at)
    claimed = replace(row, state=State.SENT, attempt=1, **ticket.fields(hub))
    return _after_claim(hub, request, ticket, hub.ledger.create(claimed, Event.CLAIMED, by))


def resume(
    hub: Hub,
    request: Submission,
    dead_at_ms: int,
    by: str = CHANNEL,
    *,
    may_claim: bool = False,
) -> Reply | None:
    """Answer a request from its row, read first; None if it has none. Never claims a new GUID.

    Without a row, what is older than the ledger's memory is E907, whatever else it says.

    This is for what is over by its own word, and so must not be sent by it, and for what is older
    than the ledger's memory.
    """
    fault = why_not_ready(hub, dead_at_ms)
    if fault:
        return refuse(hub, request.guid, fault, what="not_ready")
    match hub.ledger.read(request.guid):
        case None if is_too_old(hub, request.guid, request.sent_ms):
            return of_code(Code.E907, request.guid)
        case None:
            return None
        case Row() as row:
            ticket = Ticket(hub.new_id(), hub.now_ms(), dead_at_ms, by)
            return answer_existing(hub, request, ticket, row, may_claim=may_claim)
        case Refused(reason) | NoAnswer(reason):
            return refuse(hub, request.guid, reason)


def status(hub: Hub, guid: str, channel: str) -> Reply:
    """Tell what the ledger says of the GUID, read consistently; writes nothing."""
    match hub.ledger.read(guid):
        case Row() as row if row.channel == channel:
            return status_of(row, hub.settings.definite_codes, hub.now_ms())
        case Row() | None:
            # Another channel's GUID looks like an absent one.
            return of_code(Code.E907, guid) if is_too_old(hub, guid) else not_known(guid)
        case Refused(reason) | NoAnswer(reason):
            return refuse(hub, guid, reason)


def why_not_ready(hub: Hub, dead_at_ms: int) -> str | None:
    """Say why nothing may be claimed now: a call must fit, and the core's secret be at hand."""
    if not has_time_to_send(hub, dead_at_ms):
        return "too little time left"
    try:
        hub.controls.switches()
        hub.core.prepare()
    except (CredentialsError, UpkeepError) as error:
        return str(error)
    return scope_fault(hub)


def refuse(
    hub: Hub, guid: str, reason: str, *, what: str = "ledger_refused", is_recorded: bool = False
) -> Reply:
    """Say that this request sent nothing (E906), and whether the ledger holds it all the same."""
    hub.note(what, guid=guid, reason=reason)
    return replace(of_code(Code.E906, guid), is_recorded=is_recorded)


def _after_claim(hub: Hub, request: Submission, ticket: Ticket, outcome: Outcome) -> Reply:
    match outcome:
        case Stored() as claim:
            return send(hub, claim, ticket.by)
        case Found(row):
            return answer_existing(hub, request, ticket, row)
        case Refused(reason):
            return refuse(hub, request.guid, reason)
        case NoAnswer(reason):
            return claim_without_answer(hub, request.guid, reason)
        case _:
            assert_never(outcome)


def claim_without_answer(hub: Hub, guid: str, reason: str, *, is_recorded: bool = False) -> Reply:
    """Say E901 of a write that may stand: this may be the request that is executed, never E906.

    Where no row is known to hold it, a message comes again and meets its row, or none.
    """
    hub.note("claim_without_answer", guid=guid, reason=reason)
    return replace(of_code(Code.E901, guid), is_recorded=is_recorded)


def send(hub: Hub, claim: Stored, by: str) -> Reply:
    """Send the request of the row that this caller has just claimed, and answer it."""
    settled = attempt.run(hub, claim, by)
    if settled.stored:
        hint_if_hub_sends(hub, settled.row)
    return _reply_of_holder(hub, settled)


def _reply_of_holder(hub: Hub, settled: Settled) -> Reply:
    """Answer what the row says; the holder's own answer where the row says nothing definite."""
    row, answer = settled.row, settled.answer
    if settled.stored:
        # The row is the truth, also where another has written it.
        return _replay(hub, row, answer)
    if answer is not None and not row.hold:
        return of_core(answer, row, replayed=False)
    # The outcome is known but not written, so nobody else knows it: in doubt.
    return of_row(row, hub.settings.definite_codes, hub.now_ms(), code=Code.E901)


def _replay(hub: Hub, row: Row, first: Answer | None = None) -> Reply:
    """Return the stored answer byte for byte, or the hub's own document where there is none.

    `first` is the same answer in the hand of the one that has just stored it.
    """
    if row.hold or row.state is not State.DONE or not row.has_answer():
        return of_row(row, hub.settings.definite_codes, hub.now_ms())
    if first is not None:
        return of_core(first, row, replayed=False)
    try:
        body = row.response if row.response is not None else _fetch(hub, row)
    except AnswerStoreError as error:
        hub.note("unreadable_answer", guid=row.guid, reason=str(error))
        return of_row(row, hub.settings.definite_codes, hub.now_ms())
    answer = Answer(row.response_status or 0, row.response_type or "", body, row.code or "")
    return of_core(answer, row, replayed=True)


def _fetch(hub: Hub, row: Row) -> bytes:
    return hub.store.get(row.response_object or {})


def answer_existing(
    hub: Hub, request: Submission, ticket: Ticket, row: Row, *, may_claim: bool = True
) -> Reply:
    """Answer a GUID that has a row: what the row says, unless it may be claimed again."""
    is_same = _is_same_request(row, request)
    if row.schema > SCHEMA:
        return replace(of_code(Code.E903, row.guid), is_recorded=is_same)
    if not is_same:
        hub.note("other_request", guid=row.guid, channel=request.channel)
        return of_code(Code.E904, row.guid)
    if row.hold or row.state is not State.FAILED:
        return _replay(hub, row)
    ended = end_if_over(hub, row, ticket.by)
    if ended is not None:
        return _told_by(hub, row, ended)
    # With the core closed a claim would be stopped before its call: E902 as the row is.
    may_claim = may_claim and hub.controls.known.core is None
    if not may_claim or (ticket.by == MESSAGES and not _is_resent(hub, request, row)):
        return _replay(hub, row)
    return _claim_again(hub, ticket, row)


def _is_resent(hub: Hub, request: Submission, row: Row) -> bool:
    """Tell whether a message is its channel's resend of what the hub will not send by itself.

    A queue hands the same message over again for reasons of its own: that is no resend, and must
    neither undo a person's decision nor spend a batch's time on the same rows each time. A resend
    was sent after the row's last step. What the hub sends by itself is left to the reprocessor.
    """
    moved_at = row.updated_at + hub.settings.clock_skew_s * 1000
    return not hub_sends(row) and (request.sent_ms or 0) > moved_at


def _is_same_request(row: Row, request: Submission) -> bool:
    if row.channel != request.channel:
        return False
    if row.fingerprint is None:
        return True  # A tombstone: its channel's cancel came first, for any body.
    if row.operation != request.operation:
        return False
    try:
        # The row's own scheme: a deploy may have changed which fields are compared.
        compared = fingerprint(request.operation, request.body, row.scheme)
    except (MalformedError, ValueError):
        return False
    return bytes.fromhex(compared) == row.fingerprint


def _told_by(hub: Hub, row: Row, outcome: Outcome) -> Reply:
    """Answer what the row says after a write that is not a claim, whoever won it."""
    match outcome:
        case Stored(now) | Found(now):
            return _replay(hub, now)
        case Refused(reason):
            return refuse(hub, row.guid, reason, is_recorded=True)
        case NoAnswer():
            return of_row(row, hub.settings.definite_codes, hub.now_ms())
        case _:
            assert_never(outcome)


def _claim_again(hub: Hub, ticket: Ticket, row: Row) -> Reply:
    """Claim a FAILED row for its channel's resend and send the same bytes under the same GUID."""
    if row.doubted:
        stopped = _asked_first(hub, row, ticket)
        if stopped is not None:
            return stopped
    # An id of its own: the one of the put may stand in the row's past, if its reply was lost.
    fresh = replace(ticket, claim_id=hub.new_id(), sent_at=hub.now_ms())
    outcome = hub.ledger.move(
        row,
        Event.CLAIMED,
        ticket.by,
        fresh.sent_at,
        parked=None,
        **claim_fields(hub, row, fresh),
    )
    match outcome:
        case Stored() as claim:
            return send(hub, claim, ticket.by)
        case Found(now):
            return _replay(hub, now)
        case Refused(reason):
            return refuse(hub, row.guid, reason, is_recorded=True)
        case NoAnswer(reason):
            # Whether the claim stands or not, the ledger holds the request.
            return claim_without_answer(hub, row.guid, reason, is_recorded=True)
        case _:
            assert_never(outcome)


def _asked_first(hub: Hub, row: Row, ticket: Ticket) -> Reply | None:
    """Ask the core about a row that was once in doubt; None lets the resend go."""
    if row.core not in {None, hub.settings.core_name}:
        return of_row(row, hub.settings.definite_codes, hub.now_ms())
    asked_at = hub.now_ms()
    finding = hub.core.ask(row.guid, inquiry_id=hub.new_id(), within_s=_INQUIRY_S_MAX)
    match finding.verdict:
        case Verdict.NOT_FOUND if asked_at > proves_from(hub, row):
            return None
        case Verdict.PROCESSED if finding.answer is not None:
            outcome = settle_by_inquiry(hub, row, finding, ticket.by, ticket.dead_at)
            if isinstance(outcome, Stored | Found):
                return _replay(hub, outcome.row)
            # Not stored, but known: whoever asks the core next finds it again.
            return of_core(finding.answer, row, replayed=False)
        case Verdict.PROCESSING:
            # Never told as the row says, which is "not executed".
            if hold_contradiction(hub, row, ticket.by, "processing"):
                hub.note("core_longest_wrong", guid=row.guid)
            return of_row(row, hub.settings.definite_codes, hub.now_ms(), code=Code.E901)
        case _:
            hub.note("resend_undecided", guid=row.guid, reason=finding.reason)
            return of_row(row, hub.settings.definite_codes, hub.now_ms())

"""The relay: execute a channel's request at most once, answer every resend from the ledger.

A claim comes before every call to the core, and one request makes it: the loser of the claim gets
the row that beat it, and answers what that row says. Nothing is read first.
"""

from __future__ import annotations

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
    hint_if_hub_sends,
    hold_contradiction,
    is_too_old,
    proves_from,
    settle_by_inquiry,
)
from relayhub.ledger import CHANNEL, Found, Outcome, Stored
from relayhub.message import Answer, MalformedError, fingerprint
from relayhub.replies import Reply, not_known, of_code, of_core, of_row, status_of
from relayhub.row import Row
from relayhub.states import SCHEMA, Code, Delivery, Event, State, Verdict

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.message import Submission

_INQUIRY_S_MAX: Final = 3  # The inquiry before a channel's resend; the call itself needs the rest.


def submit(hub: Hub, request: Submission, dead_at_ms: int) -> Reply:
    """Execute the request once, or answer what the ledger says of its GUID.

    `dead_at_ms` is when the platform will certainly have ended this function.
    """
    fault = _why_not_ready(hub, dead_at_ms)
    if fault:
        return _refuse(hub, request.guid, fault, what="not_ready")
    if is_too_old(hub, request.guid):
        answer = resume(hub, request, dead_at_ms, may_claim=True)
        return answer or of_code(Code.E907, request.guid)
    ticket = Ticket(hub.new_id(), hub.now_ms(), dead_at_ms)
    row = _new_row(hub, request, ticket)
    return _after_claim(hub, request, ticket, hub.ledger.create(row, Event.CLAIMED, CHANNEL))


def resume(
    hub: Hub, request: Submission, dead_at_ms: int, *, may_claim: bool = False
) -> Reply | None:
    """Answer a request from its row, read first; None if it has none. Never claims a new GUID.

    This is for what is over by its own word, and so must not be sent by it, and for a GUID that is
    older than the ledger's memory.
    """
    fault = _why_not_ready(hub, dead_at_ms)
    if fault:
        return _refuse(hub, request.guid, fault, what="not_ready")
    match hub.ledger.read(request.guid):
        case None:
            return None
        case Row() as row:
            ticket = Ticket(hub.new_id(), hub.now_ms(), dead_at_ms)
            return _answer_existing(hub, request, ticket, row, may_claim=may_claim)
        case Refused(reason) | NoAnswer(reason):
            return _refuse(hub, request.guid, reason)


def status(hub: Hub, guid: str, channel: str) -> Reply:
    """Tell what the ledger says of the GUID, read consistently; writes nothing."""
    match hub.ledger.read(guid):
        case Row() as row if row.channel == channel:
            return status_of(row, hub.settings.definite_codes, hub.now_ms())
        case Row() | None:
            # Another channel's GUID looks like an absent one.
            return of_code(Code.E907, guid) if is_too_old(hub, guid) else not_known(guid)
        case Refused(reason) | NoAnswer(reason):
            return _refuse(hub, guid, reason)


def _why_not_ready(hub: Hub, dead_at_ms: int) -> str | None:
    """Say why nothing may be claimed now: a call must fit, and the core's secret be at hand."""
    needed_ms = (hub.settings.core_deadline_s + hub.settings.margin_s) * 1000
    if dead_at_ms - hub.now_ms() < needed_ms:
        return "too little time left"
    try:
        hub.core.prepare()
    except CredentialsError as error:
        return str(error)
    return None


def _refuse(hub: Hub, guid: str, reason: str, *, what: str = "ledger_refused") -> Reply:
    hub.note(what, guid=guid, reason=reason)
    return of_code(Code.E906, guid)


def _new_row(hub: Hub, request: Submission, ticket: Ticket) -> Row:
    settings = hub.settings
    is_deferred = request.delivery is Delivery.DEFERRED
    valid_s = settings.valid_deferred_s if is_deferred else settings.valid_interactive_s
    return Row(
        guid=request.guid,
        state=State.SENT,
        channel=request.channel,
        accepted_at=ticket.sent_at,
        updated_at=ticket.sent_at,
        operation=request.operation,
        delivery=request.delivery,
        fingerprint=bytes.fromhex(request.fingerprint),
        scheme=request.scheme,
        request=request.body,
        request_type=request.content_type,
        attempt=1,
        valid_until=request.valid_until_ms or ticket.sent_at + valid_s * 1000,
        **ticket.fields(hub),
    )


def _after_claim(hub: Hub, request: Submission, ticket: Ticket, outcome: Outcome) -> Reply:
    match outcome:
        case Stored() as claim:
            return _send(hub, claim)
        case Found(row):
            return _answer_existing(hub, request, ticket, row)
        case Refused(reason):
            return _refuse(hub, request.guid, reason)
        case NoAnswer(reason):
            # The claim may stand, so this may be the request that is executed: never E906.
            hub.note("claim_without_answer", guid=request.guid, reason=reason)
            return of_code(Code.E901, request.guid)
        case _:
            assert_never(outcome)


def _send(hub: Hub, claim: Stored) -> Reply:
    settled = attempt.run(hub, claim, CHANNEL)
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


def _answer_existing(
    hub: Hub, request: Submission, ticket: Ticket, row: Row, *, may_claim: bool = True
) -> Reply:
    """Answer a GUID that has a row: what the row says, unless it may be claimed again."""
    if row.schema > SCHEMA:
        return of_code(Code.E903, row.guid)
    if not _is_same_request(row, request):
        hub.note("other_request", guid=row.guid, channel=request.channel)
        return of_code(Code.E904, row.guid)
    if row.hold or row.state is not State.FAILED:
        return _replay(hub, row)
    ended = end_if_over(hub, row, CHANNEL)
    if ended is not None:
        return _told_by(hub, row, ended)
    return _claim_again(hub, ticket, row) if may_claim else _replay(hub, row)


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
            return _refuse(hub, row.guid, reason)
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
    fresh = Ticket(hub.new_id(), hub.now_ms(), ticket.dead_at)
    outcome = hub.ledger.move(
        row,
        Event.CLAIMED,
        CHANNEL,
        fresh.sent_at,
        parked=None,
        **claim_fields(hub, row, fresh),
    )
    match outcome:
        case Stored() as claim:
            return _send(hub, claim)
        case Found(now):
            return _replay(hub, now)
        case Refused(reason):
            return _refuse(hub, row.guid, reason)
        case NoAnswer(reason):
            hub.note("claim_without_answer", guid=row.guid, reason=reason)
            return of_code(Code.E901, row.guid)
        case _:
            assert_never(outcome)


def _asked_first(hub: Hub, row: Row, ticket: Ticket) -> Reply | None:
    """Ask the core about a row that was once in doubt; None lets the resend go."""
    if row.core != hub.settings.core_name:
        return of_row(row, hub.settings.definite_codes, hub.now_ms())
    asked_at = hub.now_ms()
    finding = hub.core.ask(row.guid, inquiry_id=hub.new_id(), within_s=_INQUIRY_S_MAX)
    match finding.verdict:
        case Verdict.NOT_FOUND if asked_at > proves_from(hub, row):
            return None
        case Verdict.PROCESSED if finding.answer is not None:
            outcome = settle_by_inquiry(hub, row, finding, CHANNEL, ticket.dead_at)
            if isinstance(outcome, Stored | Found):
                return _replay(hub, outcome.row)
            # Not stored, but known: whoever asks the core next finds it again.
            return of_core(finding.answer, row, replayed=False)
        case Verdict.PROCESSING:
            # Never told as the row says, which is "not executed".
            hub.note("core_longest_wrong", guid=row.guid)
            hold_contradiction(hub, row, CHANNEL, "processing")
            return of_row(row, hub.settings.definite_codes, hub.now_ms(), code=Code.E901)
        case _:
            hub.note("resend_undecided", guid=row.guid, reason=finding.reason)
            return of_row(row, hub.settings.definite_codes, hub.now_ms())

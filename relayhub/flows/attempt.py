"""One attempt: send the claimed row's request, write what came of it. The only code that sends.

May import everything but the handlers. It protects two rules: nothing is sent that the ledger does
not already say is being sent (it takes a row that its caller has just claimed), and what became of
it is written under that claim alone; a holder that was moved on writes down what it knows and
tells what the row says.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, assert_never

from relayhub import dynamo
from relayhub.answers import AnswerStoreError
from relayhub.core import Answered, CoreRequest, Doubt, NotSent, SendOutcome
from relayhub.dynamo import NoAnswer, Refused
from relayhub.flows import circuit
from relayhub.flows.steps import answer_fields, end_unexecuted, expires_at, fail
from relayhub.ledger import Found, Stored
from relayhub.states import SCHEMA, Code, Event, Hold, State, Why

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.message import Answer
    from relayhub.row import Row

# A row can be moved on by others between two tries; each loss brings the newer row.
_TRIES_MAX: Final = 5


@dataclass(frozen=True)
class Settled:
    """What an attempt came to: the row as it stands, and the holder's own answer if there is one.

    `stored` is False where the outcome could not be written: then the row still says SENT.
    """

    row: Row
    answer: Answer | None
    stored: bool


def run(hub: Hub, claim: Stored, by: str) -> Settled:
    """Send the request of the row that this caller has just claimed, and write the outcome."""
    row = claim.row
    send_until_ms = _send_until_ms(hub, row)
    stopped = _why_not_to_send(hub, claim, send_until_ms)
    outcome: SendOutcome
    if stopped:
        outcome = NotSent(stopped)
    else:
        left_s = (send_until_ms - hub.now_ms()) / 1000
        outcome = hub.core.send(_request(row, send_until_ms), within_s=left_s)
    settled = _settle(hub, row, outcome, by)
    if not stopped and send_until_ms != row.valid_until:
        # What a short validity cut off says nothing of the core.
        circuit.heard(hub, outcome, row.dead_at or 0)
    return settled


def _settle(hub: Hub, row: Row, outcome: SendOutcome, by: str) -> Settled:
    match outcome:
        case Answered(answer):
            return _answered(hub, row, answer, by)
        case NotSent(reason):
            return _not_sent(hub, row, reason, by)
        case Doubt(reason, aborted):
            return _doubted(hub, row, reason, by, aborted=aborted)
        case _:
            assert_never(outcome)


def _why_not_to_send(hub: Hub, claim: Stored, send_until_ms: int) -> str | None:
    """Say what stops the call at the last moment before connecting; None if nothing does."""
    row, claimed_by_ms = claim.row, hub.now_ms()
    if circuit.is_closed(hub):
        return "core_closed"
    if hub.now_ms() >= send_until_ms:
        return "claim_too_slow"
    if row.hold or row.cancel:
        # A claim whose reply was lost is found again as the row is now, flags included.
        return "stopped"
    # By the time before the switches were read: a slow read would hide how far the clock is off.
    skew_s = hub.settings.clock_skew_s
    if dynamo.is_clock_off(row.sent_at or 0, claim.date_ms, claimed_by_ms, skew_s):
        # Others will judge the row by the times that this clock has just written.
        hub.note("clock_off", guid=row.guid)
        return "clock_off"
    return None


def _send_until_ms(hub: Hub, row: Row) -> int:
    """Return when the call must end: its own deadline, the function's, or the validity's end."""
    settings = hub.settings
    by_claim = (row.sent_at or 0) + settings.core_deadline_s * 1000
    by_function = (row.dead_at or 0) - settings.margin_s * 1000
    return min(by_claim, by_function, row.valid_until or by_claim)


def _request(row: Row, send_until_ms: int) -> CoreRequest:
    return CoreRequest(
        guid=row.guid,
        attempt=row.attempt,
        operation=row.operation,
        not_after_ms=send_until_ms,
        body=row.request or b"",
        content_type=row.request_type,
    )


def _answered(hub: Hub, row: Row, answer: Answer, by: str) -> Settled:
    try:
        changes = answer_fields(hub, row, answer, "core", row.dead_at or 0)
    except AnswerStoreError as error:
        return _unstored(hub, row, answer, str(error))
    mine = row
    for _ in range(_TRIES_MAX):
        outcome = hub.ledger.move(row, Event.ANSWERED, by, hub.now_ms(), **changes)
        match outcome:
            case Stored(done):
                return Settled(done, answer, stored=True)
            case Found(found):
                if not _may_still_answer(found, mine):
                    return _fenced(hub, found, mine, answer, by)
                _note_late(hub, found, answer)
                row, changes = found, changes | {"expires_at": _late_expiry(hub, found)}
            case Refused(reason) | NoAnswer(reason):
                return _unstored(hub, row, answer, reason)
    return _unstored(hub, row, answer, "moved on too often")


def _may_still_answer(found: Row, mine: Row) -> bool:
    """Tell whether the row is still under our claim, and open."""
    return found.claim_id == mine.claim_id and found.state is not State.DONE


def _late_expiry(hub: Hub, found: Row) -> int | None:
    return None if found.hold else expires_at(hub, found)


def _note_late(hub: Hub, found: Row, answer: Answer) -> None:
    if found.state in {State.UNKNOWN, State.FAILED}:
        facts = {"guid": found.guid, "state": found.state, "code": answer.code}
        hub.note("late_answer", **facts)
        if found.state is State.FAILED and hub.settings.definite_codes.is_executed(answer.code):
            # The row said "certainly not executed", and it was: some time limit is wrong.
            hub.note("contradiction", **facts)


def _contradicts(hub: Hub, row: Row, mine: Row, answer: Answer) -> bool:
    """Tell whether a late definite answer and the row cannot both be the whole truth.

    On an open row it always does: the row was claimed again, or may be. On a DONE row it does if
    they differ in the code, unless both say "not executed" and one is the hub's own E908; and if
    two claims were both executed.
    """
    if row.state is not State.DONE:
        return True
    is_executed = hub.settings.definite_codes.is_executed(answer.code)
    if row.code == Code.E908:
        return is_executed
    return row.code != answer.code or (is_executed and row.claim_id != mine.claim_id)


def _is_another_answer(row: Row, answer: Answer) -> bool:
    """Tell whether the core's two answers differ in their bytes, though not in their code."""
    return row.has_answer() and row.answer_sha256() != hashlib.sha256(answer.body).hexdigest()


def _fenced(hub: Hub, found: Row, mine: Row, answer: Answer, by: str) -> Settled:
    """Write a late answer down on a row that is not ours any more; hold it if they contradict."""
    facts = {"guid": mine.guid, "attempt": mine.attempt, "code": answer.code}
    who = f"{by} of attempt {mine.attempt}, late {answer.code}"
    hub.note("fenced", state=found.state, **facts)
    row = found
    for _ in range(_TRIES_MAX):
        if row.schema > SCHEMA:
            break
        if _contradicts(hub, row, mine, answer):
            # Over a person's own hold, too: that one may be let go as if nothing were known.
            changes = {"hold": Hold.CONTRADICTION, "expires_at": None}
            outcome = hub.ledger.move(row, Event.HELD, who, hub.now_ms(), **changes)
        else:
            outcome = hub.ledger.move(row, Event.FENCED, who, hub.now_ms())
        match outcome:
            case Stored(now):
                if now.hold or _is_another_answer(now, answer):
                    hub.note("contradiction", state=row.state, **facts)
                return Settled(now, None, stored=True)
            case Found(again):
                row = again
            case _:
                break
    hub.note("contradiction", state=row.state, not_written=True, **facts)
    return Settled(replace(row, hold=Hold.CONTRADICTION), None, stored=False)


def _unstored(hub: Hub, row: Row, answer: Answer, reason: str) -> Settled:
    """Let the answer go to the channel all the same; the row stays SENT, for the resolver.

    Where the core's inquiry does not know refusals, one that is not stored is not told: the
    inquiry would say NOT_FOUND, and the request would be sent again.
    """
    hub.note("not_stored", guid=row.guid, attempt=row.attempt, code=answer.code, reason=reason)
    settings = hub.settings
    is_executed = settings.definite_codes.is_executed(answer.code)
    may_tell = is_executed or settings.core_keeps_refusals
    return Settled(row, answer if may_tell else None, stored=False)


def _not_sent(hub: Hub, row: Row, reason: str, by: str) -> Settled:
    mine = row
    for _ in range(_TRIES_MAX):
        if row.cancel:
            outcome = end_unexecuted(hub, row, Event.CANCELLED, by)
        else:
            outcome = fail(hub, row, Event.NOT_SENT, by, Why.NOT_SENT)
        match outcome:
            case Stored(failed):
                hub.note("not_sent", guid=row.guid, attempt=row.attempt, reason=reason)
                return Settled(failed, None, stored=True)
            case Found(found):
                if found.claim_id != mine.claim_id or not _may_say_not_sent(found):
                    hub.note("fenced", guid=mine.guid, attempt=mine.attempt, state=found.state)
                    return Settled(found, None, stored=True)
                row = found
            case Refused(why) | NoAnswer(why):
                hub.note("not_stored", guid=row.guid, attempt=row.attempt, reason=why)
                return Settled(mine, None, stored=False)
    return Settled(row, None, stored=False)


def _may_say_not_sent(found: Row) -> bool:
    """Tell whether the holder's word that nothing left still moves the row on."""
    return found.state in {State.SENT, State.UNKNOWN} and not (found.hold and found.cancel)


def _doubted(hub: Hub, row: Row, reason: str, by: str, *, aborted: bool) -> Settled:
    facts = {"guid": row.guid, "attempt": row.attempt, "reason": reason}
    hub.note("in_doubt", **facts)
    now_ms = hub.now_ms()
    mine = row
    for _ in range(_TRIES_MAX):
        changes = _doubt_fields(hub, row, now_ms, aborted=aborted)
        outcome = hub.ledger.move(row, Event.DOUBTED, by, now_ms, **changes)
        match outcome:
            case Stored(unknown):
                return Settled(unknown, None, stored=True)
            case Found(found):
                if found.claim_id != mine.claim_id or found.state is not State.SENT:
                    hub.note("fenced", guid=mine.guid, attempt=mine.attempt, state=found.state)
                    return Settled(found, None, stored=True)
                row = found
            case Refused(why) | NoAnswer(why):
                hub.note("not_stored", **facts | {"reason": why})
                return Settled(mine, None, stored=False)
    return Settled(row, None, stored=False)


def _doubt_fields(hub: Hub, row: Row, now_ms: int, *, aborted: bool) -> dict[str, Any]:
    due_at = now_ms + hub.settings.inquiry_backoff_min_s * 1000
    fields = {"code": Code.E901, "doubted": True, "due_at": due_at}
    if not aborted or row.ended_at is None or row.ask_after is None:
        return fields
    # Only an abortive close proves that not one byte more leaves after now.
    doubt_ms = (hub.settings.core_longest_s + hub.settings.clock_skew_s) * 1000
    return fields | {
        "ended_at": min(row.ended_at, now_ms),
        "ask_after": min(row.ask_after, now_ms + doubt_ms),
    }

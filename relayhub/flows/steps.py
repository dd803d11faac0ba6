"""Steps that several flows take with a row: what they write, and nothing of when.

May import everything but the other flows and the handlers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from relayhub.answers import AnswerStoreError
from relayhub.ledger import CHANNEL, Found
from relayhub.message import born_ms, guid_of
from relayhub.money import declared
from relayhub.row import Row, hub_sends, item_bytes, to_item
from relayhub.settings import LEDGER_WRITE_WORST_S
from relayhub.states import Code, Delivery, Event, Hold, State, Why
from relayhub.upkeep import UpkeepError

if TYPE_CHECKING:
    from relayhub.core import Finding
    from relayhub.hub import Hub
    from relayhub.ledger import Outcome
    from relayhub.message import Answer, Submission

_RESULT_BYTES: Final = 1_000  # Room for what the result adds to the row beside the answer.
_FAILED_DUE_FIRST_MS: Final = 10_000
_FAILED_DUE_LONGEST_MS: Final = 600_000
_STORE_WORST_MS: Final = 2_500  # The longest that S3 may take: `answers.py`, connect and read.


def is_too_old(hub: Hub, guid: str, sent_ms: int | None = None) -> bool:
    """Tell whether the GUID's birth, or the message's own time, is beyond the ledger's memory."""
    now_ms = hub.now_ms()
    remembered_from = now_ms - hub.settings.age_limit_s * 1000
    if sent_ms is not None and sent_ms < remembered_from:
        return True
    if not hub.settings.guid_time:
        return False
    own = guid_of(guid, hub.settings.guid_scope)
    born = born_ms(own, now_ms + hub.settings.clock_skew_s * 1000)
    return born is not None and born < remembered_from


def scope_fault(hub: Hub) -> str | None:
    """Say why no key may be made for this table now; None if one may.

    Under another scope than the table's a resend would be a new key, and so a new request.
    """
    try:
        bound = hub.controls.switches().guid_scope
    except UpkeepError as error:
        return str(error)
    if bound in {None, hub.settings.guid_scope}:
        return None
    return f"GUID_SCOPE is {hub.settings.guid_scope}, and the table's keys are of scope {bound}"


def has_time_to_send(hub: Hub, dead_at_ms: int) -> bool:
    """Tell whether a call to the core, and the writing of its outcome, fit in before the end."""
    needed_s = hub.settings.core_deadline_s + hub.settings.margin_s
    return dead_at_ms - hub.now_ms() >= needed_s * 1000


def new_row(hub: Hub, request: Submission, now_ms: int) -> Row:
    """Return the row of a request that is accepted now and of which nothing was sent."""
    settings = hub.settings
    is_deferred = request.delivery is Delivery.DEFERRED
    valid_s = settings.valid_deferred_s if is_deferred else settings.valid_interactive_s
    row = Row(
        guid=request.guid,
        state=State.RECEIVED,
        channel=request.channel,
        accepted_at=now_ms,
        updated_at=now_ms,
        operation=request.operation,
        delivery=request.delivery,
        fingerprint=bytes.fromhex(request.fingerprint),
        scheme=request.scheme,
        request=request.body,
        request_type=request.content_type,
        valid_until=request.valid_until_ms or now_ms + valid_s * 1000,
    )
    money: dict[str, Any] = declared(request.body, dict(settings.money_fields))
    return replace(row, **money)


@dataclass(frozen=True)
class Ticket:
    """What a claim writes: who claims, for whom, and until when it can be in doubt.

    `sent_at` is read from the clock before the claim; `dead_at` is when the platform will certainly
    have ended this function. `by` stands in the history.
    """

    claim_id: str
    sent_at: int
    dead_at: int
    by: str = CHANNEL

    def fields(self, hub: Hub) -> dict[str, Any]:
        """Return the claim's fields of the row, under the settings of now."""
        settings = hub.settings
        doubt_s = settings.core_longest_s + settings.clock_skew_s
        return {
            "claim_id": self.claim_id,
            "sent_at": self.sent_at,
            "dead_at": self.dead_at,
            "ended_at": self.dead_at,
            "ask_after": self.dead_at + doubt_s * 1000,
            "due_at": self.dead_at + settings.clock_skew_s * 1000,
            "core": settings.core_name,
        }


def claim_fields(hub: Hub, row: Row, ticket: Ticket) -> dict[str, Any]:
    """Return the row's fields for another claim: the next attempt, all doubts of the last gone."""
    return {
        "attempt": row.attempt + 1,
        "code": None,
        "why": None,
        "inquiries": 0,
        "not_found_at": None,
        "processing_at": None,
        **ticket.fields(hub),
    }


def failed_due_at(hub: Hub, row: Row) -> int:
    """Return a FAILED row's next turn, epoch ms: a back-off with full jitter if the hub sends it.

    Otherwise, and at the latest, its turn is when its validity ends.
    """
    over_at = row.valid_until or 0
    if not hub_sends(row):
        return over_at
    longest = min(_FAILED_DUE_LONGEST_MS, _FAILED_DUE_FIRST_MS * 2 ** min(row.attempt - 1, 16))
    return min(over_at, hub.now_ms() + 1000 + int(longest * hub.chance()))


def hint_if_hub_sends(hub: Hub, row: Row) -> bool:
    """Hint that the row may be sent; a hint that is lost is made up for by the sweep."""
    if row.state is not State.FAILED or not hub_sends(row):
        return False
    fault = hub.hints.send_hint(row.guid, row.attempt)
    if fault:
        hub.note("hint_lost", guid=row.guid, reason=fault)
    return fault is None


def answer_fields(
    hub: Hub, row: Row, answer: Answer, source: str, dead_at_ms: int
) -> dict[str, Any]:
    """Return the row's fields for a definite answer; one too large for the row goes to S3 first.

    Raises AnswerStoreError if it has to go there and cannot before this function ends.
    """
    result = {
        "code": answer.code,
        "why": None,
        "response_status": answer.status,
        "response_type": answer.content_type,
        "answer_source": source,
        "expires_at": None if row.hold else expires_at(hub, row),
    }
    room = hub.settings.row_bytes_max - item_bytes(to_item(row)) - _RESULT_BYTES
    if len(answer.body) <= room:
        return result | {"response": answer.body}
    if hub.now_ms() + _STORE_WORST_MS + LEDGER_WRITE_WORST_S * 1000 > dead_at_ms:
        # The channel must get its answer; whoever asks the core later stores it.
        raise AnswerStoreError("too little time left to store it")
    stored = hub.store.put(row.guid, str(row.claim_id), answer.body)
    return result | {"response_object": stored}


def expires_at(hub: Hub, row: Row) -> int:
    """Return when the row, done now, may be deleted; epoch seconds, never rounded down."""
    is_evidence = row.doubted or row.state is State.UNKNOWN
    kept_s = hub.settings.evidence_s if is_evidence else hub.settings.retention_s
    return -(-hub.now_ms() // 1000) + kept_s


def fail(hub: Hub, row: Row, event: Event, by: str, why: Why) -> Outcome:
    """Make FAILED (E902) of a row that was certainly not executed, and set its next turn."""
    changes: dict[str, Any] = {"code": Code.E902, "why": why, "due_at": failed_due_at(hub, row)}
    return hub.ledger.move(row, event, by, hub.now_ms(), **changes)


def end_unexecuted(hub: Hub, row: Row, event: Event, by: str) -> Outcome:
    """Make DONE (E908) of a row that was certainly not executed: cancelled, expired or closed."""
    changes: dict[str, Any] = {"code": Code.E908, "why": None, "expires_at": expires_at(hub, row)}
    return hub.ledger.move(row, event, by, hub.now_ms(), **changes)


def end_if_over(hub: Hub, row: Row, by: str) -> Outcome | None:
    """End a row of which nothing is on its way if it is cancelled or not valid any more (E908).

    None if it is neither.
    """
    if row.cancel:
        return end_unexecuted(hub, row, Event.CANCELLED, by)
    if (row.valid_until or 0) <= hub.now_ms():
        return end_unexecuted(hub, row, Event.EXPIRED, by)
    return None


def proves_from(hub: Hub, row: Row) -> int:
    """Return the moment before which a NOT_FOUND proves nothing, of whatever row; epoch ms.

    That is core_longest after the core was last seen at it, and the end of a failover.
    """
    settings = hub.settings
    doubt_ms = (settings.core_longest_s + settings.clock_skew_s) * 1000
    seen_at = 0 if row.processing_at is None else row.processing_at + doubt_ms
    return max(seen_at, settings.hold_not_found_until_ms)


def counts_from(hub: Hub, row: Row) -> int:
    """Return the moment after which a NOT_FOUND that is asked for counts; epoch ms.

    The row carries the settings that it was sent under; the resolver's own bound comes on top.
    """
    settings = hub.settings
    ended_at = row.ended_at or row.dead_at or 0
    return max(row.ask_after or 0, ended_at + settings.min_age_s * 1000, proves_from(hub, row))


def hold_contradiction(hub: Hub, row: Row, by: str, reason: str) -> bool:
    """Hold a row that says "not executed" while the core says otherwise: only a person goes on.

    Else a cancel, or the end of its validity, would tell that it was not executed (E908). False if
    another has moved the row on: then the core may have spoken of that one's attempt.
    """
    outcome = hub.ledger.move(row, Event.HELD, by, hub.now_ms(), hold=Hold.CONTRADICTION)
    if isinstance(outcome, Found):
        return False
    hub.note("contradiction", guid=row.guid, state=row.state, reason=reason)
    return True


def settle_by_inquiry(
    hub: Hub, row: Row, finding: Finding, by: str, dead_at_ms: int
) -> Outcome | None:
    """Write the answer that the inquiry gave; None if there is none, or it cannot be stored."""
    if finding.answer is None:
        return None
    try:
        changes = answer_fields(hub, row, finding.answer, "inquiry", dead_at_ms)
    except AnswerStoreError as error:
        hub.note("not_stored", guid=row.guid, reason=str(error))
        if row.state is State.FAILED:
            hold_contradiction(hub, row, by, "answer not stored")
        return None
    outcome = hub.ledger.move(row, Event.PROCESSED, by, hub.now_ms(), **changes)
    is_executed = hub.settings.definite_codes.is_executed(finding.answer.code)
    if row.state is State.FAILED and is_executed and not isinstance(outcome, Found):
        # The row said "certainly not executed", and it was: some time limit is wrong.
        hub.note("contradiction", guid=row.guid, state=row.state, code=finding.answer.code)
    return outcome

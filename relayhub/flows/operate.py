"""What a person does to one row: a legal step, under the same conditions as every other write.

Each act bears who did it and why, in the row's history and in the log. None sends anything, and
none makes a row in doubt sendable without evidence. What would be unsafe is refused with a sentence
that says why, and what to do instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from relayhub.answers import AnswerStoreError
from relayhub.dynamo import NoAnswer, Refused
from relayhub.flows.steps import (
    answer_fields,
    counts_from,
    expires_at,
    failed_due_at,
    hint_if_hub_sends,
)
from relayhub.ledger import PERSON, Found, Stored
from relayhub.row import Row
from relayhub.states import SCHEMA, Code, Delivery, Event, Hold, State, Why
from relayhub.times import rfc3339
from relayhub.upkeep import UpkeepError

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.message import Answer

REASON_LENGTH_MAX: Final = 300  # It stands in the row's history, which has its size.
PARKED_BY_OPERATOR: Final = "operator"
_STORE_MS: Final = 60_000  # No platform ends a command; a large answer may take as long.
# Holds that evidence settles; the others a person must look at first, and release.
_SETTLED_BY_EVIDENCE: Final = frozenset({Hold.FORGOTTEN, Hold.RESTORED})


class RefusedError(Exception):
    """The act would be unsafe, or makes no sense, with the row as it is; nothing was written."""


class UnwrittenError(Exception):
    """The ledger did not answer, or refused; the message says what is certain."""


@dataclass(frozen=True)
class Person:
    """Who acts, and why; `name` is what the history shows."""

    name: str
    reason: str

    @property
    def by(self) -> str:
        """Return what stands in the history as the actor."""
        return f"{PERSON}{self.name}"


def read(hub: Hub, guid: str) -> Row:
    """Return the row, read consistently. Raises RefusedError if there is none, UnwrittenError."""
    row = hub.ledger.read(guid)
    if row is None:
        raise RefusedError(f"the ledger has no row of {guid}; its channel may still send it")
    if not isinstance(row, Row):
        raise UnwrittenError(f"the row of {guid} could not be read: {row.reason}")
    if row.schema > SCHEMA:
        raise RefusedError("the row is of a newer version than this one: use that one's commands")
    return row


def park(hub: Hub, row: Row, person: Person) -> Row:
    """Let the hub not send a FAILED row by itself any more; its channel's resend still does."""
    _demand_failed(row, "park")
    if row.hold:
        raise RefusedError(f"it is held ({row.hold}), so nothing moves it on: release it first")
    if row.parked:
        raise RefusedError(f"it is parked already ({row.parked})")
    _demand_uncancelled(row)
    if row.delivery is Delivery.INTERACTIVE:
        raise RefusedError("it is interactive: the hub does not send it by itself anyhow")
    changes = {"parked": PARKED_BY_OPERATOR, "due_at": row.valid_until, "doubted": True}
    return _write(hub, row, Event.PARKED, person, changes)


def hold(hub: Hub, row: Row, person: Person) -> Row:
    """Let nobody but a person move the row on; its channel is told E901 until it is released."""
    if row.hold:
        raise RefusedError(f"it is held already ({row.hold})")
    changes: dict[str, Any] = {"hold": Hold.OPERATOR, "doubted": True, "expires_at": None}
    return _write(hub, row, Event.HELD, person, changes)


def release(hub: Hub, row: Row, person: Person) -> Row:
    """Take a hold off; where the core may know more than the row says, it is asked about again."""
    if not row.hold:
        raise RefusedError("it is not held")
    if row.state is State.DONE:
        _demand_no_contradiction(hub, row)
        return _write(hub, row, Event.RELEASED, person, _done_again(hub, row))
    if row.state is State.UNKNOWN:
        return _write(hub, row, Event.RELEASED, person, _asked_again(hub, row))
    if row.hold in {Hold.CONTRADICTION, Hold.FORGOTTEN}:
        # It says "not executed", or will; something said otherwise: only the core's word decides.
        _demand_no_sender(hub, row)
        changes = _asked_again(hub, row) | {"code": Code.E901, "why": None, "parked": None}
        return _write(hub, row, Event.RESTORED, person, changes)
    return _write(hub, row, Event.RELEASED, person, {"hold": None, "doubted": True})


def redrive(hub: Hub, row: Row, person: Person, valid_until: int) -> Row:
    """Give a FAILED row new attempts and a new validity, and hint; the hub asks, then sends it."""
    _demand_failed(row, "redrive")
    if row.hold:
        raise RefusedError(f"it is held ({row.hold}): look why, and release it first")
    _demand_uncancelled(row)
    if row.delivery is Delivery.INTERACTIVE:
        raise RefusedError(
            "it is interactive: its customer waited and has gone; only its channel's own resend"
            " may send it, or close it so that the channel may start anew"
        )
    _demand_clock(hub)
    if valid_until <= hub.now_ms():
        raise RefusedError(f"the new validity would have ended at {rfc3339(valid_until)} already")
    changes = {
        "parked": None,
        "resends": 0,
        "valid_until": valid_until,
        "due_at": hub.now_ms(),
        "doubted": True,
    }
    redriven = _write(hub, row, Event.REDRIVEN, person, changes)
    hint_if_hub_sends(hub, redriven)
    return redriven


def close(hub: Hub, row: Row, person: Person, over: Hold | None = None) -> Row:
    """End a row that was certainly not executed (E908); `over` names the hold it overrides."""
    if row.state not in {State.FAILED, State.RECEIVED}:
        raise RefusedError(_WHY_NOT_CLOSED[row.state])
    if row.hold is Hold.CONTRADICTION:
        raise RefusedError(
            "two answers about it contradict each other, so it may have been executed: release it,"
            " and the core is asked about it again"
        )
    if row.hold is not over:
        named = f"it is held ({row.hold})" if row.hold else "it is not held"
        raise RefusedError(f"{named}: name just that hold to close it all the same")
    evidence = replace(row, doubted=True)
    changes = {
        "code": Code.E908,
        "why": None,
        "hold": None,
        "doubted": True,
        "expires_at": expires_at(hub, evidence),
    }
    return _write(hub, row, Event.CLOSED, person, changes)


def attest_executed(hub: Hub, row: Row, person: Person, answer: Answer) -> Row:
    """End a row in doubt with the core's own answer as evidence; it is replayed from then on."""
    _demand_unknown(row)
    if not hub.settings.definite_codes.is_executed(answer.code):
        raise RefusedError(
            f"the answer's code {answer.code!r} does not mean executed"
            f" ({', '.join(hub.settings.executed_codes)} do)"
        )
    try:
        changes = answer_fields(hub, row, answer, "evidence", hub.now_ms() + _STORE_MS)
    except AnswerStoreError as error:
        raise UnwrittenError(
            f"the answer could not be stored: {error}; nothing is written"
        ) from error
    ended = {"hold": None, "doubted": True, "expires_at": expires_at(hub, row)}
    return _write(hub, row, Event.ATTESTED_EXECUTED, person, changes | ended)


def attest_not_executed(hub: Hub, row: Row, person: Person, complete_through: int) -> Row:
    """Say that a row in doubt was not executed, by a journal complete through that time, epoch ms.

    Not before its time: until then the core may still begin with what it has received.
    """
    _demand_unknown(row)
    if row.hold and row.hold not in _SETTLED_BY_EVIDENCE:
        raise RefusedError(f"it is held ({row.hold}): look why, and release it first")
    from_ms = _provable_from(hub, row)
    if complete_through <= from_ms:
        raise RefusedError(
            f"the core may have begun with it until {rfc3339(from_ms)}: the journal must be"
            f" complete through a later time than that, not {rfc3339(complete_through)}"
        )
    if complete_through > hub.now_ms():
        raise RefusedError("no journal is complete through a time that is still to come")
    proof = f"{person.reason}; journal complete through {rfc3339(complete_through)}"
    changes: dict[str, Any] = {"hold": None, "doubted": True, "answer_source": "evidence"}
    if row.cancel:
        changes |= {"code": Code.E908, "why": None, "expires_at": expires_at(hub, row)}
        return _write(hub, row, Event.CANCELLED, replace(person, reason=proof), changes)
    failed = replace(row, hold=None)
    changes |= {"code": Code.E902, "why": Why.OPERATOR, "due_at": failed_due_at(hub, failed)}
    attested = _write(hub, row, Event.ATTESTED_NOT_EXECUTED, replace(person, reason=proof), changes)
    hint_if_hub_sends(hub, attested)
    return attested


def _provable_from(hub: Hub, row: Row) -> int:
    if row.ask_after is None:
        raise RefusedError(
            "it bears no time from when anything can be proved: hold and release it, so that it"
            " gets one"
        )
    from_ms = counts_from(hub, row)
    if hub.now_ms() <= from_ms:
        raise RefusedError(
            f"the core may still begin with it: not executed can be said from {rfc3339(from_ms)}"
        )
    _demand_clock(hub)
    return from_ms


def _done_again(hub: Hub, row: Row) -> dict[str, Any]:
    evidence = replace(row, doubted=True)
    return {"hold": None, "doubted": True, "expires_at": expires_at(hub, evidence)}


def _asked_again(hub: Hub, row: Row) -> dict[str, Any]:
    """Return the fields of a row in doubt whose every NOT_FOUND so far proves nothing any more."""
    _demand_clock(hub)
    settings, now_ms = hub.settings, hub.now_ms()
    doubt_s = settings.core_longest_s + settings.longest_timeout_s + settings.clock_skew_s
    return {
        "hold": None,
        "doubted": True,
        "not_found_at": None,
        "inquiries": 0,
        "ask_after": max(row.ask_after or 0, now_ms + doubt_s * 1000),
        # It was sent no earlier than accepted, so the core's memory never counts for too long.
        "sent_at": row.sent_at or row.accepted_at,
        "core": row.core or settings.core_name,
        "due_at": now_ms,
    }


def _demand_clock(hub: Hub) -> None:
    """Refuse under a wrong clock: by its times a NOT_FOUND would count too early."""
    try:
        is_off = hub.upkeep.look_at_clock()
    except UpkeepError as error:
        raise UnwrittenError(f"the ledger gave no answer ({error}); nothing is written") from error
    if is_off:
        raise RefusedError("this machine's clock is off: set it right first")


def _demand_no_contradiction(hub: Hub, row: Row) -> None:
    is_executed = hub.settings.definite_codes.is_executed(row.code or "")
    if row.hold is Hold.CONTRADICTION and not is_executed:
        raise RefusedError(
            f"its stored answer is {row.code}, not executed, and another one said otherwise: E901"
            " is the truth for its channel; settle it outside, and leave it on hold"
        )


def _demand_no_sender(hub: Hub, row: Row) -> None:
    if row.state is not State.SENT:
        return
    ended_ms = (row.dead_at or 0) + hub.settings.clock_skew_s * 1000
    if hub.now_ms() <= ended_ms:
        raise RefusedError(f"its sender may still be at it, until {rfc3339(ended_ms)}")


def _demand_failed(row: Row, what: str) -> None:
    if row.state is not State.FAILED:
        raise RefusedError(_WHY_NOT_FAILED[row.state].format(what=what))


def _demand_uncancelled(row: Row) -> None:
    if row.cancel:
        raise RefusedError("its channel cancelled it: the next sweep ends it (E908)")


def _demand_unknown(row: Row) -> None:
    if row.state is not State.UNKNOWN:
        raise RefusedError(_WHY_NOT_UNKNOWN[row.state])


def _write(hub: Hub, row: Row, event: Event, person: Person, changes: dict[str, Any]) -> Row:
    now_ms = hub.now_ms()
    outcome = hub.ledger.move(row, event, person.by, now_ms, reason=person.reason, **changes)
    match outcome:
        case Stored(written):
            return written
        case Found(now):
            raise RefusedError(f"it has moved on meanwhile and is {now.state} now: look again")
        case Refused(reason):
            raise UnwrittenError(f"the ledger refused the write ({reason}); nothing is written")
        case NoAnswer(reason):
            raise UnwrittenError(
                f"the ledger gave no answer ({reason}): look whether it is written"
            )


_OPEN: Final = "may have been executed: ask the core (`relayhub resolve`), or attest with evidence"
_WHY_NOT_FAILED: Final = {
    State.RECEIVED: "it is RECEIVED: its message is to come, there is nothing to {what} yet",
    State.SENT: "it is SENT: the request may be on its way; the resolver takes it from there",
    State.UNKNOWN: f"it is UNKNOWN: it {_OPEN}",
    State.DONE: "it is DONE: it has ended, and ended for good",
}
_WHY_NOT_CLOSED: Final = {
    State.SENT: "it is SENT: the request may be on its way, so nobody can say that it was not sent",
    State.UNKNOWN: f"it is UNKNOWN: it {_OPEN}",
    State.DONE: "it is DONE: it has ended already",
}
_WHY_NOT_UNKNOWN: Final = {
    State.RECEIVED: "it is RECEIVED: nothing was sent, so there is nothing to attest",
    State.SENT: "it is SENT: its sender may still be at it; the resolver takes it into doubt",
    State.FAILED: "it is FAILED: it was certainly not executed; redrive it, or close it",
    State.DONE: "it is DONE: its answer is stored",
}

"""The rules of the hub as data: states, codes, the legal steps, and what each answer tells.

Two rules of this file: every step that a row may take is in `STEPS`, and nothing in here does
input or output. It imports the standard library only. The diagram and the tables in the docs, and
the tests, are made from these tables, so that they cannot drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

SCHEMA: Final = 1  # The version of the row's shape; code never writes to a row that is newer.


class State(StrEnum):
    """Where a row stands."""

    RECEIVED = "RECEIVED"  # Accepted for later; nothing was sent.
    SENT = "SENT"  # Claimed; the request may be on its way.
    DONE = "DONE"  # A definite answer is stored.
    UNKNOWN = "UNKNOWN"  # Sent, and no answer is known.
    FAILED = "FAILED"  # Certainly not executed.


class Why(StrEnum):
    """How the hub knows that a FAILED row was not executed."""

    NOT_SENT = "not_sent"  # Nothing of the request left the hub.
    NOT_FOUND = "not_found"  # The core said so, believably.
    OPERATOR = "operator"  # A person said so, with evidence.


class Delivery(StrEnum):
    """What the hub does by itself with a request that was not sent."""

    DEFERRED = "deferred"  # It keeps it and sends it later, while it is valid.
    INTERACTIVE = "interactive"  # A customer waits: it never sends it later by itself.


class Verdict(StrEnum):
    """What the core's inquiry says of a GUID."""

    PROCESSED = "PROCESSED"  # It has a definite answer, and here it is.
    NOT_FOUND = "NOT_FOUND"  # It has no record: the core's own explicit word.
    PROCESSING = "PROCESSING"  # It is at it.
    UNDECIDED = "UNDECIDED"  # Anything else, silence included.


class Hold(StrEnum):
    """Why nobody but a person may move a row on."""

    CONTRADICTION = "contradiction"  # Two definite answers, or one that came after the next claim.
    RESTORED = "restored"  # The ledger was restored from a backup.
    FORGOTTEN = "forgotten"  # No NOT_FOUND can prove anything: the core forgets, or times lack.
    OPERATOR = "operator"  # A person put it on hold.


class Code(StrEnum):
    """The hub's own codes; the core's definite ones are a setting (`DefiniteCodes`)."""

    E901 = "E901"  # Sent, outcome unknown.
    E902 = "E902"  # Not executed.
    E903 = "E903"  # In progress.
    E904 = "E904"  # The GUID belongs to another request.
    E905 = "E905"  # Malformed.
    E906 = "E906"  # Nothing was claimed: the ledger refused, or too little time.
    E907 = "E907"  # Older than the ledger's memory.
    E908 = "E908"  # Cancelled, closed or expired: never executed.


@dataclass(frozen=True)
class DefiniteCodes:
    """The codes by which the core says for certain whether it executed; shell patterns."""

    executed: tuple[str, ...] = ("0000",)
    refused: tuple[str, ...] = ("B2[0-9][0-9]", "E500")

    def is_executed(self, code: str) -> bool:
        """Tell whether the code means that the core executed the request."""
        return any(fnmatchcase(code, pattern) for pattern in self.executed)

    def is_definite(self, code: str) -> bool:
        """Tell whether the code settles the request, either way."""
        return self.is_executed(code) or any(fnmatchcase(code, p) for p in self.refused)


class Event(StrEnum):
    """What can happen to a row; the names stand in its history and in the log."""

    ACCEPTED = "accepted"
    CLAIMED = "claimed"
    TOMBSTONED = "tombstoned"
    ANSWERED = "answered"
    DOUBTED = "doubted"
    NOT_SENT = "not_sent"
    ABANDONED = "abandoned"
    OVERDUE = "overdue"
    PROCESSED = "processed"
    NOT_FOUND = "not_found"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CLOSED = "closed"
    ATTESTED_EXECUTED = "attested_executed"
    ATTESTED_NOT_EXECUTED = "attested_not_executed"
    RESTORED = "restored"
    PURGED = "purged"
    CANCEL_RECORDED = "cancel_recorded"
    BACKED_OFF = "backed_off"
    NOT_FOUND_COUNTED = "not_found_counted"
    PROCESSING_SEEN = "processing_seen"
    PARKED = "parked"
    REDRIVEN = "redriven"
    HELD = "held"
    RELEASED = "released"
    FENCED = "fenced"
    REPAIRED = "repaired"


@dataclass(frozen=True)
class Step:
    """One legal step of a row: `source` None is an absent row, `target` None a deleted one."""

    event: Event
    source: State | None
    target: State | None
    by: str
    when: str


class IllegalStepError(Exception):
    """A step that the table does not have; whoever raises it has written nothing."""


_R, _S, _D, _U, _F = (State.RECEIVED, State.SENT, State.DONE, State.UNKNOWN, State.FAILED)

_MOVES: tuple[Step, ...] = (
    Step(Event.CLAIMED, None, _S, "relay", "a new GUID: put if absent"),
    Step(Event.ACCEPTED, None, _R, "relay", "asked to answer asynchronously"),
    Step(Event.TOMBSTONED, None, _D, "relay", "a cancel that overtakes its request (E908)"),
    Step(Event.CLAIMED, _R, _S, "relay", "the message of an accepted request arrives"),
    Step(Event.CLAIMED, _F, _S, "relay, reprocessor", "certainly not executed, valid, not held"),
    Step(Event.ANSWERED, _S, _D, "holder", "a definite answer"),
    Step(Event.ANSWERED, _U, _D, "holder", "a late definite answer of the same claim"),
    Step(Event.ANSWERED, _F, _D, "holder", "a late definite answer of the same claim"),
    Step(Event.DOUBTED, _S, _U, "holder", "something may have left, no answer known"),
    Step(Event.NOT_SENT, _S, _F, "holder", "nothing left the hub"),
    Step(Event.NOT_SENT, _U, _F, "holder", "late word of the same claim that nothing left"),
    Step(Event.ABANDONED, _S, _U, "resolver", "past dead_at: the holder is certainly gone"),
    Step(Event.OVERDUE, _R, _F, "resolver", "its message did not come in time"),
    Step(Event.PROCESSED, _U, _D, "resolver", "the core's inquiry has the answer"),
    Step(Event.PROCESSED, _F, _D, "relay, reprocessor", "found at the inquiry before a resend"),
    Step(Event.NOT_FOUND, _U, _F, "resolver", "the core has no record, believably"),
    Step(Event.CANCELLED, _S, _D, "holder", "nothing left, and a cancel is recorded (E908)"),
    Step(Event.CANCELLED, _U, _D, "resolver", "not found, and a cancel is recorded (E908)"),
    Step(Event.CANCELLED, _F, _D, "channel", "a cancel (E908)"),
    Step(Event.CANCELLED, _R, _D, "channel", "a cancel (E908)"),
    Step(Event.EXPIRED, _F, _D, "whoever meets it", "valid_until has passed (E908)"),
    Step(Event.EXPIRED, _R, _D, "whoever meets it", "valid_until has passed (E908)"),
    Step(Event.CLOSED, _F, _D, "operator", "closed by a person (E908)"),
    Step(Event.CLOSED, _R, _D, "operator", "closed by a person (E908)"),
    Step(Event.ATTESTED_EXECUTED, _U, _D, "operator", "evidence: executed"),
    Step(Event.ATTESTED_NOT_EXECUTED, _U, _F, "operator", "evidence: not executed, past ask_after"),
    Step(Event.RESTORED, _R, _U, "operator", "the ledger was restored from a backup"),
    Step(Event.RESTORED, _S, _U, "operator", "the ledger was restored from a backup"),
    Step(Event.RESTORED, _F, _U, "operator", "restored, or its contradiction is to be asked about"),
    Step(Event.PURGED, _D, None, "TTL, purger", "the retention has passed"),
)

# Writes that change flags, times or counts and leave the state: steps like the rest.
_STAYS: tuple[tuple[Event, tuple[State, ...], str, str], ...] = (
    (Event.CANCEL_RECORDED, (_S, _U), "channel", "a cancel while the outcome is open"),
    (Event.BACKED_OFF, (_R, _S, _U, _F), "resolver, reprocessor", "its next turn is later"),
    (Event.NOT_FOUND_COUNTED, (_U,), "resolver", "a first NOT_FOUND that counts"),
    (Event.PROCESSING_SEEN, (_U,), "resolver", "the core is still at it"),
    (Event.PARKED, (_F,), "reprocessor, operator", "the hub will not send it by itself"),
    (Event.REDRIVEN, (_F,), "operator", "new attempts and a new validity"),
    (Event.HELD, (_R, _S, _U, _F, _D), "holder, jobs, operator", "only a person moves it on"),
    (Event.RELEASED, (_R, _S, _U, _F, _D), "operator", "a person looked and let it go"),
    (Event.FENCED, (_R, _S, _U, _F, _D), "former holder", "a late answer, written down only"),
    (Event.REPAIRED, (_R, _S, _U, _F, _D), "purger", "index or expiry did not match the state"),
)

STEPS: Final[tuple[Step, ...]] = _MOVES + tuple(
    Step(event, state, state, by, when) for event, states, by, when in _STAYS for state in states
)

_TARGETS: Final = {(step.event, step.source): step.target for step in STEPS}


def target(event: Event, source: State | None) -> State | None:
    """Return the state that the event leads to.

    Raises IllegalStepError if the table has no such step.
    """
    try:
        return _TARGETS[event, source]
    except KeyError:
        raise IllegalStepError(f"{event} is no legal step from {source or 'no row'}") from None


class Tri(StrEnum):
    """The words in which an answer tells a channel what it may do."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    AFTER_CANCEL = "after_cancel"


@dataclass(frozen=True)
class Told:
    """What one code tells the channel; `status` None means the core's own status."""

    label: str
    status: int | None
    executed: Tri
    resend: Tri
    new_guid: Tri
    title: str
    detail: str
    retry_after_s: int | None = None


# In order of precedence: the first one that applies is the answer. Two kinds of E902 differ only in
# who sends the request later.
TOLD: Final[tuple[Told, ...]] = (
    Told(
        *(Code.E905, 400, Tri.UNKNOWN, Tri.YES, Tri.NO, "malformed"),
        "Nothing was recorded, and this says nothing about earlier requests with this GUID."
        " Correct the request and send it again with the same GUID.",
    ),
    Told(
        *(Code.E906, 503, Tri.UNKNOWN, Tri.YES, Tri.NO, "not accepted now"),
        "This request sent nothing; an earlier one with this GUID may have been executed."
        " Resend with the same GUID.",
        retry_after_s=1,
    ),
    Told(
        *(Code.E907, 422, Tri.UNKNOWN, Tri.NO, Tri.NO, "older than the ledger's memory"),
        "It was not executed now, but may have been executed then. Reconcile with the core first.",
    ),
    Told(
        *(Code.E904, 422, Tri.UNKNOWN, Tri.NO, Tri.NO, "the GUID belongs to another request"),
        "Nothing was sent, and nothing is told about the other request. If it is the same business"
        " act, ask for its status; do not start it anew.",
    ),
    Told(
        *("0000", None, Tri.YES, Tri.NO, Tri.NO, "executed"),
        "The core executed it. A resend gets the stored answer, byte for byte.",
    ),
    Told(
        *("B2xx, E500", None, Tri.NO, Tri.NO, Tri.YES, "refused by the core"),
        "The core refused it and did not execute it. A resend gets the stored answer.",
    ),
    Told(
        *(Code.E908, 410, Tri.NO, Tri.NO, Tri.YES, "cancelled, closed or expired"),
        "It was not executed and never will be.",
    ),
    Told(
        *(Code.E901, 504, Tri.UNKNOWN, Tri.YES, Tri.NO, "not confirmed"),
        "It was sent and its outcome is not known yet; it may have been executed. Ask for its"
        " status from ask_after, or resend with the same GUID; never start it anew.",
    ),
    Told(
        *(Code.E903, 409, Tri.UNKNOWN, Tri.YES, Tri.NO, "in progress"),
        "It is in progress: not failed, not done. Resend with the same GUID after Retry-After.",
        retry_after_s=1,
    ),
    Told(
        *(Code.E902, 202, Tri.NO, Tri.YES, Tri.AFTER_CANCEL, "not executed yet"),
        "Nothing was executed. The hub sends it by itself until valid_until. Cancel it before you"
        " start the act anew.",
    ),
    Told(
        *(Code.E902, 503, Tri.NO, Tri.YES, Tri.AFTER_CANCEL, "not executed"),
        "Nothing was executed, and it is not sent unless you resend it with the same GUID."
        " Cancel it before you start the act anew.",
        retry_after_s=30,
    ),
)

# What is told of a GUID that has no row of its channel: no code, which a channel reads as E901.
NOT_KNOWN: Final = Told(
    *("", 404, Tri.UNKNOWN, Tri.YES, Tri.NO, "not known yet"),
    "The hub knows no such GUID of this channel yet. It may still arrive, or may have been executed"
    " before the ledger's memory. Resend with the same GUID.",
)

_BY_LABEL: Final = {told.label: told for told in reversed(TOLD)}
_UNSENT: Final = TOLD[-1]

CODE_OF_OPEN_STATE: Final = {
    State.RECEIVED: Code.E903,
    State.SENT: Code.E903,
    State.UNKNOWN: Code.E901,
    State.FAILED: Code.E902,
}


def told(code: str, codes: DefiniteCodes, *, hub_sends: bool = False) -> Told:
    """Return what the code tells; `hub_sends` says that the hub itself sends an E902 later."""
    if code == Code.E902 and not hub_sends:
        return _UNSENT
    if code in set(Code):
        return _BY_LABEL[code]
    if not codes.is_definite(code):
        # Stored under other settings: nobody knows any more what it meant.
        return _BY_LABEL[Code.E901]
    return _BY_LABEL["0000" if codes.is_executed(code) else "B2xx, E500"]

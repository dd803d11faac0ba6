"""The ledger: every row's claims and writes. With `dynamo.py`, the only code that uses DynamoDB.

The rules that it protects: a step that the table in `states.py` does not have raises and writes
nothing; every write after the claim is conditional on the state AND the claim_id that were read;
the flags that must stop a write stand in that write's own condition. No read comes before a write.

    time     relay                        resolver, reprocessor, another relay
     |       put if absent  -> SENT        the loser gets the row from the failed condition
     |       ... the call to the core ...  nobody else sends: the row says SENT
     |       update if SENT and my claim   a holder that was moved on fails here (fenced)
     v
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from relayhub import dynamo
from relayhub.dynamo import Applied, Conflict, NoAnswer, Refused
from relayhub.expressions import Condition, absent, equals, update
from relayhub.row import HISTORY_MAX, Entry, Row, encode, from_item, open_shard, to_item, with_entry
from relayhub.states import SCHEMA, Event, State, target

INDEX: Final = "open"
_TRIES_MAX: Final = 5  # Each loss to a longer history brings the newer one.
# The actors that move a row because its channel asked: by HTTP, and by a message.
CHANNEL: Final = "relay"
MESSAGES: Final = "messages"
PERSON: Final = "operator "  # What an actor's name begins with who is a person.


@dataclass(frozen=True)
class Stored:
    """The write stands, and this is the row; `date_ms` is the service's own time, if it told."""

    row: Row
    date_ms: int | None = None


@dataclass(frozen=True)
class Found:
    """The write was not made, because the row is another: this one."""

    row: Row


Outcome = Stored | Found | Refused | NoAnswer
# Steps that only make a row wait: an inquiry that changed nothing would fill the history.
_UNWRITTEN: Final = frozenset({Event.BACKED_OFF, Event.PROCESSING_SEEN})
OnStep = Callable[[Entry, Row], None]


class Ledger:
    """The rows of one table; `on_step` hears of every step that was written."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        shards: int,
        on_step: OnStep,
        pause: Callable[[int], None] = dynamo.back_off,
    ) -> None:
        self._client = client
        self._table = table
        self._shards = shards
        self._on_step = on_step
        self._pause = pause

    def read(self, guid: str) -> Row | Refused | NoAnswer | None:
        """Return the row, read consistently; None if there is none."""
        request = {"TableName": self._table, "Key": {"guid": encode(guid)}, "ConsistentRead": True}
        match dynamo.call(self._client.get_item, request, self._pause):
            case Applied(response):
                item = response.get("Item")
                return from_item(item) if item else None
            case Conflict():
                return NoAnswer("a read has no condition")
            case failure:
                return failure

    def create(self, row: Row, event: Event, by: str) -> Outcome:
        """Put a row where none is: a first claim, an acceptance or a tombstone. One request.

        A claim is ours if the row that is there bears our claim_id and still says SENT.
        """
        new, entry = self._stepped(row, None, event, by)
        request = {
            "TableName": self._table,
            "Item": to_item(new),
            "ConditionExpression": "attribute_not_exists(guid)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        result = dynamo.call(self._client.put_item, request, self._pause)
        return self._outcome(result, new, entry)

    def move(
        self,
        row: Row,
        event: Event,
        by: str,
        now_ms: int,
        *,
        reason: str | None = None,
        **changes: Any,
    ) -> Outcome:
        """Take one legal step from the row as it was read. One request.

        `reason` is a person's, for the history. `changes` are fields of the row; None removes one.
        Raises IllegalStepError, and writes
        nothing, if the table of steps has no such step.
        """
        who = (by, reason)
        outcome = self._move(row, event, who, now_ms, changes)
        for _ in range(_TRIES_MAX):
            if not isinstance(outcome, Found) or not _only_history_grew(row, outcome.row):
                break
            found = outcome.row
            row = replace(row, history=found.history, history_dropped=found.history_dropped)
            outcome = self._move(row, event, who, now_ms, changes)
        return outcome

    def _move(
        self,
        row: Row,
        event: Event,
        who: tuple[str, str | None],
        now_ms: int,
        changes: Mapping[str, Any],
    ) -> Outcome:
        changed = replace(row, updated_at=now_ms, **changes)
        new, entry = self._stepped(changed, row.state, event, *who)
        conditions = (
            *_fence(row),
            *_guards(row, event, who[0], now_ms),
            *_history_as_read(row, new, event),
        )
        request = {
            "TableName": self._table,
            "Key": {"guid": encode(row.guid)},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **update(row, new, conditions),
        }
        result = dynamo.call(self._client.update_item, request, self._pause)
        return self._outcome(result, new, entry)

    def _stepped(
        self, row: Row, source: State | None, event: Event, by: str, reason: str | None = None
    ) -> tuple[Row, Entry]:
        state = target(event, source)
        if state is None:
            raise ValueError(f"{event} is no write of a row")
        entry = {
            "at": row.updated_at,
            "by": by,
            "event": event,
            "from": source,
            "to": state,
            "attempt": row.attempt,
            "code": row.code,
            "reason": reason,
        }
        kept = {name: value for name, value in entry.items() if value is not None}
        plain = {name: _natural(value) for name, value in kept.items()}
        moved = replace(row, state=state, due_at=None if state is State.DONE else row.due_at)
        moved = replace(moved, open_shard=open_shard(moved, self._shards))
        if event not in _UNWRITTEN:
            history, dropped = with_entry(row, plain)
            moved = replace(moved, history=history, history_dropped=dropped)
        return moved, plain

    def _outcome(self, result: dynamo.Result, new: Row, entry: Entry) -> Outcome:
        match result:
            case Applied(response):
                self._on_step(entry, new)
                return Stored(new, dynamo.date_ms(response))
            case Conflict(item, date_ms):
                found = from_item(item)
                if _is_ours(found, new, entry):
                    self._on_step(entry, found)
                    return Stored(found, date_ms)
                return Found(found)
            case failure:
                return failure


def _natural(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


def _is_ours(found: Row, new: Row, entry: Entry) -> bool:
    """Tell whether the row that a retried write met is what that very write had made of it.

    A claim is ours only while it is SENT: whoever finds his claim moved on must not send.
    """
    if found.claim_id != new.claim_id or found.schema > SCHEMA:
        return False
    if entry["event"] == Event.CLAIMED:
        return found.state is State.SENT
    if entry in found.history and found.channel == new.channel:
        return True
    # The same answer under the same claim: whoever wrote it, it is what was to be written.
    return entry["event"] == Event.ANSWERED and _settled(found) == _settled(new)


def _settled(row: Row) -> tuple[State, str | None, str | None]:
    return row.state, row.code, row.answer_sha256()


def _only_history_grew(read: Row, found: Row) -> bool:
    """Tell whether a write that names the history lost only to a line that another added."""
    same = ("state", "claim_id", "hold", "parked", "processing_at", "doubted", "cancel", "schema")
    return (found.history, found.history_dropped) != (read.history, read.history_dropped) and all(
        getattr(found, name) == getattr(read, name) for name in same
    )


def _fence(row: Row) -> tuple[Condition, ...]:
    """Return what every write after the claim demands: the row is there, and is the one read.

    Hold and parked are compared too: the index key that the write sets is made from them. So is
    the last time the core was seen at it: whoever read the row before may believe too much. And so
    is whether it is evidence, since a person touched it: it is kept for longer.
    """
    return (
        Condition("guid", "attribute_exists({name})"),
        equals("state", row.state),
        equals("claim_id", row.claim_id),
        equals("hold", row.hold),
        equals("parked", row.parked),
        equals("processing_at", row.processing_at),
        equals("doubted", row.doubted or None),
        Condition("schema", "{name} <= {value}", SCHEMA),
    )


def _history_as_read(row: Row, new: Row, event: Event) -> tuple[Condition, ...]:
    """Return what a write demands that replaces the history, or that stays in its state.

    Without it, a retry of such a write whose reply was lost would be applied twice. The purger's
    repairs are made from rows that were read without their history; twice they do no harm.
    """
    stays = new.state is row.state and event is not Event.REPAIRED
    if new.history == row.history or not (stays or len(row.history) >= HISTORY_MAX):
        return ()
    return (
        Condition("history", "size({name}) = {value}", len(row.history)),
        equals("history_dropped", row.history_dropped or None),
    )


# Rank: hold before cancel before validity before parked. Whatever must stop a write is in its
# condition, because such a flag changes neither the state nor the claim_id.
_STOPPED_BY: Final[Mapping[Event, tuple[str, ...]]] = {
    Event.CLAIMED: ("hold", "cancel"),
    Event.NOT_SENT: ("cancel",),
    Event.NOT_FOUND: ("cancel",),
    Event.OVERDUE: ("cancel",),
    Event.ATTESTED_NOT_EXECUTED: ("cancel",),
    Event.REDRIVEN: ("cancel",),
    Event.CANCELLED: ("hold",),
    Event.EXPIRED: ("hold",),
}


def _guards(row: Row, event: Event, by: str, now_ms: int) -> tuple[Condition, ...]:
    guards = [absent(name) for name in _STOPPED_BY.get(event, ())]
    if by.startswith(PERSON):
        # A person may end a hold by evidence: the one that he saw, which the fence compares.
        guards = [each for each in guards if each.name != "hold"]
    if event is Event.CLAIMED:
        guards.append(Condition("valid_until", "{name} > {value}", now_ms))
        if by not in {CHANNEL, MESSAGES}:
            guards.append(absent("parked"))
    if event is Event.EXPIRED:
        # The validity that is over must still be the row's: a person may have given another.
        guards.append(equals("valid_until", row.valid_until))
    return tuple(guards)

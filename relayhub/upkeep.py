"""What the maintenance functions ask of the ledger's table: the due rows, the scan, own rows.

With `dynamo.py` and `ledger.py`, the only code that uses DynamoDB.

What the index says is a hint: it lags, and holds keys only. Whoever acts reads the row itself,
consistently, and writes under the condition that it still is as read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from relayhub import dynamo
from relayhub.dynamo import Applied, Conflict, NoAnswer, Refused
from relayhub.ledger import INDEX
from relayhub.row import Row, decode, encode, from_item, index_key
from relayhub.states import SCHEMA, State

OWN: Final = "!"  # The first character of the project's own keys; no GUID begins with it.
_GATE: Final = "!gate"
_CURSOR: Final = "!purge"
FINISHED: Final = ""  # The cursor of a segment that is through, while others are not.
# What the purger judges a row by, and what fences its writes.
_SWEPT: Final = (
    *("guid", "state", "channel", "accepted_at", "updated_at", "claim_id", "attempt", "code"),
    *("hold", "parked", "processing_at", "doubted", "schema", "open_shard", "due_at", "expires_at"),
    "response_object",
)


class UpkeepError(Exception):
    """The table could not be asked; nothing was changed by this request."""


@dataclass(frozen=True)
class Due:
    """A row that the index says is due."""

    due_at: int
    guid: str


@dataclass(frozen=True)
class Page:
    """One page of the scan, and where the next one begins; None at the end of the segment."""

    rows: tuple[Row, ...]
    unreadable: tuple[str, ...]  # GUIDs of rows that no version up to this one can have written.
    next_key: str | None


class Upkeep:
    """What the resolver, the reprocessor and the purger ask of the table beside rows."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        now_ms: Callable[[], int],
        skew_s: int,
        pause: Callable[[int], None] = dynamo.back_off,
    ) -> None:
        self._client = client
        self._table = table
        self._now_ms = now_ms
        self._pause = pause
        self._skew_s = skew_s
        self._clock_is_off = False

    def clock_is_off(self) -> bool:
        """Tell whether one's own clock was off by over half the skew at the last answer."""
        return self._clock_is_off

    def look_at_clock(self) -> bool:
        """Ask for the service's time; tell whether one's own clock is off. Raises UpkeepError."""
        self.gate_opens_at()
        return self._clock_is_off

    def due(self, group: str, shard: int, now_ms: int, limit: int) -> list[Due]:
        """Return the rows of one index shard that are due, oldest first. Raises UpkeepError."""
        found = self._ask(
            self._client.query,
            IndexName=INDEX,
            KeyConditionExpression="open_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues={
                ":shard": encode(index_key(group, shard)),
                ":now": encode(now_ms),
            },
            Limit=limit,
        )
        return [Due(decode(each["due_at"]), decode(each["guid"])) for each in found["Items"]]

    def set_aside(self, due: Due, later_ms: int) -> None:
        """Let a row wait that nobody can handle, or even read; not one that has moved on."""
        request = {
            "TableName": self._table,
            "Key": {"guid": encode(due.guid)},
            "UpdateExpression": "SET due_at = :later",
            "ConditionExpression": "attribute_exists(guid) AND due_at = :was",
            "ExpressionAttributeValues": {
                ":later": encode(later_ms),
                ":was": encode(due.due_at),
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        dynamo.call(self._client.update_item, request, self._pause)

    def scan(self, segment: int, segments: int, start: str | None) -> Page:
        """Return one page of rows without their bytes and history; the project's own are left out.

        Read consistently. Raises UpkeepError.
        """
        start_key = {} if start is None else {"ExclusiveStartKey": {"guid": encode(start)}}
        found = self._ask(
            self._client.scan,
            ConsistentRead=True,
            Segment=segment,
            TotalSegments=segments,
            ProjectionExpression=", ".join(f"#{name}" for name in _SWEPT),
            ExpressionAttributeNames={f"#{name}": name for name in _SWEPT},
            **start_key,
        )
        last = found.get("LastEvaluatedKey")
        rows, unreadable = _rows(found["Items"])
        return Page(rows, unreadable, None if last is None else decode(last["guid"]))

    def delete_expired(self, guid: str, now_s: int) -> bool:
        """Delete the row if it is DONE, past its stored time and not held; tell whether it was.

        Raises UpkeepError. State and time stand in the delete's own condition.
        """
        request = {
            "TableName": self._table,
            "Key": {"guid": encode(guid)},
            "ConditionExpression": "#state = :done AND expires_at <= :now"
            " AND attribute_not_exists(#hold) AND #schema <= :schema",
            "ExpressionAttributeNames": {"#state": "state", "#hold": "hold", "#schema": "schema"},
            "ExpressionAttributeValues": {
                ":done": encode(State.DONE),
                ":now": encode(now_s),
                ":schema": encode(SCHEMA),
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        match dynamo.call(self._client.delete_item, request, self._pause):
            case Applied():
                return True
            case Conflict():
                return False
            case NoAnswer("conflict without an item"):
                return False  # It is gone already.
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)

    def gate_opens_at(self) -> int | None:
        """Return when the next probe of the core is due; None while the gate is open.

        Raises UpkeepError.
        """
        found = self._ask(
            self._client.get_item, Key={"guid": encode(_GATE)}, ConsistentRead=True
        ).get("Item")
        return None if found is None else int(decode(found["probe_at"]))

    def take_probe(self, probe_at: int, next_at: int) -> bool:
        """Take the turn that is due at `probe_at`, for one caller alone; tell whether it was."""
        return self._put_own(
            {"guid": _GATE, "probe_at": next_at}, "probe_at = :was", {":was": encode(probe_at)}
        )

    def close_gate(self, next_at: int) -> bool:
        """Close the gate, unless it is closed; tell whether this call closed it."""
        return self._put_own({"guid": _GATE, "probe_at": next_at}, "attribute_not_exists(guid)", {})

    def open_gate(self) -> None:
        """Open the gate: the core answers. Raises UpkeepError."""
        self._ask(self._client.delete_item, Key={"guid": encode(_GATE)})

    def cursor(self, segment: int, segments: int) -> str | None:
        """Return where the purge of the segment goes on: None from its beginning, or FINISHED."""
        found = self._ask(
            self._client.get_item, Key=_cursor_key(segment, segments), ConsistentRead=True
        ).get("Item")
        return None if found is None else str(decode(found["next_key"]))

    def keep_cursor(self, segment: int, segments: int, next_key: str) -> None:
        """Remember where the purge of the segment goes on, or FINISHED. Raises UpkeepError."""
        item = {**_cursor_key(segment, segments), "next_key": encode(next_key)}
        self._ask(self._client.put_item, Item=item)

    def forget_cursors(self, segments: int) -> None:
        """Let the next purge begin anew: every segment is finished. Raises UpkeepError."""
        for segment in range(segments):
            self._ask(self._client.delete_item, Key=_cursor_key(segment, segments))

    def _put_own(self, item: Mapping[str, Any], condition: str, values: Mapping[str, Any]) -> bool:
        request = {
            "TableName": self._table,
            "Item": {name: encode(value) for name, value in item.items()},
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if values:
            request["ExpressionAttributeValues"] = values
        # Without an answer the turn counts as not had: one probe less, never one more.
        return isinstance(dynamo.call(self._client.put_item, request, self._pause), Applied)

    def _ask(self, operation: Callable[..., Mapping[str, Any]], **request: Any) -> Any:
        before_ms = self._now_ms()
        match dynamo.call(operation, {"TableName": self._table, **request}, self._pause):
            case Applied(response):
                self._clock_is_off = dynamo.is_clock_off(
                    before_ms, dynamo.date_ms(response), self._now_ms(), self._skew_s
                )
                return response
            case Conflict():
                raise UpkeepError("a request without a condition cannot conflict")
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)


def _cursor_key(segment: int, segments: int) -> dict[str, Any]:
    return {"guid": encode(f"{_CURSOR}#{segments}#{segment}")}


def _rows(items: list[Mapping[str, Any]]) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Return the rows among the items, and the GUIDs of those that cannot be read."""
    rows, unreadable = [], []
    for item in items:
        guid = decode(item["guid"])
        if guid.startswith(OWN):
            continue
        try:
            rows.append(from_item(item))
        except ValueError:
            unreadable.append(guid)
    return tuple(rows), tuple(unreadable)

"""What is read of many rows at once: the open ones by the index, and a bounded scan of all.

With `dynamo.py`, `ledger.py`, `upkeep.py` and `controls.py`, the only code that uses DynamoDB. It
only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from relayhub import dynamo
from relayhub.dynamo import Applied, Conflict, NoAnswer, Refused
from relayhub.ledger import INDEX
from relayhub.row import Row, decode, encode, from_item, index_key
from relayhub.upkeep import OWN, Due, UpkeepError

_BATCH: Final = 100  # The most that BatchGetItem takes.
_UNPROCESSED_MAX: Final = 5  # Rounds in a row that brought nothing.
# What a person sees of a row among many: not its bytes, and not its history.
_SHOWN: Final = (
    *("guid", "state", "channel", "operation", "accepted_at", "updated_at", "code", "why"),
    *("attempt", "resends", "delivery", "hold", "parked", "cancel", "valid_until", "ask_after"),
    *("sent_at", "dead_at", "ended_at", "core", "doubted", "not_found_at", "due_at", "claim_id"),
    *("expires_at", "schema", "amount", "currency", "reference"),
)
_NAMES: Final = {f"#{name}": name for name in _SHOWN}
_PROJECTION: Final = ", ".join(_NAMES)


@dataclass(frozen=True)
class Scanned:
    """One page of a scan: its rows, what it cost (read units), where the next one begins."""

    rows: tuple[Row, ...]
    units: float
    next_key: str | None


class Surveys:
    """The rows of one table, many at a time."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        pause: Callable[[int], None] = dynamo.back_off,
    ) -> None:
        self._client = client
        self._table = table
        self._pause = pause
        self.unreadable: set[str] = set()  # Rows that no version up to this one can have written.

    def open_rows(self, group: str, shard: int) -> Iterator[Due]:
        """Return the keys of one shard of a group, as the index has them. Raises UpkeepError."""
        start: dict[str, Any] = {}
        while True:
            page = self._ask(
                self._client.query,
                TableName=self._table,
                IndexName=INDEX,
                KeyConditionExpression="open_shard = :shard",
                ExpressionAttributeValues={":shard": encode(index_key(group, shard))},
                **start,
            )
            for each in page["Items"]:
                yield Due(decode(each["due_at"]), decode(each["guid"]))
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def rows(self, guids: list[str]) -> list[Row]:
        """Return the rows as they are, without bytes and history. Raises UpkeepError."""
        found: list[Row] = []
        for first in range(0, len(guids), _BATCH):
            found += self._batch([{"guid": encode(guid)} for guid in guids[first : first + _BATCH]])
        return found

    def _batch(self, keys: list[dict[str, Any]]) -> list[Row]:
        found: list[Row] = []
        for attempt in range(1, _UNPROCESSED_MAX + 1):
            request = {
                "Keys": keys,
                "ConsistentRead": True,
                "ProjectionExpression": _PROJECTION,
                "ExpressionAttributeNames": _NAMES,
            }
            page = self._ask(self._client.batch_get_item, RequestItems={self._table: request})
            found += self._readable(page["Responses"].get(self._table, ()))
            keys = page.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if not keys:
                return found
            self._pause(attempt)
        raise UpkeepError("the table is too busy to read many rows")

    def scan(self, segment: int, segments: int, start: str | None, accepted: range) -> Scanned:
        """Return one page of the rows accepted within the times, epoch ms. Raises UpkeepError.

        Eventually consistent, at half the price; it is paid for every row that is passed over.
        """
        start_key = {} if start is None else {"ExclusiveStartKey": {"guid": encode(start)}}
        page = self._ask(
            self._client.scan,
            TableName=self._table,
            Segment=segment,
            TotalSegments=segments,
            FilterExpression="#accepted_at >= :first AND #accepted_at < :end",
            ProjectionExpression=_PROJECTION,
            ExpressionAttributeNames=_NAMES,
            ExpressionAttributeValues={
                ":first": encode(accepted.start),
                ":end": encode(accepted.stop),
            },
            ReturnConsumedCapacity="TOTAL",
            **start_key,
        )
        last = page.get("LastEvaluatedKey")
        units = float(page.get("ConsumedCapacity", {}).get("CapacityUnits", 0))
        return Scanned(
            tuple(self._readable(page["Items"])),
            units,
            None if last is None else decode(last["guid"]),
        )

    def _ask(self, operation: Callable[..., Mapping[str, Any]], **request: Any) -> Any:
        match dynamo.call(operation, request, self._pause):
            case Applied(response):
                return response
            case Conflict():
                raise UpkeepError("a read has no condition")
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)

    def _readable(self, items: Any) -> Iterator[Row]:
        for item in items:
            guid = decode(item["guid"])
            if guid.startswith(OWN):
                continue
            try:
                yield from_item(item)
            except ValueError:
                self.unreadable.add(guid)

"""The event that Lambda's Kafka event source makes of records, and how it reads the answer. Pure.

The shapes are those of the platform's documentation: bytes of keys and values in base64, bytes of
headers as signed numbers (the platform runs on Java), a failure named by partition and offset.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

SOURCE: Final = "SelfManagedKafka"
EVENT_BYTES_MAX: Final = 6 * 1024 * 1024  # A synchronous call's payload.
_FRAME_BYTES: Final = 512  # More than a record's names, numbers and brackets in the event.


class MalformedAnswerError(Exception):
    """An answer that names no failure, or one that was not in the batch: all of it comes again."""


class Place(NamedTuple):
    """One partition of a topic; as text it is the key of the event's `records`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class Record:
    """One record of the log; a key, a value and a header's value may be None."""

    place: Place
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int
    timestamp_type: str  # CREATE_TIME, LOG_APPEND_TIME or NO_TIMESTAMP_TYPE.

    @property
    def event_bytes(self) -> int:
        """How much of an event it takes, rather more than less."""
        raw = len(self.key or b"") + len(self.value or b"")
        marked = sum(len(name) + 8 + 5 * len(value or b"") for name, value in self.headers)
        return _FRAME_BYTES + raw * 4 // 3 + marked


def event_of(records: Iterable[Record], bootstrap: str) -> dict[str, Any]:
    """Return the event of a batch: each partition's records in their order."""
    by_place: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_place.setdefault(str(record.place), []).append(_of_record(record))
    return {"eventSource": SOURCE, "bootstrapServers": bootstrap, "records": by_place}


def _of_record(record: Record) -> dict[str, Any]:
    return {
        "topic": record.place.topic,
        "partition": record.place.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestampType": record.timestamp_type,
        "key": _coded(record.key),
        "value": _coded(record.value),
        "headers": [{name: _signed(value)} for name, value in record.headers],
    }


def _coded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _signed(data: bytes | None) -> list[int] | None:
    return None if data is None else [each - 256 if each > 127 else each for each in data]  # noqa: PLR2004


def that_fit(records: Sequence[Record], bytes_max: int = EVENT_BYTES_MAX) -> Sequence[Record]:
    """Return the first records that fit into one event; at least one, however large it is."""
    total = 0
    for number, record in enumerate(records):
        total += record.event_bytes
        if total > bytes_max and number:
            return records[:number]
    return records


def again_from(payload: bytes, records: Sequence[Record]) -> dict[Place, int]:
    """Return from which offset each partition comes again, by a partial answer; {} is success.

    An empty or null answer, or list, is success. Raises MalformedAnswerError for the rest.
    """
    answer = _read(payload)
    failures = answer.get("batchItemFailures") if answer else None
    if not failures:
        return {}
    if not isinstance(failures, list):
        raise MalformedAnswerError("batchItemFailures is no list")
    known = {(str(record.place), record.offset): record.place for record in records}
    found: dict[Place, int] = {}
    for failure in failures:
        name, offset = _identified(failure)
        place = known.get((name, offset))
        if place is None:
            raise MalformedAnswerError(f"offset {offset} of {name} was not in the batch")
        found[place] = min(offset, found.get(place, offset))
    return found


def _read(payload: bytes) -> Mapping[str, Any] | None:
    if not payload.strip():
        return None
    try:
        answer = json.loads(payload)
    except ValueError:
        raise MalformedAnswerError("the answer is no JSON") from None
    if answer is not None and not isinstance(answer, dict):
        raise MalformedAnswerError("the answer is no object")
    return answer


def _identified(failure: Any) -> tuple[str, int]:
    match failure:
        case {"itemIdentifier": {"partition": str(name), "offset": offset}} if type(offset) is int:
            return name, offset  # True is an int to isinstance, and equal to 1.
        case _:
            raise MalformedAnswerError("an item is not named by partition and offset")

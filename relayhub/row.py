"""The ledger's row: its fields, its size, and its form as a DynamoDB item.

Field names are attribute names. A field that has its default value is not in the item. Attributes
that this version does not know are ignored, so rows stay readable one version back and forth.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from relayhub.states import SCHEMA, Delivery, Hold, State, Why

HISTORY_MAX: Final = 20
PARKED: Final = "PARKED"
HELD: Final = "HELD"
WRITE_UNIT_BYTES: Final = 1024  # DynamoDB bills writes in steps of 1 KB of the whole item.

_RESULT_BYTES: Final = 200  # What a result with a short answer adds to the row.

Entry = Mapping[str, Any]  # One line of the history: at, by, event, from, to, attempt, code.


class UnreadableRowError(ValueError):
    """A row that no version up to this one can have written: only a person can judge it."""


@dataclass(frozen=True)
class Row:
    """One GUID's row. Times are epoch milliseconds, but `expires_at`: TTL wants epoch seconds."""

    guid: str
    state: State
    channel: str
    accepted_at: int
    updated_at: int
    operation: str = ""
    delivery: Delivery = Delivery.DEFERRED
    fingerprint: bytes | None = None  # None: a tombstone, which belongs to any body.
    scheme: str = "body"
    request: bytes | None = None
    request_type: str = ""
    code: str | None = None
    why: Why | None = None
    response: bytes | None = None
    response_status: int | None = None
    response_type: str | None = None
    response_object: Mapping[str, Any] | None = None  # key, bytes, sha256: an answer kept in S3.
    answer_source: str | None = None
    attempt: int = 0
    resends: int = 0
    claim_id: str | None = None
    core: str | None = None
    sent_at: int | None = None
    dead_at: int | None = None
    ended_at: int | None = None  # When its sending has certainly ended: dead_at, or earlier.
    ask_after: int | None = None
    valid_until: int | None = None
    cancel: Mapping[str, Any] | None = None
    doubted: bool = False  # Was it ever UNKNOWN, or touched by a person?
    inquiries: int = 0
    not_found_at: int | None = None  # When the first NOT_FOUND that counts was asked for.
    processing_at: int | None = None  # When the core was last seen at it.
    parked: str | None = None
    hold: Hold | None = None
    amount: str | None = None  # The declared fields: in no log, no metric and no message.
    currency: str | None = None
    reference: str | None = None
    history: tuple[Entry, ...] = ()
    history_dropped: int = 0
    open_shard: str | None = None
    due_at: int | None = None
    expires_at: int | None = None
    schema: int = SCHEMA

    def has_answer(self) -> bool:
        """Tell whether the core's answer is stored with the row."""
        return self.response is not None or self.response_object is not None

    def answer_sha256(self) -> str | None:
        """Return the digest of the stored answer's bytes, in hexadecimal; None without one."""
        if self.response_object is not None:
            return str(self.response_object["sha256"])
        return None if self.response is None else hashlib.sha256(self.response).hexdigest()


def hub_sends(row: Row) -> bool:
    """Tell whether the hub itself will send what was not sent, without anybody asking."""
    return row.delivery is Delivery.DEFERRED and not row.parked and not row.hold and not row.cancel


def open_shard(row: Row, shards: int) -> str | None:
    """Return the row's key in the index `open`; None, for a DONE one, takes it out of the index."""
    return index_key(group, shard_of(row.guid, shards)) if (group := _open_group(row)) else None


def index_key(group: str, shard: int) -> str:
    """Return the key of one shard of a group of open rows: a state, PARKED or HELD."""
    return f"{group}#{shard}"


def shard_of(guid: str, shards: int) -> int:
    """Return the shard that the GUID's row stands in."""
    return zlib.crc32(guid.encode()) % shards


def _open_group(row: Row) -> str | None:
    """Rows that only a person moves on stand apart, so that no job reads them again and again."""
    if row.state is State.DONE:
        return None
    if row.hold and not (row.hold is Hold.RESTORED and row.state is State.UNKNOWN):
        return HELD
    return PARKED if row.parked and row.state is State.FAILED else row.state


def with_entry(row: Row, entry: Entry) -> tuple[tuple[Entry, ...], int]:
    """Return the history with the entry (the first and the newest kept) and the count dropped."""
    history = (*row.history, entry)
    surplus = len(history) - HISTORY_MAX
    if surplus <= 0:
        return history, row.history_dropped
    return (history[0], *history[1 + surplus :]), row.history_dropped + surplus


_SERIALIZER: Final = TypeSerializer()
_DESERIALIZER: Final = TypeDeserializer()
_COERCE: Final[Mapping[str, type[StrEnum]]] = {
    "state": State,
    "delivery": Delivery,
    "why": Why,
    "hold": Hold,
}
_ZIPPED: Final = "request_zip"  # The attribute that bears the body instead, where that is cheaper.


@cache
def _defaults() -> dict[str, Any]:
    return {each.name: each.default for each in fields(Row)}


def to_item(row: Row) -> dict[str, Any]:
    """Return the row as a DynamoDB item; the body is compressed where that saves a write unit."""
    item = {
        name: encode(value)
        for name, default in _defaults().items()
        if (value := getattr(row, name)) != default or name == "schema"
    }
    if row.request is None:
        return item
    zipped = zlib.compress(row.request, 6)
    saved_bytes = len(row.request) - len(zipped) - len(_ZIPPED) + len("request")
    full_bytes = item_bytes(item)
    if _units_of_life(full_bytes - saved_bytes) < _units_of_life(full_bytes):
        del item["request"]
        item[_ZIPPED] = encode(zipped)
    return item


def from_item(item: Mapping[str, Any]) -> Row:
    """Return the row that the item holds; what this version does not know is left out.

    Raises UnreadableRowError for a word that no version up to this one can have written.
    """
    known = _defaults()
    values = {name: decode(value) for name, value in item.items() if name in known}
    if _ZIPPED in item:
        values["request"] = zlib.decompress(decode(item[_ZIPPED]))
    is_newer = values.get("schema", SCHEMA) > SCHEMA
    for name, kind in _COERCE.items():
        if values.get(name) is not None:
            values[name] = _word(kind, values[name], known[name], is_newer=is_newer)
    values["history"] = tuple(values.get("history", ()))
    missing = [name for name, default in known.items() if default is MISSING]
    return Row(**{name: "" for name in missing if name not in values} | values)


def _word(kind: type[StrEnum], value: str, default: Any, *, is_newer: bool) -> Any:
    """Return the word; one of a newer version, whose rows are only ever left alone, is no fault."""
    if is_newer and value not in set(kind):
        return State.UNKNOWN if default is MISSING else default
    try:
        return kind(value)
    except ValueError as error:
        raise UnreadableRowError(str(error)) from None


def encode(value: Any) -> dict[str, Any]:
    """Return the value in DynamoDB's typed form."""
    return dict(_SERIALIZER.serialize(_plain(value)))


def decode(value: Any) -> Any:
    """Return the plain value of DynamoDB's typed form: int, str, bytes, bool, list, dict."""
    return _natural(_DESERIALIZER.deserialize(value))


def _plain(value: Any) -> Any:
    match value:
        case bool() | bytes() | int():
            return value
        case str():
            return str(value)
        case Mapping():
            return {key: _plain(each) for key, each in value.items() if each is not None}
        case _:
            return [_plain(each) for each in value]


def _natural(value: Any) -> Any:
    match value:
        case bool() | str() | None:
            return value
        case dict():
            return {key: _natural(each) for key, each in value.items()}
        case list():
            return [_natural(each) for each in value]
        case _ if hasattr(value, "value"):  # boto3's Binary
            return bytes(value.value)
        case _:
            return int(value)


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the item's size as DynamoDB counts it, erring on the large side."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            return len(content) // 2 + 2
        case "M":
            return 3 + len(content) + item_bytes(content)
        case "L":
            return 3 + sum(1 + _value_bytes(each) for each in content)
        case _:
            return 1


def _units_of_life(claimed_bytes: int) -> int:
    """Return the write units of a plain transaction: its claim, and its result with the answer."""
    done_bytes = claimed_bytes + _RESULT_BYTES
    return -(-claimed_bytes // WRITE_UNIT_BYTES) - (-done_bytes // WRITE_UNIT_BYTES)

"""The row as an item: every field there and back, no larger than needed, never underestimated."""

from __future__ import annotations

import hashlib
import os
import random
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from relayhub.row import (
    HISTORY_MAX,
    Row,
    from_item,
    item_bytes,
    open_shard,
    shard_of,
    to_item,
    with_entry,
)
from relayhub.states import SCHEMA, Delivery, Hold, State, Why

ENTRY = {"at": 5, "by": "relay", "event": "claimed", "to": "SENT", "attempt": 1}
BARE = Row("G-1", State.SENT, "atm", 1, 2)
# Every field with a value that is not its default.
FULL: dict[str, Any] = {
    "guid": "G-1",
    "state": State.FAILED,
    "channel": "atm",
    "accepted_at": 1_800_000_000_000,
    "updated_at": 1_800_000_000_001,
    "operation": "transfer",
    "delivery": Delivery.INTERACTIVE,
    "fingerprint": b"\x00\xff" * 16,
    "scheme": "fields:/a,/b",
    "request": b'{"amount":1.00}',
    "request_type": "application/json; charset=utf-8",
    "code": "E902",
    "why": Why.NOT_FOUND,
    "response": b"\x00 \xff",
    "response_status": 422,
    "response_type": "text/plain; charset=Shift_JIS",
    "response_object": {"key": "G-1/c/s", "bytes": 5, "sha256": "ab"},
    "answer_source": "inquiry",
    "attempt": 3,
    "resends": 2,
    "claim_id": "claim-1",
    "core": "core",
    "sent_at": 10,
    "dead_at": 11,
    "ended_at": 12,
    "ask_after": 13,
    "valid_until": 14,
    "cancel": {"at": 15, "by": "atm", "seen": True},
    "doubted": True,
    "inquiries": 4,
    "not_found_at": 16,
    "processing_at": 17,
    "parked": "cap",
    "hold": Hold.CONTRADICTION,
    "amount": "1.00",
    "currency": "JPY",
    "reference": "R-1",
    "history": (ENTRY, {**ENTRY, "from": "FAILED", "code": "E902"}),
    "history_dropped": 6,
    "open_shard": "HELD#3",
    "due_at": 18,
    "expires_at": 19,
    "schema": SCHEMA + 1,
}


def test_the_example_has_every_field_with_another_value_than_its_default() -> None:
    """A new field must be added here."""
    assert set(FULL) == {each.name for each in fields(Row)}
    for each in fields(Row):
        if each.default is not MISSING:
            assert FULL[each.name] != each.default, each.name


@pytest.mark.parametrize("name", [name for name in FULL if name not in {"guid", "state"}])
def test_a_field_comes_back_as_it_went(name: str) -> None:
    """Value and kind."""
    row = replace(BARE, **{name: FULL[name]})
    back = from_item(to_item(row))
    assert back == row
    assert type(getattr(back, name)) is type(FULL[name])


def test_all_fields_come_back_together() -> None:
    """None stands in the other's way."""
    row = Row(**FULL)
    assert from_item(to_item(row)) == row


def test_a_field_with_its_default_takes_no_room() -> None:
    """But for the schema, which every write's condition compares."""
    assert set(to_item(BARE)) == {
        "guid",
        "state",
        "channel",
        "accepted_at",
        "updated_at",
        "schema",
    }


@pytest.mark.parametrize("state", list(State))
def test_a_state_is_a_state_again(state: State) -> None:
    """Not a text that looks like one."""
    back = from_item(to_item(replace(BARE, state=state)))
    assert back.state is state
    assert back.delivery is Delivery.DEFERRED


def test_what_a_newer_version_added_is_ignored() -> None:
    """Unknown attributes of every kind."""
    item = to_item(BARE)
    item |= {
        "later": {"S": "x"},
        "flags": {"SS": ["a", "b"]},
        "numbers": {"NS": ["1", "2"]},
        "blobs": {"BS": [b"a"]},
        "nothing": {"NULL": True},
        "half": {"N": "0.5"},
        "tree": {"M": {"a": {"L": [{"BOOL": False}]}}},
        "schema": {"N": "2"},
    }
    assert from_item(item) == replace(BARE, schema=2)


def test_what_an_older_version_lacks_has_its_default() -> None:
    """Also the fields that every row of today has."""
    row = from_item({"guid": {"S": "G-1"}, "state": {"S": "DONE"}})
    assert (row.guid, row.state, row.history, row.attempt) == ("G-1", State.DONE, (), 0)


def test_an_empty_body_and_no_body_are_two_things() -> None:
    """A tombstone has none."""
    assert from_item(to_item(replace(BARE, request=b""))).request == b""
    assert from_item(to_item(BARE)).request is None
    assert from_item(to_item(replace(BARE, fingerprint=None))).fingerprint is None


def units(count: int) -> int:
    """Return the write units of an item of that many bytes."""
    return -(-count // 1024)


@pytest.mark.parametrize("size", [0, 1, 100, 500, 800, 900, 1_000, 2_000, 5_000, 50_000, 262_144])
@pytest.mark.parametrize("kind", ["json", "noise"])
def test_a_body_is_compressed_only_where_that_saves_a_write_unit(size: int, kind: str) -> None:
    """And it comes back whole."""
    body = (b'{"amount":100},' * (size // 15 + 1))[:size] if kind == "json" else os.urandom(size)
    row = replace(BARE, request=body, request_type="application/json")
    item = to_item(row)
    assert from_item(item) == row
    assert not {"request", "request_zip"} <= set(item)
    if "request_zip" in item:
        plain = {name: value for name, value in item.items() if name != "request_zip"}
        plain["request"] = {"B": body}
        claimed, compressed = item_bytes(plain), item_bytes(item)
        assert units(claimed) + units(claimed + 200) > units(compressed) + units(compressed + 200)
    if kind == "noise" or size < 800:
        assert "request" in item
    if kind == "json" and size >= 2_000:
        assert "request_zip" in item


def test_a_history_keeps_the_first_and_the_newest() -> None:
    """20 lines, and a count of those that fell out."""
    row = BARE
    for number in range(50):
        history, dropped = with_entry(row, {"at": number})
        row = replace(row, history=history, history_dropped=dropped)
        assert len(history) + dropped == number + 1
        assert len(history) <= HISTORY_MAX == 20
    assert [each["at"] for each in row.history] == [0, *range(31, 50)]
    assert row.history_dropped == 30


def dynamo_bytes(value: dict[str, Any]) -> int:
    """Return a value's size as AWS documents it, written down a second time.

    Names and texts in UTF-8; a number about 1 byte per 2 significant digits plus 1 (and 1 for a
    sign); lists and maps 3 bytes, and 1 per element.
    """
    ((kind, content),) = value.items()
    size = 1
    match kind:
        case "S":
            size = len(content.encode("utf-8"))
        case "B":
            size = len(content)
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0")
            size = (len(digits) + 1) // 2 + 1 + content.startswith("-")
        case "M":
            inner = sum(len(k.encode()) + dynamo_bytes(v) + 1 for k, v in content.items())
            size = 3 + inner
        case "L":
            size = 3 + sum(dynamo_bytes(each) + 1 for each in content)
    return size


def test_a_size_is_never_below_what_dynamodb_counts() -> None:
    """An item that is taken for smaller than it is would be refused after the call."""
    chance = random.Random(7)
    for _ in range(300):
        row = Row(**FULL)
        row = replace(
            row,
            operation="取引" * chance.randrange(20),
            accepted_at=chance.randrange(10**13),
            request=os.urandom(chance.randrange(3_000)),
            cancel={"at": -chance.randrange(10**12), "by": "é" * chance.randrange(9)},
            history=tuple({**ENTRY, "at": chance.randrange(10**13)} for _ in range(20)),
        )
        item = to_item(row)
        least = sum(len(name.encode()) + dynamo_bytes(value) for name, value in item.items())
        assert least <= item_bytes(item) <= least * 1.1 + 100


def test_an_answers_digest_is_that_of_its_bytes_or_of_its_object() -> None:
    """None without an answer; an empty answer is an answer."""
    assert BARE.answer_sha256() is None
    empty = replace(BARE, response=b"")
    assert empty.answer_sha256() == hashlib.sha256(b"").hexdigest()
    assert replace(BARE, response_object={"sha256": "ab"}).answer_sha256() == "ab"
    assert [each.has_answer() for each in (BARE, empty)] == [False, True]


GROUPS = [
    (State.RECEIVED, None, None, "RECEIVED"),
    (State.SENT, None, None, "SENT"),
    (State.UNKNOWN, None, None, "UNKNOWN"),
    (State.FAILED, None, None, "FAILED"),
    (State.FAILED, "cap", None, "PARKED"),
    (State.DONE, None, None, None),
    (State.DONE, None, Hold.CONTRADICTION, None),
]


@pytest.mark.parametrize(("state", "parked", "hold", "group"), GROUPS)
def test_an_open_row_has_its_key_in_the_index(
    state: State, parked: str | None, hold: Hold | None, group: str | None
) -> None:
    """By state, parked rows apart, DONE ones not at all."""
    key = open_shard(replace(BARE, state=state, parked=parked, hold=hold), 16)
    assert (key and key.partition("#")[0]) == group


@pytest.mark.parametrize("state", [State.SENT, State.UNKNOWN, State.FAILED])
def test_a_held_open_row_is_in_the_index_too(state: State) -> None:
    """None is stuck unseen."""
    assert open_shard(replace(BARE, state=state, hold=Hold.OPERATOR), 16)


@pytest.mark.parametrize("shards", [1, 2, 16, 1024])
def test_a_shard_is_below_the_number_of_shards_and_all_are_used(shards: int) -> None:
    """The same GUID has always the same."""
    found = {shard_of(f"G-{number}", shards) for number in range(20_000)}
    assert found == set(range(shards))
    assert shard_of("G-1", shards) == shard_of("G-1", shards)

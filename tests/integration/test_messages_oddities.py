"""Kafka's oddities: each has one outcome, however often it is delivered, and blocks nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.message_events import TOPIC, deliver, kafka_event, kafka_record, put_aside
from tests.world import START_MS, World

Outcome = tuple[list[str], list[str]]  # The GUIDs executed, and the codes of what was put aside.
NEXT = kafka_record("G-9")
OTHER = b'{"amount":7}'
NOTHING: Outcome = ([], [])


def named(guid: str) -> bytes:
    """Return a body with its GUID in it."""
    return f'{{"guid":"{guid}"}}'.encode()


def header(*names: str, value: bytes = b"G-1") -> tuple[tuple[str, bytes], ...]:
    """Return headers of one value."""
    return tuple((name, value) for name in names)


def odd(name: str, executed: list[str], aside: list[str], *partitions: Any, **settings: Any) -> Any:
    """Return one line of the table."""
    return pytest.param(partitions, settings, (executed, aside), id=name)


def one(*more: Any, **named_more: Any) -> list[dict[str, Any]]:
    """Return a partition with one record."""
    return [kafka_record(*more, **named_more)]


KEYED: Any = {"kafka_key_is_guid": True}
G_1: Any = (["G-1"], [])
E905: Any = ([], ["E905"])

ODDITIES: list[Any] = [
    odd("null_key", *G_1, one(key=None)),
    odd("null_key_and_guid_in_the_body", *G_1, one(None, named("G-1"), key=None)),
    odd("key_is_null_in_json", *G_1, [kafka_record(key=None) | {"key": None}]),
    odd("null_key_where_keys_are_guids", *E905, one(None, key=None), **KEYED),
    odd("null_value", *E905, one(value=None)),
    odd("value_is_null_in_json", *E905, [kafka_record(value=None) | {"value": None}]),
    odd("null_value_where_keys_are_guids", *E905, one(None, None, key=b"G-1"), **KEYED),
    odd("null_key_and_value", *E905, one(None, None, key=None)),
    odd("empty_value", *E905, one(value=b"")),
    odd("same_guid_on_two_partitions", *G_1, one(), one()),
    odd("same_guid_on_two_partitions_other_body", ["G-1"], ["E904"], one(), one(value=OTHER)),
    odd("same_guid_under_two_keys", *G_1, [*one(key=b"a"), *one(key=b"b")]),
    odd("account_for_a_key", ["r-1", "r-2"], [], [*one("r-1", key=b"A"), *one("r-2", key=b"A")]),
    odd("account_for_a_key_alone", *E905, one(None, key=b"account-1")),
    odd("non_utf8_key", *G_1, one(key=b"\xff\xfe")),
    odd("non_utf8_key_where_keys_are_guids", *E905, one(None, key=b"\xff\xfe"), **KEYED),
    odd("non_utf8_key_beside_a_header", *G_1, one(key=b"\xff\xfe"), **KEYED),
    odd("key_for_a_guid", *G_1, one(None, key=b"G-1"), **KEYED),
    odd("key_for_a_guid_and_body_says_another", *G_1, one(None, named("G-1"), key=b"X"), **KEYED),
    odd("header_twice_the_same", *E905, one(headers=header("idempotency-key"))),
    odd("header_twice_differing", *E905, one("G-2", headers=header("idempotency-key"))),
    odd("header_twice_in_two_cases", *E905, one(headers=header("Idempotency-Key"))),
    odd("operation_twice", *E905, one(headers=header("x-operation", "X-Operation"))),
    odd("foreign_header_twice", *G_1, one(headers=header("trace", "trace", value=b"\xff"))),
    odd("non_utf8_header", *E905, one(headers=header("delivery", value=b"\xff\xfe"))),
    odd(
        "header_of_a_negative_byte",
        *E905,
        one(None, headers=header("idempotency-key", value=b"\xe9")),
    ),
    odd("empty_header", *E905, one(None, headers=header("idempotency-key", value=b""))),
    odd("no_time", *E905, [kafka_record() | {"timestamp": -1, "timestampType": "NoTimestampType"}]),
    odd("time_within_the_hour_ahead", *G_1, one(sent_ms=START_MS + 3_605_000)),
    odd("time_too_far_ahead", *E905, one(sent_ms=START_MS + 3_605_001)),
    odd("time_too_old", [], ["E907"], one(sent_ms=START_MS - 29 * 86_400_000)),
    odd("value_that_is_no_base64", *E905, [kafka_record() | {"value": "%"}]),
    odd("the_hubs_own_mark", *G_1, one(headers=header("relayhub-accepted", value=b"1"))),
    odd("no_headers_at_all", *E905, [{k: v for k, v in kafka_record().items() if k != "headers"}]),
    odd("binary_value", *G_1, one(value=bytes(range(256)))),
]


@pytest.mark.parametrize(("partitions", "settings", "outcome"), ODDITIES)
@pytest.mark.parametrize("parts", [False, True], ids=["whole", "parts"])
def test_an_oddity_has_one_outcome_and_no_crash_loop(
    make_world: Callable[..., World],
    partitions: tuple[list[dict[str, Any]], ...],
    settings: dict[str, Any],
    outcome: Outcome,
    *,
    parts: bool,
) -> None:
    """Delivered twice, nothing is executed or recorded that was not; what follows goes on."""
    world = make_world(kafka_partial_batches=parts, **settings)
    event = kafka_event(*[[*records, NEXT] for records in partitions], first=5)
    executed, aside = outcome
    for _ in range(2):
        assert deliver(world, event) == []
        assert [each.guid for each in world.core.sent if each.guid != "G-9"] == executed
        assert [each["code"] for each in put_aside(world)] == aside
        assert [each.guid for each in world.core.sent].count("G-9") == 1
    places = [facts for what, facts in world.notes if what == "message_rejected"]
    assert {each["topic"] for each in places} <= {TOPIC}


def test_a_headers_bytes_are_read_as_the_platform_writes_them(world: World) -> None:
    """Numbers with a sign: what is not UTF-8 is told as such, and what is, is not."""
    wrong = [
        kafka_record(headers=header("delivery", value=each)) for each in (b"\xff\xfe", b"\xc3\xa9")
    ]
    assert deliver(world, kafka_event(wrong)) == []
    told = [each["reason"] for each in put_aside(world)]
    assert ["not UTF-8" in reason for reason in told] == [True, False]

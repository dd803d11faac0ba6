"""Which GUID a message has: its header's, its body's, or its key's where a setting says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.message_event_kit import (
    KEY,
    SETTINGS,
    UUID,
    WITH_KEY,
    Raw,
    asked_of,
    by_kafka,
    by_sqs,
    fault_of,
    kafka_one,
    request_of,
    sqs_one,
)

KEYED = replace(SETTINGS, kafka_key_is_guid=True)
WITH_GUID = '{"guid":"G-2","amount":1}'
MISSING = "The GUID is missing: send the Idempotency-Key header"


@pytest.mark.parametrize(
    ("event", "guid"),
    [
        pytest.param(sqs_one(WITH_KEY), "G-1", id="header"),
        pytest.param(sqs_one({}, WITH_GUID), "G-2", id="body"),
        pytest.param(sqs_one({KEY: "G-2"}, WITH_GUID), "G-2", id="both"),
        pytest.param(sqs_one({KEY: '"G-1"'}), "G-1", id="quoted"),
        pytest.param(sqs_one({KEY.upper(): "G-1"}), "G-1", id="upper_case_name"),
        pytest.param(sqs_one({"Idempotency-Key": UUID.upper()}), UUID, id="folded"),
        pytest.param(sqs_one({KEY: b"G-1"}), "G-1", id="binary_attribute"),
    ],
)
def test_a_message_of_sqs_has_its_headers_guid_or_its_bodys(event: Raw, guid: str) -> None:
    """An attribute is a header, by whatever case and in either type."""
    assert request_of(asked_of(event)).guid == guid


@pytest.mark.parametrize(
    ("event", "guid"),
    [
        pytest.param(kafka_one(), "G-1", id="header"),
        pytest.param(kafka_one((), WITH_GUID.encode()), "G-2", id="body"),
        pytest.param(kafka_one([(KEY, b"G-2")], WITH_GUID.encode()), "G-2", id="both"),
        pytest.param(kafka_one([("IDEMPOTENCY-Key", b"G-1")]), "G-1", id="upper_case_name"),
        pytest.param(kafka_one([(KEY, UUID.upper().encode())]), UUID, id="folded"),
    ],
)
def test_a_record_of_kafka_has_its_headers_guid_or_its_bodys(event: Raw, guid: str) -> None:
    """By the same rules as a request by HTTP."""
    assert request_of(asked_of(event)).guid == guid


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(sqs_one(WITH_KEY, WITH_GUID), id="sqs"),
        pytest.param(kafka_one([(KEY, b"G-1")], WITH_GUID.encode()), id="kafka"),
        pytest.param(kafka_one([(KEY, b"G-1")], WITH_GUID.encode(), b"G-1"), id="with_a_key"),
    ],
)
def test_a_header_and_a_body_that_differ_are_refused(event: Raw) -> None:
    """Neither is believed, nor does the key decide."""
    assert "The Idempotency-Key header and the body's guid differ" in fault_of(
        asked_of(event, KEYED)
    )


def test_an_account_as_key_is_not_taken_for_a_guid() -> None:
    """Its second payment would pass for a duplicate; a setting alone makes a key a GUID."""
    assert MISSING in fault_of(by_kafka((), key=b"account-1"))
    assert request_of(by_kafka(key=b"account-1")).guid == "G-1"
    assert request_of(by_kafka((), WITH_GUID.encode(), b"account-1")).guid == "G-2"


@pytest.mark.parametrize(
    ("key", "guid"),
    [
        pytest.param(b"r1001", "r1001", id="as_it_is"),
        pytest.param(UUID.upper().encode(), UUID, id="folded"),
        pytest.param(b"a" * 128, "a" * 128, id="128_characters"),
    ],
)
def test_a_key_is_the_guid_where_the_setting_says_so(key: bytes, guid: str) -> None:
    """In the one spelling that it would have anywhere else."""
    assert request_of(by_kafka((), key=key, settings=KEYED)).guid == guid


def test_a_key_that_is_the_guid_leaves_the_body_alone() -> None:
    """As with a header: it need not be JSON."""
    request = request_of(by_kafka((), b"\x00 0200", b"r1001", settings=KEYED))
    assert (request.guid, request.body) == ("r1001", b"\x00 0200")
    assert request.content_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("headers", "value", "guid"),
    [
        pytest.param([(KEY, b"G-1")], b'{"amount":1}', "G-1", id="header"),
        pytest.param([], WITH_GUID.encode(), "G-2", id="body"),
    ],
)
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(b"r1001", id="another_guid"),
        pytest.param(b"\xff\xfe", id="not_utf_8"),
        pytest.param(b"", id="empty"),
        pytest.param(b"a b", id="no_guid"),
        pytest.param(None, id="null"),
    ],
)
def test_a_header_or_a_body_comes_before_the_key(
    headers: Any, value: bytes, guid: str, key: bytes | None
) -> None:
    """Whatever the key is: it is not needed, so it is not read."""
    assert request_of(by_kafka(headers, value, key, settings=KEYED)).guid == guid


@pytest.mark.parametrize(
    ("key", "says"),
    [
        pytest.param(None, MISSING, id="null"),
        pytest.param(b"", "The record's key is empty", id="empty"),
        pytest.param(b"\xff\xfe", "The record's key is not UTF-8 text", id="not_utf_8"),
        pytest.param("ä1".encode(), "The record's key holds a character outside ASCII", id="utf_8"),
        pytest.param(b"a b", "The record's key holds a character that is not", id="space"),
        pytest.param(b"!gate", "The record's key holds a character that is not", id="own_row"),
        pytest.param(b"a\n", "The record's key holds a line break at place 2", id="line_break"),
        pytest.param(b"a" * 129, "The record's key is longer than 128", id="129_characters"),
        pytest.param(b"-a", "The record's key does not start with", id="dash_in_front"),
        pytest.param(b'"r1001"', "The record's key holds a character that", id="quoted"),
        pytest.param(b"\x00\x00\x03\xe9", "The record's key is not UTF-8 text", id="binary_number"),
    ],
)
def test_a_key_that_is_needed_and_no_guid_is_refused(key: bytes | None, says: str) -> None:
    """Each by its own sentence; nothing is made of a part of it."""
    assert says in fault_of(by_kafka((), key=key, settings=KEYED))


def test_a_key_that_is_not_utf_8_harms_nothing_where_keys_are_no_guids() -> None:
    """It is the producer's own business then."""
    assert request_of(by_kafka(key=b"\xff\xfe")).guid == "G-1"
    assert MISSING in fault_of(by_kafka((), key=b"\xff\xfe"))


def test_the_setting_says_nothing_of_sqs() -> None:
    """A message there has no key."""
    assert MISSING in fault_of(by_sqs({}, key="cjEwMDE=", settings=KEYED))

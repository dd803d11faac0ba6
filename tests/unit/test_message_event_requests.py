"""What a message asks for beside its GUID: operation, channel, validity, its bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from relayhub.message import Submission, fingerprint
from relayhub.states import Delivery
from tests.unit.message_event_kit import (
    BODY,
    KEY,
    QUEUE,
    SENT_MS,
    SETTINGS,
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

OPERATED = replace(
    SETTINGS,
    source_operations=(("kafka:receipts", "receipt"), (f"sqs:{QUEUE}", "transfer")),
)


def test_a_message_of_sqs_is_read_whole() -> None:
    """Everything that the row and the core need is in the request, the bytes untouched."""
    body = ' {"amount": 1.00, "to": "取引"}\n'
    headers: dict[str, str | bytes] = {
        "Idempotency-Key": "G-1",
        "X-Operation": "transfer",
        "Content-Type": "application/json; charset=utf-8",
        "Delivery": "interactive",
        "Valid-Until": "2030-01-01T00:00:00Z",
    }
    assert request_of(by_sqs(headers, body)) == Submission(
        guid="G-1",
        channel=f"sqs:{QUEUE}",
        operation="transfer",
        body=body.encode(),
        content_type="application/json; charset=utf-8",
        fingerprint=fingerprint("transfer", body.encode(), "body"),
        scheme="body",
        delivery=Delivery.INTERACTIVE,
        valid_until_ms=1_893_456_000_000,
        sent_ms=SENT_MS,
    )


@pytest.mark.parametrize("source", ["aws:kafka", "SelfManagedKafka"])
def test_a_record_of_kafka_is_read_whole(source: str) -> None:
    """By either kind of broker."""
    headers = [
        (KEY, b"G-1"),
        ("x-operation", b"receipt"),
        ("content-type", b"application/octet-stream"),
        ("delivery", b"Deferred"),
        ("valid-until", b"2030-01-01T00:00:00Z"),
    ]
    value = bytes(range(256))
    event = {**kafka_one(headers, value), "eventSource": source}
    assert request_of(asked_of(event)) == Submission(
        guid="G-1",
        channel="kafka:receipts",
        operation="receipt",
        body=value,
        content_type="application/octet-stream",
        fingerprint=fingerprint("receipt", value, "body"),
        scheme="body",
        delivery=Delivery.DEFERRED,
        valid_until_ms=1_893_456_000_000,
        sent_ms=SENT_MS,
    )


@pytest.mark.parametrize(
    ("event", "operation"),
    [
        pytest.param(kafka_one(), "receipt", id="kafka_absent"),
        pytest.param(
            kafka_one([(KEY, b"G-1"), ("x-operation", b"receipt")]), "receipt", id="kafka_equal"
        ),
        pytest.param(sqs_one(), "transfer", id="sqs_absent"),
        pytest.param(sqs_one({**WITH_KEY, "X-Operation": "transfer"}), "transfer", id="sqs_equal"),
        pytest.param(kafka_one(topic="refunds"), "", id="another_topic_absent"),
        pytest.param(
            kafka_one([(KEY, b"G-1"), ("x-operation", b"refund")], topic="refunds"),
            "refund",
            id="another_topic",
        ),
    ],
)
def test_a_source_has_its_operation(event: Raw, operation: str) -> None:
    """A header may repeat it; a source without one has its messages say it, or none."""
    request = request_of(asked_of(event, OPERATED))
    assert request.operation == operation
    assert request.fingerprint == fingerprint(operation, BODY.encode(), "body")


@pytest.mark.parametrize(
    ("event", "operation"),
    [
        pytest.param(kafka_one([(KEY, b"G-1"), ("x-operation", b"Receipt")]), "receipt", id="case"),
        pytest.param(
            kafka_one([(KEY, b"G-1"), ("x-operation", b"refund")]), "receipt", id="kafka_another"
        ),
        pytest.param(sqs_one({**WITH_KEY, "x-operation": "receipt"}), "transfer", id="sqs_another"),
    ],
)
def test_a_source_takes_no_other_operation(event: Raw, operation: str) -> None:
    """The refusal names the source's own, not what was sent."""
    fault = fault_of(asked_of(event, OPERATED))
    assert f"X-Operation differs from what this source is for, {operation}:" in fault
    assert "efund" not in fault


@pytest.mark.parametrize("settings", [SETTINGS, OPERATED], ids=["free", "of_the_source"])
def test_an_operation_that_is_none_is_refused(settings: Any) -> None:
    """Whether the source has one or not."""
    fault = fault_of(by_sqs({**WITH_KEY, "x-operation": "a b"}, settings=settings))
    assert "X-Operation must be 1 to 64" in fault


def test_a_channel_is_its_source_unless_a_setting_names_it() -> None:
    """Several sources may be one channel: a queue as the fallback of a topic, say."""
    names = (("kafka:receipts", "branch"), (f"sqs:{QUEUE}", "branch"))
    mapped = replace(SETTINGS, channel_names=names)
    assert request_of(by_kafka()).channel == "kafka:receipts"
    assert request_of(by_sqs()).channel == f"sqs:{QUEUE}"
    assert request_of(by_kafka(settings=mapped)).channel == "branch"
    assert request_of(by_sqs(settings=mapped)).channel == "branch"
    assert request_of(by_kafka(topic="refunds", settings=mapped)).channel == "kafka:refunds"


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(sqs_one({**WITH_KEY, "valid-until": "2026-01-01T00:00:00Z"}), id="sqs"),
        pytest.param(
            kafka_one([(KEY, b"G-1"), ("valid-until", b"2026-01-01T00:00:00Z")]), id="kafka"
        ),
    ],
)
def test_a_message_that_is_over_keeps_its_request(event: Raw) -> None:
    """So that its row is still answered if it has one; the fault keeps it from being claimed."""
    asked = asked_of(event)
    assert "Valid-Until has passed" in asked.fault
    assert asked.request is not None
    assert asked.guid == asked.request.guid == "G-1"
    assert asked.request.sent_ms == SENT_MS


def test_the_largest_body_is_the_settings() -> None:
    """Counted in bytes, base64 taken off; the limit itself is allowed."""
    small = replace(SETTINGS, body_bytes_max=6)
    assert request_of(by_sqs(WITH_KEY, "取引", settings=small)).body == "取引".encode()
    assert request_of(by_kafka(value=b"123456", settings=small)).body == b"123456"
    says = "The body has 7 bytes; at most 6 are taken"
    assert says in fault_of(by_sqs(WITH_KEY, "取引1", settings=small))
    assert says in fault_of(by_kafka(value=b"1234567", settings=small))


def test_the_fields_that_are_compared_are_the_settings() -> None:
    """As they are for a request by HTTP."""
    ruled = replace(SETTINGS, fingerprint_fields=("/amount",))
    for request in (request_of(by_sqs(settings=ruled)), request_of(by_kafka(settings=ruled))):
        assert request.scheme == "fields:/amount"
        assert request.fingerprint == fingerprint("", BODY.encode(), "fields:/amount")


@pytest.mark.parametrize("delivery", list(Delivery))
def test_a_message_is_deferred_whatever_the_setting_is(delivery: Delivery) -> None:
    """Nobody waits at a queue to send it again; its own header alone may say otherwise."""
    ruled = replace(SETTINGS, delivery=delivery)
    for request in (request_of(by_sqs(settings=ruled)), request_of(by_kafka(settings=ruled))):
        assert request.delivery is Delivery.DEFERRED
    headers = {**WITH_KEY, "delivery": "interactive"}
    assert request_of(by_sqs(headers, settings=ruled)).delivery is Delivery.INTERACTIVE


def test_a_text_that_was_mangled_is_refused_by_sqs_alone() -> None:
    """U+FFFD in a text stands for bytes that are lost; what came as bytes is what was sent."""
    text = "振込\ufffd"
    assert "The body was mangled on the way" in fault_of(by_sqs(WITH_KEY, text))
    assert request_of(by_kafka(value=text.encode())).body == text.encode()


@pytest.mark.parametrize("body", [None, ""])
def test_a_message_without_a_body_is_refused(body: Any) -> None:
    """There is nothing to send to the core."""
    assert "The body is empty" in fault_of(by_sqs(WITH_KEY, body))


def test_a_text_that_has_no_bytes_is_refused() -> None:
    """A lone surrogate is no character."""
    assert "The body is not text" in fault_of(by_sqs(WITH_KEY, "a\ud800"))


@pytest.mark.parametrize("value", [None, b""], ids=["null", "empty"])
@pytest.mark.parametrize("key", [b"r1001", None], ids=["key", "no_key"])
def test_a_tombstone_is_refused(value: Any, key: Any) -> None:
    """It deletes in a compacted topic; there is nothing in it to send to the core."""
    keyed = replace(SETTINGS, kafka_key_is_guid=True)
    for settings in (SETTINGS, keyed):
        assert "The body is empty" in fault_of(by_kafka(value=value, key=key, settings=settings))


def test_a_record_without_the_field_is_a_tombstone_too() -> None:
    """The platform leaves out what is null."""
    event = kafka_one()
    del event["records"]["receipts-0"][0]["value"]
    assert "The body is empty" in fault_of(asked_of(event))


@pytest.mark.parametrize("held", ["%%%", "AA", "QUJ D", "ÄÄÄÄ", 7, ["QQ=="], {}])
def test_what_is_not_base64_did_not_arrive(held: Any) -> None:
    """Never decoded halfway; a key is decoded only where it may be the GUID."""
    keyed = replace(SETTINGS, kafka_key_is_guid=True)
    assert "The record's value did not arrive whole" in fault_of(by_kafka(value=held))
    assert "The record's key did not arrive whole" in fault_of(
        by_kafka((), key=held, settings=keyed)
    )
    assert request_of(by_kafka(key=held)).guid == "G-1"

"""What the tests of message events share: records as the platform shows them, and their reading."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from relayhub.message import Submission
from relayhub.message_event import Asked, read, read_batch
from relayhub.settings import Settings, load
from tests.environment import ENVIRONMENT

NOW_MS: Final = 1_800_000_000_000
SENT_MS: Final = NOW_MS - 60_000
QUEUE: Final = "relayhub-intake"
TOPIC: Final = "receipts"
SETTINGS: Final = load(ENVIRONMENT)
BODY: Final = '{"amount":1}'
_BODY_BYTES: Final = BODY.encode()
KEY: Final = "idempotency-key"
WITH_KEY: Final = {KEY: "G-1"}
UUID: Final = "3f2b8c1e-7d4a-4e0b-9a5c-0123456789ab"

Raw = dict[str, Any]


def coded(data: bytes) -> str:
    """Return bytes as an event has them."""
    return base64.b64encode(data).decode()


def attribute(value: str | bytes) -> Raw:
    """Return a message attribute of SQS: text is a String, bytes are a Binary."""
    lists: Raw = {"stringListValues": [], "binaryListValues": []}
    if isinstance(value, bytes):
        return {"binaryValue": coded(value), **lists, "dataType": "Binary"}
    return {"stringValue": value, **lists, "dataType": "String"}


def sqs_raw(
    headers: Mapping[str, str | bytes] = WITH_KEY, /, body: Any = BODY, **other: Any
) -> Raw:
    """Return one record of SQS; `other` replaces what it is made of."""
    return {
        "messageId": "m-1",
        "receiptHandle": "AQEB",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": str(SENT_MS)},
        "messageAttributes": {name: attribute(value) for name, value in headers.items()},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{QUEUE}",
        "awsRegion": "eu-west-1",
        **other,
    }


def signed(value: bytes | None) -> list[int] | None:
    """Return a header's bytes as the platform writes them: as Java's, which have a sign."""
    return None if value is None else [each - 256 if each > 127 else each for each in value]


def kafka_raw(
    headers: Sequence[tuple[str, bytes | None]] = ((KEY, b"G-1"),),
    /,
    value: Any = _BODY_BYTES,
    key: Any = None,
    **other: Any,
) -> Raw:
    """Return one record of Kafka, at offset 7 of partition 0; `other` replaces what it has."""
    return {
        "topic": TOPIC,
        "partition": 0,
        "offset": 7,
        "timestamp": SENT_MS,
        "timestampType": "CREATE_TIME",
        "key": coded(key) if isinstance(key, bytes) else key,
        "value": coded(value) if isinstance(value, bytes) else value,
        "headers": [{name: signed(held)} for name, held in headers],
        **other,
    }


def sqs_event(*raws: Raw) -> Raw:
    """Return an event of SQS."""
    return {"Records": list(raws)}


def kafka_event(*raws: Raw, source: str = "aws:kafka") -> Raw:
    """Return an event of Kafka; each record stands under its own topic and partition."""
    placed: dict[str, list[Raw]] = {}
    for raw in raws:
        placed.setdefault(f"{raw['topic']}-{raw['partition']}", []).append(raw)
    return {"eventSource": source, "bootstrapServers": "broker.example:9092", "records": placed}


def sqs_one(*args: Any, **other: Any) -> Raw:
    """Return an event of SQS with one such message."""
    return sqs_event(sqs_raw(*args, **other))


def kafka_one(*args: Any, **other: Any) -> Raw:
    """Return an event of Kafka with one such record."""
    return kafka_event(kafka_raw(*args, **other))


def asked_of(event: Raw, settings: Settings = SETTINGS) -> Asked:
    """Return what the event's only record asks for at `NOW_MS`."""
    (record,) = read_batch(event, settings).records
    return read(record, settings, NOW_MS)


def by_sqs(*args: Any, settings: Settings = SETTINGS, **other: Any) -> Asked:
    """Return what such a message of SQS asks for."""
    return asked_of(sqs_one(*args, **other), settings)


def by_kafka(*args: Any, settings: Settings = SETTINGS, **other: Any) -> Asked:
    """Return what such a record of Kafka asks for."""
    return asked_of(kafka_one(*args, **other), settings)


def request_of(asked: Asked) -> Submission:
    """Return the request, which nothing is wrong with."""
    assert (asked.fault, asked.request is None) == ("", False)
    assert asked.request is not None
    assert asked.request.guid == asked.guid
    return asked.request


def fault_of(asked: Asked) -> str:
    """Return why nothing can be made of the record."""
    assert asked.fault
    assert (asked.guid, asked.request) == (None, None)
    return asked.fault

"""Events of SQS and Kafka: which records are in them, by which name each comes again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from relayhub.message_event import (
    Batch,
    Record,
    UnknownEventError,
    contents,
    partial_answer,
    read_batch,
)
from tests.events import post_event
from tests.unit.message_event_kit import (
    KEY,
    QUEUE,
    SETTINGS,
    TOPIC,
    WITH_KEY,
    Raw,
    attribute,
    coded,
    kafka_event,
    kafka_one,
    kafka_raw,
    sqs_event,
    sqs_one,
    sqs_raw,
)

PARTIAL = replace(SETTINGS, kafka_partial_batches=True)
ARN = "arn:aws:sqs:eu-west-1:123456789012"


def only(event: Raw) -> Record:
    """Return the event's only record."""
    (record,) = read_batch(event, SETTINGS).records
    return record


def test_a_message_of_sqs_is_named_by_its_id() -> None:
    """Its source is its queue; a standard queue has no order."""
    raw = sqs_raw(messageId="m-9")
    assert only(sqs_event(raw)) == Record(
        source=f"sqs:{QUEUE}",
        origin={"source": "sqs", "queue": QUEUE, "message_id": "m-9"},
        identifier="m-9",
        lane=None,
        raw=raw,
    )


def test_a_fifo_queue_is_one_lane() -> None:
    """Lambda asks for it: after the first one that is not taken, nothing of the batch is."""
    raw = sqs_raw(eventSourceARN=f"{ARN}:payments.fifo")
    record = only(sqs_event(raw))
    assert (record.source, record.lane) == ("sqs:payments.fifo", "payments.fifo")


@pytest.mark.parametrize("source", ["aws:kafka", "SelfManagedKafka"])
def test_a_record_of_kafka_is_named_by_partition_and_offset(source: str) -> None:
    """By the event's own name of the partition, which is the record's lane too."""
    raw = kafka_raw(partition=3, offset=41)
    assert only(kafka_event(raw, source=source)) == Record(
        source=f"kafka:{TOPIC}",
        origin={"source": "kafka", "topic": TOPIC, "partition": 3, "offset": 41},
        identifier={"partition": f"{TOPIC}-3", "offset": 41},
        lane=f"{TOPIC}-3",
        raw=raw,
    )


def test_several_partitions_keep_their_own_order() -> None:
    """One call may hold several; each record has the lane of its own."""
    raws = [kafka_raw(partition=at, offset=offset) for at, offset in ((0, 7), (1, 2), (0, 8))]
    records = read_batch(kafka_event(*raws), SETTINGS).records
    assert [(each.lane, each.identifier["offset"]) for each in records] == [
        ("receipts-0", 7),
        ("receipts-0", 8),
        ("receipts-1", 2),
    ]


def test_several_topics_are_several_sources() -> None:
    """A partition's name has its topic in it."""
    event = kafka_event(kafka_raw(), kafka_raw(topic="a-b"))
    records = read_batch(event, SETTINGS).records
    assert [(each.source, each.lane) for each in records] == [
        ("kafka:receipts", "receipts-0"),
        ("kafka:a-b", "a-b-0"),
    ]


def test_the_messages_of_sqs_keep_the_events_order() -> None:
    """As they came."""
    raws = [sqs_raw(messageId=name) for name in ("m-2", "m-1", "m-3")]
    records = read_batch(sqs_event(*raws), SETTINGS).records
    assert [each.identifier for each in records] == ["m-2", "m-1", "m-3"]


@pytest.mark.parametrize(
    ("event", "settings", "takes_part"),
    [
        pytest.param(sqs_one(), SETTINGS, True, id="sqs"),
        pytest.param(kafka_one(), SETTINGS, False, id="kafka"),
        pytest.param(kafka_one(), PARTIAL, True, id="kafka_by_the_setting"),
        pytest.param(
            kafka_event(kafka_raw(), source="SelfManagedKafka"), PARTIAL, True, id="self_managed"
        ),
    ],
)
def test_a_source_takes_a_partial_answer_or_none(
    event: Raw, settings: Any, *, takes_part: bool
) -> None:
    """SQS always does here; Kafka only where the setting says that its source has it on."""
    assert read_batch(event, settings).takes_part is takes_part


def test_an_event_without_records_is_an_empty_batch() -> None:
    """Nothing failed in it."""
    assert read_batch({"Records": []}, SETTINGS) == Batch((), takes_part=True)
    assert read_batch(kafka_event(), SETTINGS) == Batch((), takes_part=False)
    empty = {"eventSource": "aws:kafka", "records": {"receipts-0": []}}
    assert read_batch(empty, SETTINGS).records == ()


def sqs_without(name: str) -> Raw:
    """Return an event of SQS whose second message lacks a field."""
    raw = sqs_raw()
    del raw[name]
    return sqs_event(sqs_raw(), raw)


def kafka_without(name: str) -> Raw:
    """Return an event of Kafka whose second record lacks a field."""
    raw = kafka_raw()
    event = kafka_event(kafka_raw(), raw)
    del raw[name]
    return event


SNS: Raw = {"EventSource": "aws:sns", "Sns": {"MessageId": "m-1", "Message": "{}"}}
UNKNOWN: list[Any] = [
    pytest.param(None, id="none"),
    pytest.param([], id="list"),
    pytest.param("Records", id="text"),
    pytest.param({}, id="empty"),
    pytest.param(post_event(), id="http"),
    pytest.param({"source": "aws.scheduler", "detail": {}, "resources": []}, id="scheduler"),
    pytest.param({"dry_run": True}, id="by_hand"),
    pytest.param(sqs_event(SNS), id="sns"),
    pytest.param(sqs_one(eventSource="aws:s3"), id="s3"),
    pytest.param(sqs_event(sqs_raw(), sqs_raw(eventSource="aws:kafka")), id="mixed"),
    pytest.param({"Records": None}, id="records_null"),
    pytest.param({"Records": {}}, id="records_an_object"),
    pytest.param({"Records": ""}, id="records_a_text"),
    pytest.param({"Records": 7}, id="records_a_number"),
    pytest.param({"Records": [None]}, id="record_null"),
    pytest.param({"Records": ["aws:sqs"]}, id="record_a_text"),
    pytest.param({"Records": [[sqs_raw()]]}, id="record_a_list"),
    pytest.param({"eventSource": "aws:sqs", "records": {}}, id="records_by_another_name"),
    pytest.param({"eventSource": ["aws:kafka"], "records": {}}, id="source_a_list"),
    pytest.param({**sqs_one(), "eventSource": "aws:kafka"}, id="kafka_with_sqs_records"),
    pytest.param({"eventSource": "aws:kafka", "records": []}, id="partitions_a_list"),
    pytest.param({"eventSource": "aws:kafka", "records": None}, id="partitions_null"),
    pytest.param({"eventSource": "aws:kafka", "records": {"t-0": None}}, id="partition_null"),
    pytest.param({"eventSource": "aws:kafka", "records": {"t-0": {}}}, id="partition_an_object"),
    pytest.param({"eventSource": "aws:kafka", "records": {"t-0": ""}}, id="partition_a_text"),
    pytest.param({"eventSource": "aws:kafka", "records": {"t-0": [None]}}, id="offset_unknown"),
    pytest.param(kafka_one(offset=None), id="offset_null"),
    pytest.param(kafka_one(offset="x"), id="offset_a_text"),
    pytest.param(kafka_one(offset=7.5), id="offset_a_fraction"),
    pytest.param(kafka_one(offset=float("inf")), id="offset_infinite"),
    pytest.param(kafka_one(partition=0.5), id="partition_a_fraction"),
    *(
        pytest.param(sqs_without(name), id=f"without_{name}")
        for name in ("messageId", "eventSource", "eventSourceARN")
    ),
    *(
        pytest.param(kafka_without(name), id=f"without_{name}")
        for name in ("topic", "partition", "offset")
    ),
]


@pytest.mark.parametrize("event", UNKNOWN)
def test_an_event_that_does_not_name_its_records_fails_whole(event: Any) -> None:
    """An answer to it would pass for "all taken"; the error says what to connect."""
    with pytest.raises(UnknownEventError, match="connect the function to such sources only"):
        read_batch(event, SETTINGS)


def test_an_unknown_event_is_not_repeated() -> None:
    """An error's text gets into logs, and what is in the event is nobody's business there."""
    with pytest.raises(UnknownEventError) as caught:
        read_batch({"Records": [{"4111111111111111": "4111111111111111"}]}, SETTINGS)
    assert "4111" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_answer_names_what_comes_again() -> None:
    """A message by its id, a record of Kafka by an object; none means that all are taken."""
    of_sqs = only(sqs_one(messageId="m-2"))
    of_kafka = only(kafka_one(partition=1, offset=100))
    assert partial_answer([]) == {"batchItemFailures": []}
    assert partial_answer([of_sqs]) == {"batchItemFailures": [{"itemIdentifier": "m-2"}]}
    assert partial_answer([of_kafka, of_kafka]) == {
        "batchItemFailures": [{"itemIdentifier": {"partition": "receipts-1", "offset": 100}}] * 2
    }


@pytest.mark.parametrize(
    ("event", "is_keyed"),
    [
        pytest.param(kafka_one(key=b"account-1"), True, id="key"),
        pytest.param(kafka_one(key=b""), True, id="empty_key"),
        pytest.param(kafka_one(key=None), False, id="null_key"),
        pytest.param(sqs_one(), False, id="sqs"),
        pytest.param(sqs_one(key="G-1"), False, id="sqs_with_such_a_field"),
    ],
)
def test_a_key_is_what_kafka_orders_by(event: Raw, *, is_keyed: bool) -> None:
    """An empty one is a key like any other; null is none."""
    assert only(event).is_keyed is is_keyed


def test_what_is_put_aside_is_the_record_as_it_came() -> None:
    """Headers that do not count are in it too, and bytes stay in base64."""
    message = only(sqs_one({**WITH_KEY, "trace": b"\xff"}, body="取引"))
    assert contents(message) == {
        "headers": {KEY: attribute("G-1"), "trace": attribute(b"\xff")},
        "body": "取引",
    }
    raw = kafka_raw([(KEY, b"G-1"), ("trace", b"\xff")], value=b"\x00\xff", key=b"\xfe")
    assert contents(only(kafka_event(raw))) == {
        "headers": [{KEY: [71, 45, 49]}, {"trace": [-1]}],
        "key": coded(b"\xfe"),
        "body_base64": coded(b"\x00\xff"),
    }


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            kafka_one((), value=None),
            {"headers": [], "key": None, "body_base64": None},
            id="tombstone",
        ),
        pytest.param(
            kafka_event(
                {"topic": TOPIC, "partition": 0, "offset": 0},
            ),
            {"headers": None, "key": None, "body_base64": None},
            id="bare_record",
        ),
        pytest.param(
            sqs_event(
                {"eventSource": "aws:sqs", "messageId": "m-1", "eventSourceARN": f"{ARN}:{QUEUE}"}
            ),
            {"headers": None, "body": None},
            id="bare_message",
        ),
    ],
)
def test_a_record_that_holds_nothing_can_be_put_aside(event: Raw, expected: Raw) -> None:
    """What it lacks is null."""
    found = contents(only(event))
    assert found == expected
    assert json.loads(json.dumps(found)) == expected

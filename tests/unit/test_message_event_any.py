"""Records of any shape: each is read or refused, and no refusal repeats what was sent."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayhub.message_event import Asked, UnknownEventError, contents, read, read_batch
from tests.unit.message_event_kit import (
    BODY,
    KEY,
    NOW_MS,
    QUEUE,
    SENT_MS,
    SETTINGS,
    TOPIC,
    WITH_KEY,
    Raw,
    asked_of,
    attribute,
    coded,
    fault_of,
    kafka_one,
    sqs_event,
    sqs_one,
)

ACCEPTED = "relayhub-accepted"
SECRET = "4111111111111111"
STRICT = replace(
    SETTINGS, kafka_key_is_guid=True, source_operations=((f"sqs:{QUEUE}", "transfer"),)
)
LEAKS: list[Raw] = [
    *(
        sqs_one({**WITH_KEY, name: f"{SECRET} \xe9"})
        for name in (KEY, "x-operation", "content-type", "delivery", "valid-until", "first-sent-at")
    ),
    *(
        kafka_one([(KEY, b"G-1"), (name, SECRET.encode() + b"\xff")])
        for name in (KEY, "x-operation", "content-type", "delivery", "valid-until")
    ),
    sqs_one({**WITH_KEY, "x-operation": SECRET}),
    sqs_one({}, f'{{"guid":"{SECRET}!"}}'),
    sqs_one({}, f'{{"{SECRET}":1,}}'),
    sqs_one({}, SECRET),
    sqs_one(WITH_KEY, f'{{"guid":"{SECRET}"}}'),
    sqs_one(WITH_KEY, f"{SECRET}\ufffd"),
    sqs_one(WITH_KEY, f"{SECRET}\ud800"),
    sqs_one({ACCEPTED: "1"}, f'{{"guid":"{SECRET} "}}'),
    sqs_one({ACCEPTED: "1"}, SECRET + "}"),
    sqs_one(attributes={"SentTimestamp": SECRET}),
    sqs_one(messageAttributes={KEY: {"binaryValue": SECRET + "%"}}),
    sqs_one(messageAttributes=[SECRET]),
    sqs_one({**WITH_KEY, KEY.title(): SECRET}),
    kafka_one((), key=SECRET.encode() + b" "),
    kafka_one((), key=SECRET.encode() + b"\xff"),
    kafka_one((), key=SECRET + "%"),
    kafka_one(value=SECRET + "%"),
    kafka_one(timestamp=SECRET),
    kafka_one(headers=[SECRET]),
]


@pytest.mark.parametrize("event", LEAKS, ids=[str(at) for at in range(len(LEAKS))])
def test_no_fault_repeats_what_was_sent(event: Raw) -> None:
    """It gets into the log; whoever looks at what was put aside has the record itself."""
    assert "4111" not in fault_of(asked_of(event, STRICT))


# What JSON can hold, lone surrogates and what is no number included.
TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([KEY, KEY.title(), "x-operation", "content-type", "delivery"])
MARKS = st.sampled_from(["valid-until", "first-sent-at", ACCEPTED, "trace"])
TEXTS = st.sampled_from(["G-1", "a b", "transfer", "text/plain", "deferred", "1", ""])
BODIES = st.sampled_from([BODY, '{"guid":"G-1"}', '{"guid":', "0200", "", "\ufffd"])
TIMES = st.sampled_from([str(SENT_MS), SENT_MS, "0", NOW_MS, -1])
ARNS = st.sampled_from([f"arn:aws:sqs:eu-west-1:1:{QUEUE}", "a.fifo"])


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return what is mostly as it should be; else few examples would get past the first fault."""
    return st.sampled_from([good] * 7 + [ANYTHING]).flatmap(lambda chosen: chosen)


def record_of(
    named: dict[str, st.SearchStrategy[Any]], parts: dict[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[Raw]:
    """Return records that bear their names; of the rest all, or some."""
    return st.fixed_dictionaries(named | parts) | st.fixed_dictionaries(named, optional=parts)


HEADER = TEXTS.map(lambda text: list(text.encode())) | st.lists(st.integers(-128, 255), max_size=9)
SQS = record_of(
    {"eventSource": st.just("aws:sqs"), "messageId": TEXT, "eventSourceARN": mostly(ARNS)},
    {
        "body": mostly(BODIES),
        "attributes": mostly(st.fixed_dictionaries({"SentTimestamp": mostly(TIMES)})),
        "messageAttributes": mostly(
            st.dictionaries(
                NAMES | MARKS | TEXT,
                mostly(TEXTS.map(attribute) | st.binary(max_size=9).map(attribute)),
                max_size=3,
            )
        ),
    },
)
KAFKA = record_of(
    {
        "topic": mostly(st.just(TOPIC)),
        "partition": st.integers(0, 3),
        "offset": st.integers(0, 2**63),
    },
    {
        "timestamp": mostly(TIMES),
        "key": mostly(st.none() | TEXTS.map(str.encode).map(coded)),
        "value": mostly(BODIES.map(str.encode).map(coded)),
        "headers": mostly(
            st.lists(st.dictionaries(NAMES | MARKS | TEXT, mostly(HEADER), max_size=1), max_size=3)
        ),
    },
)
EVENTS = mostly(
    st.fixed_dictionaries({"Records": mostly(st.lists(mostly(SQS | KAFKA), max_size=2))})
    | st.fixed_dictionaries(
        {
            "eventSource": mostly(st.sampled_from(["aws:kafka", "SelfManagedKafka"])),
            "records": mostly(
                st.dictionaries(TEXT, mostly(st.lists(mostly(KAFKA), max_size=2)), max_size=2)
            ),
        }
    )
)


def kafka_of(raw: Raw) -> Raw:
    """Return an event of one partition, whatever the record says of its own."""
    return {"eventSource": "aws:kafka", "records": {"receipts-0": [raw]}}


@given(event=SQS.map(sqs_event) | KAFKA.map(kafka_of))
@settings(deadline=None, max_examples=500)
def test_any_record_is_read_or_refused(event: Raw) -> None:
    """Nothing that a record holds is raised, so that none is ever given back for its contents."""
    (record,) = read_batch(event, STRICT).records
    asked = read(record, STRICT, NOW_MS)
    assert read(record, STRICT, NOW_MS) == asked
    assert asked.record is record
    if asked.request is not None:
        assert asked.guid == asked.request.guid
        assert asked.request.sent_ms is not None
    else:
        assert (asked.guid is None) == bool(asked.fault)
    assert asked.fault.isascii()
    assert json.dumps(contents(record))


@given(event=EVENTS)
@settings(deadline=None, max_examples=500)
def test_any_event_names_its_records_or_fails_whole(event: Any) -> None:
    """By the one error; and each record of a batch is one that an answer can name."""
    with suppress(UnknownEventError):
        for record in read_batch(event, STRICT).records:
            assert isinstance(read(record, STRICT, NOW_MS), Asked)
            assert json.dumps(record.identifier)

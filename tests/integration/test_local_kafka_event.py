"""The event that a Kafka source makes, and how it reads the function's answer; no broker needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.kafka_event import (
    MalformedAnswerError,
    Place,
    Record,
    again_from,
    event_of,
    that_fit,
)

ZERO, ONE = Place("to-pic", 0), Place("to-pic", 1)


def record(place: Place, offset: int, value: bytes | None = b"v", **changes: Any) -> Record:
    """Return a record."""
    fields: dict[str, Any] = {"key": b"k", "headers": []}
    fields |= {"timestamp_ms": 1, "timestamp_type": "CREATE_TIME"}
    return Record(place=place, offset=offset, value=value, **(fields | changes))


BATCH = [record(ZERO, 7), record(ZERO, 8), record(ONE, 0), record(ONE, 5)]


def failed(*identifiers: object) -> bytes:
    """Return an answer that names these as failed."""
    items = [{"itemIdentifier": each} for each in identifiers]
    return json.dumps({"batchItemFailures": items}).encode()


def at(name: str, offset: object) -> dict[str, object]:
    """Return an identifier."""
    return {"partition": name, "offset": offset}


def test_the_event_has_the_documented_shape() -> None:
    """Base64 or null, headers as a list of one-entry objects of signed bytes, Java's time types."""
    header = [("h", b"\x00\x7f\x80\xff"), ("h", b""), ("n", None)]
    event = event_of([record(ONE, 3, None, key=b"\xff\xfe", headers=header)], "127.0.0.1:9")
    assert event == {
        "eventSource": "SelfManagedKafka",
        "bootstrapServers": "127.0.0.1:9",
        "records": {
            "to-pic-1": [
                {
                    "topic": "to-pic",
                    "partition": 1,
                    "offset": 3,
                    "timestamp": 1,
                    "timestampType": "CREATE_TIME",
                    "key": "//4=",
                    "value": None,
                    "headers": [{"h": [0, 127, -128, -1]}, {"h": []}, {"n": None}],
                }
            ]
        },
    }


def test_records_are_grouped_by_partition_in_their_order() -> None:
    """Each partition's records stand under its own key, as they came."""
    event = event_of([BATCH[0], BATCH[2], BATCH[1], BATCH[3]], "b")
    offsets = {name: [each["offset"] for each in of] for name, of in event["records"].items()}
    assert offsets == {"to-pic-0": [7, 8], "to-pic-1": [0, 5]}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b"{}", id="empty"),
        pytest.param(b'{"batchItemFailures": []}', id="empty-list"),
        pytest.param(b'{"batchItemFailures": null}', id="null-list"),
        pytest.param(b'{"other": 1}', id="another-name"),
    ],
)
def test_an_answer_that_names_nothing_is_success(answer: bytes) -> None:
    """As the platform reads it; a function that failed must never answer so."""
    assert again_from(answer, BATCH) == {}


def test_each_partition_comes_again_from_its_first_failure() -> None:
    """However the failures are listed; a partition without one is taken whole."""
    answer = failed(at("to-pic-0", 8), at("to-pic-0", 7))
    assert again_from(answer, BATCH) == {ZERO: 7}
    answer = failed(at("to-pic-1", 5), at("to-pic-0", 8))
    assert again_from(answer, BATCH) == {ZERO: 8, ONE: 5}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(failed(at("to-pic-0", 9)), id="offset-not-in-the-batch"),
        pytest.param(failed(at("to-pic-0", 7), at("to-pic-2", 7)), id="one-unknown-partition"),
        pytest.param(failed(at("to-pic", 7)), id="topic-for-partition"),
        pytest.param(failed("7"), id="text"),
        pytest.param(failed(""), id="empty-text"),
        pytest.param(failed(None), id="null"),
        pytest.param(failed(at("to-pic-0", "7")), id="offset-as-text"),
        pytest.param(failed({"partition": "to-pic-0"}), id="no-offset"),
        pytest.param(failed(at("to-pic-1", json.loads("false"))), id="a-bool-that-equals-0"),
        pytest.param(b'{"batchItemFailures": [{"item": 1}]}', id="bad-key"),
        pytest.param(b'{"batchItemFailures": {"a": 1}}', id="no-list"),
        pytest.param(b'["to-pic-0"]', id="no-object"),
        pytest.param(b"taken", id="no-json"),
    ],
)
def test_an_answer_that_cannot_be_followed_is_refused(answer: bytes) -> None:
    """Then the whole batch comes again: nothing is skipped for a typing error."""
    with pytest.raises(MalformedAnswerError):
        again_from(answer, BATCH)


def test_a_batch_fits_into_one_call() -> None:
    """Records that would pass the platform's limit wait for the next call; one alone goes."""
    large = [record(ZERO, offset, bytes(3_000_000)) for offset in range(3)]
    assert [each.offset for each in that_fit(large)] == [0]
    assert len(json.dumps(event_of(large[:1], "b"))) < 6 * 1024 * 1024
    assert len(that_fit([record(ZERO, 0, bytes(7_000_000)), BATCH[0]])) == 1
    assert that_fit(BATCH) == BATCH

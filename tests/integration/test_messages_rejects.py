"""What nobody can execute: put aside with all that it holds, or not taken; it blocks nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.emulated import client, never_arrives
from tests.message_events import (
    TOPIC,
    Event,
    deliver,
    is_taken,
    kafka_event,
    kafka_record,
    put_aside,
    sqs_event,
    sqs_message,
)
from tests.world import BUCKET, START_MS, World, refused

DAY_MS = 86_400_000
LARGE = b'{"text":"' + b"x" * 300_000 + b'"}'
SOURCES = ["sqs", "kafka"]


def event_of(source: str, guid: str | None, body: bytes, sent_ms: int = START_MS) -> Event:
    """Return the event of one record of either source."""
    if source == "sqs":
        return sqs_event(sqs_message(guid, body.decode(), sent_ms=sent_ms))
    return kafka_event([kafka_record(guid, body, sent_ms=sent_ms)], first=17)


def reject(source: str, code: str) -> Event:
    """Return the event of a record that is put aside for that code; G-1 is done."""
    match code:
        case "E904":
            return event_of(source, "G-1", b'{"amount":7}')
        case "E907":
            return event_of(source, "G-2", b'{"amount":7}', START_MS - 29 * DAY_MS)
        case _:
            return event_of(source, None, b'{"amount":7}')


REJECTS = pytest.mark.parametrize("code", ["E904", "E905", "E907"])
BY = pytest.mark.parametrize("source", SOURCES)
ORIGINS: dict[str, dict[str, Any]] = {
    "sqs": {"source": "sqs", "queue": "relayhub-intake", "message_id": "m-1"},
    "kafka": {"source": "kafka", "topic": TOPIC, "partition": 0, "offset": 17},
}


@BY
@REJECTS
def test_a_reject_bears_code_reason_origin_and_contents(
    world: World, source: str, code: str
) -> None:
    """So a person finds it, knows why, and can send it again; the row is as it was."""
    world.post()
    before = world.item()
    event = reject(source, code)
    assert is_taken(world, event)
    (aside,) = put_aside(world)
    assert (aside["code"], aside["origin"]) == (code, ORIGINS[source])
    assert aside["guid"] == {"E904": "G-1", "E907": "G-2", "E905": None}[code]
    sent_at = {"E904": "2027-01-15T08:00:00.000Z", "E907": "2026-12-17T08:00:00.000Z", "E905": None}
    assert aside["sent_at"] == sent_at[code]
    assert len(aside["reason"]) > 20
    assert (world.item(), world.row("G-2"), len(world.core.sent)) == (before, None, 1)
    (facts,) = [facts for what, facts in world.notes if what == "message_rejected"]
    assert facts == {**facts, **ORIGINS[source], "code": code}


@BY
def test_a_reject_bears_the_record_as_it_came(world: World, source: str) -> None:
    """Headers, key and body unread: whatever they are, they are there."""
    event = reject(source, "E905")
    is_taken(world, event)
    (aside,) = put_aside(world)
    if source == "sqs":
        (raw,) = event["Records"]
        assert (aside["headers"], aside["body"]) == (raw["messageAttributes"], raw["body"])
    else:
        (raw,) = event["records"][f"{TOPIC}-0"]
        assert base64.b64decode(aside["key"]) == b"account-1"
        assert (aside["headers"], aside["body_base64"]) == (raw["headers"], raw["value"])


@BY
@REJECTS
def test_a_reject_that_cannot_be_put_aside_is_not_taken(
    world: World, source: str, code: str
) -> None:
    """It comes again, and is put aside then; nothing is executed either time."""
    world.post()
    before = world.item()
    world.sqs.faults["send_message"].append(refused("AccessDenied", 403))
    event = reject(source, code)
    assert not is_taken(world, event)
    assert (world.item(), world.row("G-2"), len(world.core.sent)) == (before, None, 1)
    assert (world.noted("message_rejected"), world.noted("message_given_back")) == (0, 1)
    assert put_aside(world) == []
    assert is_taken(world, event)
    assert [each["code"] for each in put_aside(world)] == [code]


def test_a_rejects_queue_that_is_away_gives_back_the_rejects_alone(world: World) -> None:
    """What can be executed is, and is not given back with them."""
    event = sqs_event(sqs_message("G-1"), sqs_message(None), sqs_message("G-3"))
    world.sqs.faults["send_message"].append(never_arrives)
    assert deliver(world, event) == ["m-2"]
    assert [request.guid for request in world.core.sent] == ["G-1", "G-3"]


@BY
def test_a_reject_too_large_for_the_queue_goes_to_the_bucket(world: World, source: str) -> None:
    """The queue's message says where, how long and which digest; nothing of it is cut."""
    event = event_of(source, "G-1", LARGE)
    assert is_taken(world, event)
    (aside,) = put_aside(world)
    assert (aside["code"], aside["guid"]) == ("E905", None)
    assert "body" not in aside
    assert "body_base64" not in aside
    stored = aside["contents_object"]
    held = client("s3").get_object(Bucket=BUCKET, Key=stored["key"])["Body"].read()
    assert (len(held), stored["key"].startswith("!rejects/")) == (stored["bytes"], True)
    contents = json.loads(held)
    if source == "sqs":
        assert contents["body"] == LARGE.decode()
        assert contents["headers"] == event["Records"][0]["messageAttributes"]
    else:
        assert base64.b64decode(contents["body_base64"]) == LARGE
        assert base64.b64decode(contents["key"]) == b"account-1"


@BY
def test_a_large_reject_without_the_bucket_is_not_taken(world: World, source: str) -> None:
    """Neither is its head put aside alone."""
    world.s3.faults["put_object"].append(refused("SlowDown", 503))
    event = event_of(source, "G-1", LARGE)
    assert not is_taken(world, event)
    assert (put_aside(world), world.row()) == ([], None)
    assert is_taken(world, event)
    assert len(put_aside(world)) == 1


MALFORMED: list[Any] = [
    pytest.param(sqs_message("has a space"), "Idempotency-Key", id="bad_guid"),
    pytest.param(sqs_message(None), "GUID is missing", id="no_guid"),
    pytest.param(sqs_message("G-1", '{"guid":"G-2"}'), "differ", id="two_guids"),
    pytest.param(sqs_message("G-1", ""), "body is empty", id="empty"),
    pytest.param(sqs_message("G-1", '{"a":1,"a":2}'), "", id="twice_in_the_body"),
    pytest.param(
        sqs_message("G-1", attributes={"Idempotency-Key": "G-2"}), "twice", id="two_headers"
    ),
    pytest.param(sqs_message("G-1", attributes={"delivery": "soon"}), "Delivery", id="delivery"),
    pytest.param(
        sqs_message("G-1", attributes={"x-operation": b"\xff\xfe"}), "UTF-8", id="not_utf8"
    ),
    pytest.param(sqs_message("G-1", sent_ms=START_MS + 3_606_000), "ahead", id="from_the_future"),
    pytest.param(sqs_message("G-1") | {"attributes": {}}, "no time", id="without_a_time"),
    pytest.param(sqs_message(None, "{}", attributes={"relayhub-accepted": "1"}), "", id="bad_mark"),
]


@pytest.mark.parametrize(("message", "reason"), MALFORMED)
def test_a_malformed_message_is_put_aside_with_the_reason(
    world: World, message: dict[str, Any], reason: str
) -> None:
    """E905: nothing is recorded or sent; delivered twice, it is put aside twice."""
    for _ in range(2):
        assert deliver(world, sqs_event(message, sqs_message("G-9"))) == []
        (aside,) = put_aside(world)
        assert aside["code"] == "E905"
        assert reason in aside["reason"]
        assert aside["reason"]
    assert (world.row("G-1"), [each.guid for each in world.core.sent]) == (None, ["G-9"])


def test_a_record_that_breaks_the_reading_is_put_aside(world: World) -> None:
    """It would break it each time it comes; the log names the fault, the reject the record."""
    broken = sqs_message("G-1") | {"messageAttributes": {7: "no name"}}
    assert deliver(world, sqs_event(broken, sqs_message("G-2"))) == []
    (aside,) = put_aside(world)
    assert (aside["code"], aside["headers"]) == ("E905", {"7": "no name"})
    assert "could not be read (AttributeError)" in aside["reason"]
    assert (world.row("G-1"), [each.guid for each in world.core.sent]) == (None, ["G-2"])


def test_a_message_of_another_operation_than_its_sources_is_put_aside(make_world: Any) -> None:
    """A queue for transfers takes no receipt."""
    world = make_world(source_operations=(("sqs:relayhub-intake", "transfer"),))
    assert deliver(world, sqs_event(sqs_message(attributes={"x-operation": "receipt"}))) == []
    (aside,) = put_aside(world)
    assert (aside["code"], world.row()) == ("E905", None)
    assert "transfer" in aside["reason"]

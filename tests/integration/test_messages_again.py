"""What SQS gave and was not taken comes again soon, and not only after its whole visibility."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.edges_kit import passes
from tests.message_events import (
    Raw,
    deliver,
    is_taken,
    kafka_event,
    kafka_record,
    sqs_event,
    sqs_message,
)
from tests.world import World, refused

THROTTLED = [refused("ThrottlingException")] * 2


def message(guid: str | None, **more: Any) -> Raw:
    """Return a message with a receipt of its own."""
    return sqs_message(guid, **more) | {"receiptHandle": f"receipt of {guid}"}


def hastened(world: World) -> list[dict[str, Any]]:
    """Return the requests that let a message come again soon."""
    asked = zip(world.sqs.calls, world.sqs.requests, strict=True)
    return [request for name, request in asked if name == "change_message_visibility"]


def test_a_message_that_was_given_back_comes_again_in_a_minute(world: World) -> None:
    """That one alone: those that were taken are left to their delete."""
    world.dynamo.faults["put_item"] += [passes, *THROTTLED]
    event = sqs_event(message("G-1"), message("G-2"), message(None), message("G-4"))
    assert deliver(world, event) == ["m-2"]
    url, timeout = world.intake_url, 60
    assert hastened(world) == [
        {"QueueUrl": url, "ReceiptHandle": "receipt of G-2", "VisibilityTimeout": timeout}
    ]


@pytest.mark.parametrize("fault", [passes, refused("AccessDenied", 403)], ids=["stale", "denied"])
def test_a_message_that_cannot_be_hastened_is_given_back_all_the_same(
    world: World, fault: Any
) -> None:
    """It comes after its whole visibility; the other one is asked for too."""
    world.sqs.faults["change_message_visibility"].append(fault)
    event = sqs_event(message("G-1"), message("G-2"))
    assert deliver(world, event, left_ms=23_999) == ["m-1", "m-2"]
    assert (len(hastened(world)), world.noted("not_hastened")) == (2, 2)


def test_nothing_is_hastened_where_the_function_is_about_to_end(world: World) -> None:
    """The answer that names them must still be given."""
    event = sqs_event(message("G-1"))
    assert deliver(world, event, left_ms=1_999) == ["m-1"]
    assert hastened(world) == []
    assert deliver(world, event, left_ms=2_000) == ["m-1"]
    assert len(hastened(world)) == 1


def test_another_queues_message_and_a_record_of_kafka_are_under_limits_of_their_own(
    world: World,
) -> None:
    """The function may change its own queue's messages only."""
    other = sqs_event(message("G-1", queue="other"), message("G-2", queue="not-relayhub-intake"))
    assert deliver(world, other, left_ms=10_000) == ["m-1", "m-2"]
    assert not is_taken(world, kafka_event([kafka_record()]), left_ms=10_000)
    assert (hastened(world), world.noted("not_hastened")) == ([], 0)

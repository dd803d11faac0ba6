"""`relayhub redrive-messages`: dead letters go back as they came, and no younger than they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relayhub.message_event import read, read_batch
from tests.emulated import FaultyClient, client
from tests.integration.cli_kit import Terminal, make_stack
from tests.integration.redrive_kit import (
    BODY,
    DEAD_LETTERS,
    HOUR_S,
    INTAKE,
    Intake,
    at_stack,
    faulty,
    make_intake,
    stamp,
    ten,
    text,
)
from tests.world import START_MS, World


@pytest.fixture
def intake(world: World, monkeypatch: pytest.MonkeyPatch) -> Intake:
    """Return the intake queue and its dead letters, at an SQS that lives by the test's clock."""
    return make_intake(world, monkeypatch)


@pytest.fixture
def terminal(world: World, intake: Intake) -> Terminal:
    """Return a command line at a stack with these queues."""
    return at_stack(world, intake)


@pytest.fixture
def sqs(terminal: Terminal) -> FaultyClient:
    """Return the command line's SQS, whose calls can fail."""
    return faulty(terminal)


def test_a_message_goes_back_as_it_came(intake: Intake, terminal: Terminal) -> None:
    """Body and attributes of every kind, byte for byte; one attribute more: its time."""
    body = ' {"guid": "G-1",\r\n\t"name":"山田 <&> \U0001f4b4"}  '
    attributes = {
        "idempotency-key": text("G-1"),
        "X-Operation": text("transfer"),
        "amount": text("00100.50", "Number"),
        "shape": text('{"a": 1}', "String.json"),
        "raw": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
        "picture": {"DataType": "Binary.png", "BinaryValue": b"\x89PNG\r\n\x1a\n"},
    }
    intake.die(body, **attributes)
    intake.clock.advance(HOUR_S)
    assert terminal.json("redrive-messages") == {
        "dry_run": False,
        "found": 1,
        "hidden": 0,
        "looked_at": 1,
        "oldest_ms": HOUR_S * 1000,
        "moved": 1,
        "left": [],
        "not_deleted": [],
    }
    (copy,) = intake.came()
    assert copy["Body"] == body
    assert copy["MessageAttributes"] == {**attributes, "first-sent-at": stamp(START_MS)}
    assert intake.dead() == []


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        ({}, {"first-sent-at": stamp(START_MS)}),
        ({"first-sent-at": stamp(START_MS - 5)}, {"first-sent-at": stamp(START_MS - 5)}),
        ({"first-sent-at": stamp(START_MS + 5)}, {"first-sent-at": stamp(START_MS)}),
        ({"First-Sent-At": stamp(START_MS - 5)}, {"first-sent-at": stamp(START_MS - 5)}),
        (
            {"First-Sent-At": stamp(START_MS - 5), "first-sent-at": stamp(START_MS - 9)},
            {"first-sent-at": stamp(START_MS - 9)},
        ),
        ({"first-sent-at": text("7", "Number")}, {"first-sent-at": stamp(7)}),
        (
            {"first-sent-at": {"DataType": "Binary", "BinaryValue": b"%d" % (START_MS + 5)}},
            {"first-sent-at": stamp(START_MS)},
        ),
        ({"first-sent-at": text("yesterday")}, {"first-sent-at": text("yesterday")}),
        (
            {"first-sent-at": text("-1"), "FIRST-SENT-AT": stamp(7)},
            {"first-sent-at": text("-1"), "FIRST-SENT-AT": stamp(7)},
        ),
    ],
    ids=["none", "older", "younger", "case", "two", "number", "binary", "no time", "one no time"],
)
def test_the_smaller_time_is_the_first(
    intake: Intake, terminal: Terminal, attributes: dict[str, Any], kept: dict[str, Any]
) -> None:
    """One that is no time goes back as it is: the function puts it aside and guesses no age."""
    intake.die(**attributes)
    assert terminal.json("redrive-messages")["moved"] == 1
    assert intake.came()[0]["MessageAttributes"] == kept


def test_the_first_time_is_kept_over_two_redrives(
    world: World, intake: Intake, terminal: Terminal
) -> None:
    """SQS moves it to the dead letters, a person moves it back, twice: it gets no younger.

    The function reads that time, not the one that SQS gave the last copy.
    """
    arn = intake.sqs.get_queue_attributes(QueueUrl=intake.dead_url, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": 2}
    intake.sqs.set_queue_attributes(
        QueueUrl=intake.url, Attributes={"RedrivePolicy": json.dumps(policy)}
    )
    intake.sqs.send_message(QueueUrl=intake.url, MessageBody=BODY)
    for _ in range(2):
        intake.clock.advance(24 * HOUR_S)
        for _ in range(3):  # The third finds that it was received twice.
            intake.receive(intake.url, hidden_s=0)
        assert terminal.json("redrive-messages")["moved"] == 1
    (copy,) = intake.came()
    assert int(copy["Attributes"]["SentTimestamp"]) == START_MS + 48 * HOUR_S * 1000
    assert copy["MessageAttributes"] == {"first-sent-at": stamp(START_MS)}
    (record,) = read_batch({"Records": [as_lambda_has(copy)]}, world.hub.settings).records
    asked = read(record, world.hub.settings, intake.clock())
    assert asked.request is not None, asked.fault
    assert asked.request.sent_ms == START_MS


def as_lambda_has(message: dict[str, Any]) -> dict[str, Any]:
    """Return the record of Lambda's SQS event for a message that was received."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {"stringValue": each["StringValue"], "dataType": each["DataType"]}
            for name, each in message["MessageAttributes"].items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:relayhub-intake",
    }


def test_a_message_without_room_for_its_time_is_left_and_named(
    intake: Intake, terminal: Terminal
) -> None:
    """Its id, and what to do; it is there for others at once, and the rest is moved."""
    full = intake.die(**ten(**{"idempotency-key": text("G-9")}))
    intake.die()
    document = terminal.json("redrive-messages", code=3)
    assert document["moved"] == 1
    (left,) = document["left"]
    assert (left["message_id"], left["guid"]) == (full, "G-9")
    assert "it has 10 attributes" in left["reason"]
    assert f"first-sent-at = {START_MS} (String), then delete it here" in left["reason"]
    assert [each["MessageId"] for each in intake.dead()] == [full]
    assert len(intake.came()) == 1


def test_ten_attributes_with_the_time_among_them_are_moved(
    intake: Intake, terminal: Terminal
) -> None:
    """A message that was moved before has room: its time is one of the ten."""
    attributes = ten(**{"first-sent-at": stamp(START_MS - 5)})
    intake.die(**attributes)
    assert terminal.json("redrive-messages")["moved"] == 1
    assert intake.came()[0]["MessageAttributes"] == attributes


@pytest.mark.parametrize("missing", [INTAKE, DEAD_LETTERS])
def test_a_stack_without_these_queues_is_told(world: World, missing: str) -> None:
    """It is older than the command."""
    urls = {INTAKE: world.intake_url, DEAD_LETTERS: world.queue_url}
    make_stack(world.queue_url, without=missing, name="older", more=urls)
    result = Terminal(world.clock).run("redrive-messages", "--stack", "older")
    assert result.exit_code == 1
    assert f"the stack older has no output {missing}" in result.stderr


@pytest.mark.parametrize("which", [INTAKE, DEAD_LETTERS])
def test_a_fifo_queue_is_refused(world: World, which: str) -> None:
    """Nothing is asked of it."""
    urls = {INTAKE: world.intake_url, DEAD_LETTERS: world.queue_url}
    make_stack(world.queue_url, more=urls | {which: f"{urls[which]}.fifo"})
    terminal = Terminal(world.clock)
    terminal.clients["sqs"] = sqs = FaultyClient(client("sqs"))
    result = terminal.run("redrive-messages")
    assert result.exit_code == 2
    assert "is a FIFO queue" in result.stderr
    assert sqs.calls == []


@pytest.mark.parametrize(
    "words",
    [("--limit", "0"), ("--rate", "0"), ("--rate", "1001"), ("--rate", "nan"), ("G-1",)],
    ids=" ".join,
)
def test_an_option_that_cannot_be_is_bad_usage(
    terminal: Terminal, sqs: FaultyClient, words: tuple[str, ...]
) -> None:
    """Exit code 2, before anything is asked of AWS."""
    assert terminal.run("redrive-messages", *words).exit_code == 2
    assert sqs.calls == []

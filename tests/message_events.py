"""SQS and Kafka events as the platform hands them to the message function, and what it answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from relayhub.core import Doubt, NotSent, SendOutcome
from relayhub.message import ACCEPTED
from relayhub.replies import Reply
from relayhub.row import Row
from tests.emulated import client
from tests.world import START_MS, KilledError, World

RUN_MS: Final = 60_000  # The message function's whole time.
QUEUE: Final = "relayhub-intake"
TOPIC: Final = "receipts"
BODY: Final = b'{"amount":100}'
PREFER: Final = {"prefer": "respond-async"}
_ARN: Final = "arn:aws:sqs:eu-west-1:123456789012"

Raw = dict[str, Any]
Event = dict[str, Any]


def sqs_message(
    guid: str | None = "G-1",
    body: str = BODY.decode(),
    *,
    sent_ms: int = START_MS,
    queue: str = QUEUE,
    attributes: Mapping[str, str | bytes] | None = None,
) -> Raw:
    """Return one record of an SQS event; `attributes` are its headers beside the GUID."""
    key = {} if guid is None else {"idempotency-key": guid}
    named = {"content-type": "application/json", **key, **(attributes or {})}
    return {
        "receiptHandle": "AQEB",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": str(sent_ms),
            "SenderId": "AIDA",
            "ApproximateFirstReceiveTimestamp": str(sent_ms),
        },
        "messageAttributes": {name: _attribute(value) for name, value in named.items()},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": f"{_ARN}:{queue}",
        "awsRegion": "eu-west-1",
    }


def accepted_message(guid: str = "G-1", **more: Any) -> Raw:
    """Return the hub's own message of an accepted request."""
    raw = sqs_message(None, json.dumps({"guid": guid}, separators=(",", ":")), **more)
    return raw | {"messageAttributes": {ACCEPTED: _attribute("1")}}


def sqs_event(*messages: Raw) -> Event:
    """Return the event of a batch; the messages' ids are m-1, m-2, and so on."""
    named = [{"messageId": f"m-{number}", **each} for number, each in enumerate(messages, 1)]
    return {"Records": named}


def _attribute(value: str | bytes) -> Raw:
    lists: Raw = {"stringListValues": [], "binaryListValues": []}
    if isinstance(value, bytes):
        coded = base64.b64encode(value).decode()
        return {"binaryValue": coded, **lists, "dataType": "Binary"}
    return {"stringValue": value, **lists, "dataType": "String"}


def kafka_record(
    guid: str | None = "G-1",
    value: bytes | None = BODY,
    *,
    key: bytes | None = b"account-1",
    sent_ms: int = START_MS,
    headers: Iterable[tuple[str, bytes]] = (),
) -> Raw:
    """Return one record of a Kafka event; `headers` come beside the GUID's, in order."""
    first = [] if guid is None else [("idempotency-key", guid.encode())]
    return {
        "topic": TOPIC,
        "timestamp": sent_ms,
        "timestampType": "CREATE_TIME",
        **({} if key is None else {"key": base64.b64encode(key).decode()}),
        **({} if value is None else {"value": base64.b64encode(value).decode()}),
        "headers": [{name: _signed(held)} for name, held in (*first, *headers)],
    }


def kafka_event(
    *partitions: Sequence[Raw], first: int = 0, source: str = "SelfManagedKafka"
) -> Event:
    """Return the event of a poll: each sequence is a partition, its offsets from `first` on."""
    named = {}
    for number, records in enumerate(partitions):
        placed = [
            {**raw, "partition": number, "offset": offset}
            for offset, raw in enumerate(records, first)
        ]
        named[f"{TOPIC}-{number}"] = placed
    return {
        "eventSource": source,
        "bootstrapServers": "broker-1.example:9092,broker-2.example:9092",
        "records": named,
    }


def _signed(value: bytes) -> list[int]:
    """Return the bytes as the platform writes a header's: as Java's, which have a sign."""
    return [each - 256 if each > 127 else each for each in value]


def deliver(world: World, event: Event, *, left_ms: int = RUN_MS) -> list[Any]:
    """Hand the event to the message function; return the identifiers of what comes again.

    Raises NotTakenError for a whole batch.
    """
    from functions.relay.messages import take_all  # noqa: PLC0415 - it builds its hub at import

    answer = take_all(world.hub, event, world.clock() + left_ms)
    assert list(answer) == ["batchItemFailures"]
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def is_taken(world: World, event: Event, *, left_ms: int = RUN_MS) -> bool:
    """Hand the event over; tell whether all of it was taken, by either form of answer."""
    from functions.relay.messages import NotTakenError  # noqa: PLC0415 - the same

    try:
        return deliver(world, event, left_ms=left_ms) == []
    except NotTakenError:
        return False


def again(event: Event, given_back: Sequence[str]) -> Event:
    """Return the event of SQS's next delivery: what was given back alone."""
    return {"Records": [each for each in event["Records"] if each["messageId"] in given_back]}


def killed(world: World, guid: str = "G-1", **more: Any) -> Row:
    """Leave a SENT row by a message whose function is killed after the bytes left."""

    def die() -> None:
        raise KilledError

    world.core.during.append(die)
    try:
        deliver(world, sqs_event(sqs_message(guid, **more)))
    except KilledError:
        return world.held(guid)
    raise AssertionError("nobody called the core")


def settled(world: World, outcome: SendOutcome, guid: str = "G-1", **more: Any) -> Row:
    """Make the row of a message whose send came to this."""
    world.core.outcomes.append(outcome)
    assert deliver(world, sqs_event(sqs_message(guid, **more))) == []
    return world.held(guid)


def failed(world: World, guid: str = "G-1", **more: Any) -> Row:
    """Make a FAILED row by a message that the core never got."""
    return settled(world, NotSent("connect_refused"), guid, **more)


def doubted(world: World, guid: str = "G-1", **more: Any) -> Row:
    """Make an UNKNOWN row by a message that the core left without an answer."""
    return settled(world, Doubt("no_answer", aborted=True), guid, **more)


def post_async(world: World, guid: str = "G-1", **more: Any) -> Reply:
    """Send a request by HTTP that does not wait for its outcome."""
    return world.post(guid, **{"headers": PREFER, **more})


def put_aside(world: World) -> list[dict[str, Any]]:
    """Take what was put aside off its queue, in order."""
    found: list[dict[str, Any]] = []
    while got := _receive(world.intake_rejects_url):
        found += [json.loads(each["Body"]) for each in got]
    return found


def announced(world: World) -> list[Raw]:
    """Take the messages off the intake queue, as its event source does."""
    taken = []
    for each in _receive(world.intake_url):
        raw = sqs_message(None, each["Body"], sent_ms=world.clock())
        named = each.get("MessageAttributes", {})
        headers = {name: _attribute(value["StringValue"]) for name, value in named.items()}
        taken.append({"messageId": each["MessageId"], **raw, "messageAttributes": headers})
    return taken


def _receive(url: str) -> list[dict[str, Any]]:
    more = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
    got: list[dict[str, Any]] = (
        client("sqs").receive_message(QueueUrl=url, **more).get("Messages", [])
    )
    for each in got:
        client("sqs").delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return got

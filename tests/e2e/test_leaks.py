"""Nothing that a channel sent comes out of the deployed stack, but where it belongs."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Final

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.rounds import until_settled
from local.stack import Stack
from tests.e2e.conftest import SESSION
from tests.markers import BAD_BODIES, BAD_HEADERS, HEADERS, MARKS, Outlets, reasons_of, told_of

pytestmark = pytest.mark.e2e

FUNCTIONS: Final = (
    "RelayFunction",
    "MessagesFunction",
    "ResolverFunction",
    "ReprocessorFunction",
    "PurgerFunction",
)
# The local core takes known accounts only; the marks stand in what it does not read.
BODY: Final = json.dumps(
    {
        "from": "A001",
        "to": "A002",
        "amount": 1,
        "currency": "JPY",
        "reference": MARKS["reference"],
        "payer": {"name": MARKS["person"], "account": MARKS["account"]},
    }
).encode()
# What the channels send that no signature may cover twice.
SENT: Final = {name: value for name, value in HEADERS.items() if name != "authorization"}
OUTCOMES: Final = ("b2xx", "refuse", "execute_then_close", "unknown_code", "gateway_page", "big")


def ways(channel: Channel, other: Channel, guid: str, out: Outlets) -> None:
    """Send a request by every call of the API, then the same as another channel."""
    query = f"?{MARKS['query']}={MARKS['query']}"
    lines = [f"{name}: {value}".encode() for name, value in SENT.items()]
    channel.raw("POST", "/transactions", [b"Idempotency-Key: " + guid.encode(), *lines], BODY)
    channel.request("GET", f"/transactions/{guid}{query}", headers=SENT)
    replies = [
        other.post(guid, BODY, headers=SENT),
        other.status(guid),
        other.cancel(guid),
        channel.status(guid),
        channel.request("POST", f"/transactions/{guid}/cancel", MARKS["cancel"].encode()),
        channel.request("GET", f"/{MARKS['path']}"),
    ]
    for reply in replies:
        out.take("answer", f"{dict(reply.headers)} {reply.body!r}")


def malformed(channel: Channel, out: Outlets) -> None:
    """Send what is refused."""
    for headers in BAD_HEADERS:
        named = {"Idempotency-Key": "leak-bad", **headers}
        reply = channel.request("POST", "/transactions", BODY, named)
        out.take("refusal", f"{dict(reply.headers)} {reply.body!r}")
    for body in BAD_BODIES:
        out.take("refusal", repr(channel.post(None, body).body))


def messages(stack: Stack) -> None:
    """Send messages to the intake queue: one that is executed, and some that are put aside."""
    bodies = [BODY.decode(), *(each.decode() for each in BAD_BODIES)]
    mark = {"DataType": "String", "StringValue": MARKS["attribute"]}
    key = {"DataType": "String", "StringValue": "leak-message"}
    stack.emulator.client("sqs").send_message_batch(
        QueueUrl=stack.name_of("IntakeQueue"),
        Entries=[
            {
                "Id": str(number),
                "MessageBody": body,
                "MessageAttributes": {
                    "x-customer": mark,
                    **({} if number else {"idempotency-key": key}),
                },
            }
            for number, body in enumerate(bodies)
        ],
    )


def kafka(stack: Stack) -> None:
    """Hand the message function a record, as Lambda's own source of Kafka does."""
    coded = base64.b64encode(BODY).decode()
    record = {
        "topic": "leaks",
        "partition": 0,
        "offset": 0,
        "timestamp": int(time.time() * 1000),
        "key": base64.b64encode(MARKS["kafka_key"].encode()).decode(),
        "value": coded,
        "headers": [
            {"idempotency-key": list(b"leak-kafka")},
            {MARKS["kafka_header"]: list(MARKS["kafka_header"].encode())},
        ],
    }
    event = {"eventSource": "SelfManagedKafka", "records": {"leaks-0": [record]}}
    stack.invoke("MessagesFunction", event)


def rejects(stack: Stack) -> list[dict[str, Any]]:
    """Return what was put aside so far, and leave it there."""
    client, url = stack.emulator.client("sqs"), stack.name_of("IntakeRejectsQueue")
    found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)
    return [json.loads(each["Body"]) for each in found.get("Messages", [])]


def until_taken(stack: Stack) -> None:
    """Wait until the messages were taken."""
    ends = time.monotonic() + 30
    while stack.queue_depth("IntakeQueue"):
        assert time.monotonic() < ends, "the messages were not taken in time"
        time.sleep(0.1)


def test_no_log_metric_or_other_channels_answer_bears_what_was_sent(
    stack: Stack, core: CoreControl, atm: Channel, app: Channel
) -> None:
    """Every function in turn, through success, refusal, doubt, faults and malformed requests."""
    out = Outlets()
    ways(atm, app, "leak-plain", out)
    for kind in OUTCOMES:
        core.set_faults([{"kind": kind}])
        ways(atm, app, f"leak-{kind}", out)
    core.clear()
    malformed(atm, out)
    messages(stack)
    kafka(stack)
    hint = {"messageId": "m-1", "body": MARKS["hint"], "eventSource": "aws:sqs"}
    stack.invoke("ReprocessorFunction", {"Records": [hint]})
    until_taken(stack)
    until_settled(stack, within_s=20)
    stack.invoke("PurgerFunction", {})

    for function in FUNCTIONS:
        lines = stack.function_logs(function)
        assert any('"service"' in line for line in lines), f"{function} has written nothing"
        out.take(f"log and metrics of {function}", "\n".join(lines))
    for log in ("core.log", "emulator.log"):
        out.take(log, (SESSION / log).read_text(errors="replace"))
    for row in stack.scan_rows():
        out.take("row", told_of(row))
    put_aside = rejects(stack)
    out.take("rejects", reasons_of(put_aside))
    assert len(put_aside) >= 1
    assert (stack.ledger_row("leak-message") or {})["state"] == "DONE"
    assert out.leaks() == set()

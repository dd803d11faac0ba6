"""The only SQS module: hints of what was not sent, messages in, and what nobody can execute.

A hint and an accepted request's message may be lost: the ledger is the truth, and sweeps make up
for both. What is put aside may not: whoever cannot put a message aside has not taken it.
"""

from __future__ import annotations

import json
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from relayhub.message import ACCEPTED

# One attempt and short waits: a hint that does not go out is made up for by the sweep.
_CONFIG: Final = Config(
    connect_timeout=0.5,
    read_timeout=1.0,
    retries={"mode": "standard", "total_max_attempts": 1},
)

AGAIN_S: Final = 60
_REJECT_CHARACTERS_MAX: Final = 4_096  # A hint has under 200; what is longer is none of ours.


def make_client() -> Any:
    """Return an SQS client with every option that matters stated."""
    return boto3.client("sqs", config=_CONFIG)


def send(client: Any, url: str, body: str, **more: Any) -> str | None:
    """Send one message; return why it could not be sent, None if it was."""
    try:
        client.send_message(QueueUrl=url, MessageBody=body, **more)
    except (BotoCoreError, ClientError) as error:
        return type(error).__name__
    return None


class HintQueue:
    """The dead-letter queue, which feeds the reprocessor."""

    def __init__(self, client: Any, url: str, rejects_url: str) -> None:
        self._client = client
        self._url = url
        self._rejects_url = rejects_url

    def send_hint(self, guid: str, attempt: int) -> str | None:
        """Say that the row may be sent again; return why it could not be said, None if it was."""
        body = json.dumps({"guid": guid, "attempt": attempt}, separators=(",", ":"))
        return send(self._client, self._url, body)

    def put_aside(self, body: str, reason: str) -> str | None:
        """Send what is no hint to the queue of rejects; return why it could not be sent."""
        told = json.dumps({"reason": reason, "body": body[:_REJECT_CHARACTERS_MAX]})
        return send(self._client, self._rejects_url, told)


class IntakeQueue:
    """The queue of messages in, and the one of those that cannot be executed."""

    def __init__(self, client: Any, url: str, rejects_url: str) -> None:
        self._client = client
        self._url = url
        self._rejects_url = rejects_url

    def announce(self, guid: str) -> str | None:
        """Say that an accepted request waits; return why it could not be said, None if it was."""
        body = json.dumps({"guid": guid}, separators=(",", ":"))
        mark = {ACCEPTED: {"DataType": "String", "StringValue": "1"}}
        return send(self._client, self._url, body, MessageAttributes=mark)

    def come_again(self, queue: str, receipt: str) -> str | None:
        """Let a message of this queue that was given back come again in a minute, not in thirteen.

        Else one that is always given back would outlive the queue's retention before it has been
        received often enough for the dead letters. Returns why it could not be said.
        """
        if not self._url.endswith(f"/{queue}"):
            return None  # Another queue's source, under limits of its own.
        try:
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=AGAIN_S
            )
        except (BotoCoreError, ClientError) as error:
            return type(error).__name__
        return None

    def put_aside(self, document: str) -> str | None:
        """Keep a message that cannot be executed; return why it could not be, None if it was."""
        return send(self._client, self._rejects_url, document)

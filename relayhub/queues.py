"""The only SQS module: hints of what was not sent. A hint may be lost; the ledger is the truth."""

from __future__ import annotations

import json
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# One attempt and short waits: a hint that does not go out is made up for by the sweep.
_CONFIG: Final = Config(
    connect_timeout=0.5,
    read_timeout=1.0,
    retries={"mode": "standard", "total_max_attempts": 1},
)

_REJECT_CHARACTERS_MAX: Final = 4_096  # A hint has under 200; what is longer is none of ours.


def make_client() -> Any:
    """Return an SQS client with every option that matters stated."""
    return boto3.client("sqs", config=_CONFIG)


def send(client: Any, url: str, body: str) -> str | None:
    """Send one message; return why it could not be sent, None if it was."""
    try:
        client.send_message(QueueUrl=url, MessageBody=body)
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

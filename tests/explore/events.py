"""What queues and topics of a world hand to the message function, in the platform's shapes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.explore.aws import Message
from tests.message_events import BODY, Raw, kafka_event, kafka_record, sqs_message

_KEY: Final = "idempotency-key"


def request_attributes(guid: str, **more: str) -> dict[str, Any]:
    """Return the attributes of a message that is a request; boto3's form."""
    named = {_KEY: guid, "content-type": "application/json", **more}
    return {name: {"DataType": "String", "StringValue": text} for name, text in named.items()}


def of_queue(batch: Sequence[Message]) -> Raw:
    """Return the event of a batch; the messages' ids are their places."""
    return {"Records": [_record(number, each) for number, each in enumerate(batch)]}


def _record(number: int, message: Message) -> Raw:
    raw = sqs_message(None, message.body, sent_ms=message.sent_ms)
    headers = {
        name: {"stringValue": value["StringValue"], "dataType": "String"}
        for name, value in message.attributes.items()
    }
    return raw | {"messageId": str(number), "messageAttributes": headers}


def guid_of(message: Message) -> str:
    """Return the GUID that the message is about."""
    if _KEY in message.attributes:
        return str(message.attributes[_KEY]["StringValue"])
    return str(json.loads(message.body)["guid"])


@dataclass(eq=False)
class Topic:
    """A topic of one partition, and how far its reader has come."""

    guids: Sequence[str]
    sent_ms: int
    body: bytes = BODY
    offset: int = 0
    raw: list[Raw] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Write the records."""
        self.raw = [kafka_record(guid, self.body, sent_ms=self.sent_ms) for guid in self.guids]

    @property
    def is_read(self) -> bool:
        """Whether its reader has come to its end."""
        return self.offset >= len(self.raw)

    def poll(self, count: int = 2) -> tuple[int, list[Raw]]:
        """Return the next records and the first one's offset."""
        return self.offset, self.raw[self.offset : self.offset + count]

    def event(self, first: int, batch: Sequence[Raw]) -> Raw:
        """Return the event of the poll."""
        return kafka_event(batch, first=first)

    def guid(self, offset: int) -> str:
        """Return the GUID of the record at the offset."""
        return self.guids[offset]

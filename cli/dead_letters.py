"""The intake queue's dead letters: what a message there says of itself, and its way back.

The rule that it protects: a message goes back with the time of its first sending, since SQS gives
its copy a new one and the hub refuses what is older than the ledger's memory; and it is deleted
only after its copy was taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cli.stack import TellingClient
from relayhub.guids import guid_of_header, guid_of_member
from relayhub.message_event import FIRST_SENT_AT
from relayhub.strict_json import MalformedError, strict_json

ATTRIBUTES_MAX: Final = 10  # SQS's own limit for one message.
# A message that was taken waits for its turn (1 s), is sent and deleted: three tries of 25 s each,
# and as much again for pauses. A run that is killed hides one message for so long.
HIDDEN_S: Final = 300

_KEY: Final = "idempotency-key"
_LOOK_MAX: Final = 10  # SQS's own limit for one receive.
# With a wait all of SQS's servers are asked; without, a few of them, which may have none.
_WAIT_S: Final = 1
_EPOCH_MS: Final = re.compile(r"[0-9]{1,15}")
_VALUE: Final = ("DataType", "StringValue", "BinaryValue")


@dataclass(frozen=True)
class Letter:
    """A message in the dead letters; its payload is in no text that it makes of itself."""

    message_id: str
    receipt: str
    sent_ms: int
    receive_count: int
    body: str = field(repr=False)
    attributes: Mapping[str, Mapping[str, Any]] = field(repr=False)


def read_letter(message: Mapping[str, Any]) -> Letter:
    """Return what SQS's message says."""
    system = message["Attributes"]
    return Letter(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        sent_ms=int(system["SentTimestamp"]),
        receive_count=int(system["ApproximateReceiveCount"]),
        body=message["Body"],
        attributes=message.get("MessageAttributes", {}),
    )


def guid_of(letter: Letter) -> str | None:
    """Return the GUID that its attribute, else its body, names; None where none can be read."""
    keys = _named(letter, _KEY)
    try:
        if keys:
            return guid_of_header(keys[0])
        document = strict_json(letter.body.encode())
        return guid_of_member(document["guid"]) if isinstance(document, dict) else None
    except (MalformedError, KeyError):
        return None


def first_sent_ms(letter: Letter) -> int | None:
    """Return when it was first sent, in epoch ms; None if its own `first-sent-at` is no time.

    SQS keeps the time of sending when it moves a message to the dead letters by itself, so only
    what was moved back before bears another: the smaller one is the first.
    """
    stamps = _named(letter, FIRST_SENT_AT)
    if not all(map(_EPOCH_MS.fullmatch, stamps)):
        return None
    return min([letter.sent_ms, *map(int, stamps)])


def attributes_back(letter: Letter) -> dict[str, dict[str, Any]] | str:
    """Return the attributes of its copy; or why it cannot be moved, and what to do about that.

    They are its own and the time of its first sending. One that cannot be read stays as it is: the
    function puts such a message aside, and does not guess its age.
    """
    own = {
        name: {key: value[key] for key in _VALUE if key in value}
        for name, value in letter.attributes.items()
    }
    first_ms = first_sent_ms(letter)
    if first_ms is None:
        return own
    own = {name: value for name, value in own.items() if name.lower() != FIRST_SENT_AT}
    if len(own) == ATTRIBUTES_MAX:
        return (
            f"it has {ATTRIBUTES_MAX} attributes, as many as SQS takes: send it to the intake queue"
            f" yourself with one less and {FIRST_SENT_AT} = {first_ms} (String), then delete it"
            " here"
        )
    return own | {FIRST_SENT_AT: {"DataType": "String", "StringValue": str(first_ms)}}


def _named(letter: Letter, wanted: str) -> list[str]:
    """Return the texts of the attributes of that name, in whatever case, as the function does."""
    found = [value for name, value in letter.attributes.items() if name.lower() == wanted]
    return [
        each["BinaryValue"].decode(errors="replace")
        if "BinaryValue" in each
        else each.get("StringValue", "")
        for each in found
    ]


@dataclass(frozen=True)
class Depth:
    """How many messages there are to take, and how many another reader hides; both approximate."""

    there: int
    hidden: int


class DeadLetters:
    """The dead letters and the intake queue. Every call raises CommandError."""

    def __init__(self, client: TellingClient, url: str, intake_url: str) -> None:
        self._client = client
        self._url = url
        self._intake_url = intake_url

    def depth(self) -> Depth:
        """Return how many messages SQS says there are."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)
        return Depth(*(int(found["Attributes"][each]) for each in names))

    def look(self) -> list[Letter]:
        """Return some messages and hide none of them; SQS counts it as a receive of each."""
        return self._receive(_LOOK_MAX, hidden_s=0)

    def take(self) -> Letter | None:
        """Return a message, hidden from others for `HIDDEN_S`; None if there is none."""
        found = self._receive(1, hidden_s=HIDDEN_S)
        return found[0] if found else None

    def send(self, letter: Letter, attributes: Mapping[str, Any]) -> None:
        """Send a copy with the attributes to the intake queue."""
        self._client.send_message(
            QueueUrl=self._intake_url, MessageBody=letter.body, MessageAttributes=attributes
        )

    def delete(self, letter: Letter) -> None:
        """Delete what was sent back."""
        self._client.delete_message(QueueUrl=self._url, ReceiptHandle=letter.receipt)

    def give_back(self, letter: Letter) -> None:
        """Show it to others again, at once."""
        self._client.change_message_visibility(
            QueueUrl=self._url, ReceiptHandle=letter.receipt, VisibilityTimeout=0
        )

    def _receive(self, count: int, *, hidden_s: int) -> list[Letter]:
        found = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=count,
            VisibilityTimeout=hidden_s,
            WaitTimeSeconds=_WAIT_S,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
        )
        return [read_letter(each) for each in found.get("Messages", ())]

"""SQS and Kafka events: the records in them, what each asks for, and which must come again. Pure.

The rule that it protects: whatever a record holds, it is known which record it is, so that it can
be put aside or given back by name; only an event that does not name its records fails whole.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, Final

from relayhub.message import (
    ACCEPTED,
    AlreadyOverError,
    Carrier,
    MalformedError,
    MessageRules,
    Submission,
    check_guid,
    read_submission,
    strict_json,
)
from relayhub.settings import MESSAGE_AHEAD_S, Settings

FIRST_SENT_AT: Final = "first-sent-at"  # Epoch ms; a redrive sets it, since it sends anew.
_SQS: Final = "aws:sqs"
_KAFKA: Final = frozenset({"aws:kafka", "SelfManagedKafka"})
# What a request bears; any other header is the channel's own and may be of any bytes.
_HEADERS: Final = frozenset(
    {"idempotency-key", "x-operation", "content-type", "delivery", "valid-until"}
)
_MARKS: Final = frozenset({ACCEPTED, FIRST_SENT_AT})  # The hub's own, by SQS.
_EPOCH_MS: Final = re.compile(r"[0-9]{1,15}", re.ASCII)


class UnknownEventError(Exception):
    """An event that is not of the kind that the function takes, or does not name its records."""


@dataclass(frozen=True)
class Record:
    """One record as its source names it; `raw` is what the source says of it, unread.

    Records of one `lane` are taken in order; None stands for a source without an order.
    """

    source: str  # sqs:<queue> or kafka:<topic>.
    origin: Mapping[str, Any]
    identifier: Any
    lane: str | None
    raw: Mapping[str, Any]

    @property
    def is_keyed(self) -> bool:
        """Tell whether it is a Kafka record with a key, whose order others may count on."""
        return self.origin["source"] == "kafka" and self.raw.get("key") is not None


@dataclass(frozen=True)
class Batch:
    """The records of one event; `takes_part` says that its source takes a partial answer."""

    records: tuple[Record, ...]
    takes_part: bool


@dataclass(frozen=True)
class Asked:
    """What a record asks for: its own request, or (without one) an accepted request's turn.

    `fault` says why it is not to be executed: malformed, or with a request, over by its own word.
    """

    record: Record
    guid: str | None = None
    request: Submission | None = None
    fault: str = ""


def read_batch(event: Mapping[str, Any], settings: Settings) -> Batch:
    """Return the event's records. Raises UnknownEventError."""
    try:
        if event.get("eventSource") in _KAFKA:
            return Batch(tuple(_of_kafka(event["records"])), settings.kafka_partial_batches)
        return Batch(tuple(map(_of_sqs, _listed(event["Records"]))), takes_part=True)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnknownEventError(
            "This is no event of SQS or Kafka whose records can be told apart: "
            f"connect the function to such sources only ({type(error).__name__})."
        ) from None


def partial_answer(given_back: Iterable[Record]) -> dict[str, Any]:
    """Return the answer of an event source: these records come again, the rest is taken."""
    return {"batchItemFailures": [{"itemIdentifier": each.identifier} for each in given_back]}


def read(record: Record, settings: Settings, now_ms: int) -> Asked:
    """Return what the record asks for; a fault is told in it, none is raised."""
    try:
        is_sqs = record.origin["source"] == "sqs"
        headers = _headers(record.raw, is_sqs=is_sqs)
        if ACCEPTED in headers:
            return Asked(record, guid=_accepted_guid(_body(record.raw)))
        request = _request(record, headers, settings, now_ms)
    except AlreadyOverError as over:
        return Asked(record, over.submission.guid, over.submission, str(over))
    except MalformedError as error:
        return Asked(record, fault=str(error))
    return Asked(record, request.guid, request)


def contents(record: Record) -> dict[str, Any]:
    """Return what the record holds, as it came, for whoever looks at one that was put aside."""
    if record.origin["source"] == "sqs":
        return {"headers": record.raw.get("messageAttributes"), "body": record.raw.get("body")}
    return {
        "headers": record.raw.get("headers"),
        "key": record.raw.get("key"),
        "body_base64": record.raw.get("value"),
    }


def _listed(records: Any) -> list[Any]:
    """Return the records; anything else that is empty would pass for a batch all taken."""
    if not isinstance(records, list):
        raise TypeError("not a list of records")
    return records


def _of_sqs(raw: Mapping[str, Any]) -> Record:
    if raw["eventSource"] != _SQS:
        raise ValueError("not of SQS")
    message_id, queue = str(raw["messageId"]), str(raw["eventSourceARN"]).rpartition(":")[2]
    return Record(
        source=f"sqs:{queue}",
        origin={"source": "sqs", "queue": queue, "message_id": message_id},
        identifier=message_id,
        lane=queue if queue.endswith(".fifo") else None,
        raw=raw,
    )


def _of_kafka(partitions: Mapping[str, Any]) -> Iterator[Record]:
    for name, records in partitions.items():
        for raw in _listed(records):
            topic, partition, offset = raw["topic"], index(raw["partition"]), index(raw["offset"])
            yield Record(
                source=f"kafka:{topic}",
                origin={
                    "source": "kafka",
                    "topic": topic,
                    "partition": partition,
                    "offset": offset,
                },
                identifier={"partition": name, "offset": offset},
                lane=name,
                raw=raw,
            )


def _request(
    record: Record, headers: Mapping[str, str], settings: Settings, now_ms: int
) -> Submission:
    is_sqs = record.origin["source"] == "sqs"
    key = None if is_sqs or not settings.kafka_key_is_guid else _coded(record.raw, "key")
    sent_ms = _sqs_time(record.raw, headers) if is_sqs else _kafka_time(record.raw)
    if sent_ms > now_ms + (settings.clock_skew_s + MESSAGE_AHEAD_S) * 1000:
        raise MalformedError(
            "The message's time lies over an hour ahead, so nobody can tell how old it is: "
            "mend its sender's clock, or let the topic's brokers give the time."
        )
    return read_submission(
        headers=headers,
        body=_body(record.raw) if is_sqs else _coded(record.raw, "value") or b"",
        is_text=is_sqs,
        channel=settings.channel_name(record.source),
        # Whatever the setting says of HTTP: nobody waits at a queue to send it again.
        rules=MessageRules(
            settings.body_bytes_max, settings.fingerprint_fields, guid_scope=settings.guid_scope
        ),
        now_ms=now_ms,
        carrier=Carrier(key, settings.operation_of(record.source), sent_ms),
    )


def _headers(raw: Mapping[str, Any], *, is_sqs: bool) -> dict[str, str]:
    """Return the headers that count, in lower case; the rest stays unread."""
    counting = _HEADERS | _MARKS if is_sqs else _HEADERS
    found: dict[str, str] = {}
    for name, value in _pairs(raw, is_sqs=is_sqs):
        lower = name.lower()
        if lower in found:
            raise MalformedError(f"The header {lower} came twice: send it once.")
        if lower in counting:
            found[lower] = _header_text(lower, value, is_sqs=is_sqs)
    return found


def _pairs(raw: Mapping[str, Any], *, is_sqs: bool) -> list[tuple[str, Any]]:
    try:
        if is_sqs:
            return list((raw.get("messageAttributes") or {}).items())
        return [pair for header in raw.get("headers") or () for pair in header.items()]
    except (AttributeError, TypeError):
        raise MalformedError("The headers did not arrive whole: send the message again.") from None


def _header_text(name: str, value: Any, *, is_sqs: bool) -> str:
    try:
        if not is_sqs:
            # The platform writes bytes as signed numbers, as Java has them; null has none.
            return bytes(each & 0xFF for each in value or ()).decode()
        if isinstance(text := value.get("stringValue"), str):
            return text
        return base64.b64decode(value["binaryValue"], validate=True).decode()
    except (AttributeError, KeyError, TypeError, ValueError):
        raise MalformedError(f"The header {name} is not UTF-8 text: send it as such.") from None


def _body(raw: Mapping[str, Any]) -> bytes:
    try:
        return str(raw.get("body") or "").encode()
    except UnicodeEncodeError:
        raise MalformedError("The body is not text: send it as UTF-8.") from None


def _coded(raw: Mapping[str, Any], name: str) -> bytes | None:
    """Return the bytes of a Kafka record's key or value; None for null."""
    if raw.get(name) is None:
        return None
    try:
        return base64.b64decode(raw[name], validate=True)
    except (TypeError, ValueError):
        raise MalformedError(
            f"The record's {name} did not arrive whole: send the message again."
        ) from None


def _accepted_guid(body: bytes) -> str:
    document = strict_json(body)
    if not isinstance(document, dict) or document.keys() != {"guid"}:
        raise MalformedError(f"Only the hub itself sends {ACCEPTED}: send the request without it.")
    return check_guid(document["guid"])


def _sqs_time(raw: Mapping[str, Any], headers: Mapping[str, str]) -> int:
    attributes = raw.get("attributes")
    sent_ms = _epoch_ms(attributes.get("SentTimestamp") if isinstance(attributes, dict) else None)
    if FIRST_SENT_AT in headers:
        return min(sent_ms, _epoch_ms(headers[FIRST_SENT_AT]))
    return sent_ms


def _kafka_time(raw: Mapping[str, Any]) -> int:
    return _epoch_ms(raw.get("timestamp"))


def _epoch_ms(time: object) -> int:
    text = str(time)
    if not _EPOCH_MS.fullmatch(text):
        raise MalformedError(
            "The message bears no time of its own, so nobody can tell how old it is: "
            "let its sender or its broker give it one, in epoch milliseconds."
        )
    return int(text)

"""Messages in, at least once; the effect once.

A record is taken once the ledger is known to hold its request, whatever became of it, or once it
was put aside for a person. It is given back, to come again, only where no row is known to hold it:
so nothing is lost, and neither the core nor a dead holder ever blocks a queue or a partition.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from relayhub.answers import AnswerStoreError
from relayhub.flows import accept, relay
from relayhub.flows.steps import has_time_to_send
from relayhub.ledger import MESSAGES
from relayhub.message_event import Asked, Record, contents
from relayhub.replies import ACCEPTED
from relayhub.row import UnreadableRowError
from relayhub.states import Code, told
from relayhub.times import rfc3339

if TYPE_CHECKING:
    from relayhub.hub import Hub
    from relayhub.replies import Reply

# SQS takes 1 MiB; 256 KiB was its limit for long, and is a size that people can still look at.
_INLINE_BYTES_MAX: Final = 256 * 1024
_HASTEN_WORST_MS: Final = 2_000  # One call to SQS, connecting included: `queues.py`.
_ASIDE: Final = frozenset({Code.E904, Code.E907})


_UNREADABLE: Final = (
    "The ledger has a row of this GUID that this version cannot read, so it may have been executed."
    " Mend the row before anything is sent again."
)


class Taken(StrEnum):
    """What became of a record. Only GIVEN_BACK must come again."""

    RECORDED = "recorded"  # The ledger holds the request; the row says what came of it.
    DROPPED = "dropped"  # An accepted request's message, whose row did not wait for it any more.
    REJECTED = "rejected"  # Put aside, with the reason.
    GIVEN_BACK = "given_back"  # Untouched, or nobody knows whether a row holds it.


def take(hub: Hub, asked: Asked, dead_at_ms: int) -> Taken:
    """Do what the record asks for, once; `dead_at_ms` is when this function will have ended."""
    if not has_time_to_send(hub, dead_at_ms):
        return give_back(hub, asked, "too little time left")
    is_malformed = asked.request is None and asked.fault
    try:
        reply = None if is_malformed else _relay(hub, asked, dead_at_ms)
    except UnreadableRowError:
        # It would be met each time the message comes, and only a person can mend it.
        return _put_aside(hub, asked, Code.E901, _UNREADABLE)
    if reply is not None:
        return _taken(hub, asked, reply)
    if asked.fault:
        return _put_aside(hub, asked, Code.E905, asked.fault)
    return _told(hub, asked, Taken.DROPPED, None)


def _taken(hub: Hub, asked: Asked, reply: Reply) -> Taken:
    if reply.code in _ASIDE:
        words = told(reply.code, hub.settings.definite_codes)
        return _put_aside(hub, asked, Code(reply.code), words.detail)
    if not reply.is_recorded:
        return give_back(hub, asked, str(reply.code))
    if reply.code == Code.E902 and reply.status == ACCEPTED and asked.record.is_keyed:
        # The hub sends it later, and its key's next record may be executed before it.
        hub.note("order_at_risk", guid=asked.guid, **asked.record.origin)
    return _told(hub, asked, Taken.RECORDED, reply.code)


def hasten(hub: Hub, given_back: list[Record], dead_at_ms: int) -> None:
    """Let what was given back by SQS come again soon, as far as the time allows."""
    for record in given_back:
        if record.origin["source"] != "sqs" or dead_at_ms - hub.now_ms() < _HASTEN_WORST_MS:
            return
        receipt = str(record.raw.get("receiptHandle", ""))
        fault = hub.intake.come_again(record.origin["queue"], receipt)
        if fault:
            hub.note("not_hastened", reason=fault, **record.origin)


def _relay(hub: Hub, asked: Asked, dead_at_ms: int) -> Reply | None:
    if asked.request is None:
        return accept.send(hub, str(asked.guid), dead_at_ms)
    if asked.fault:
        # Over by its own word: its row is answered if it has one, but no claim is made.
        return relay.resume(hub, asked.request, dead_at_ms, MESSAGES)
    return relay.submit(hub, asked.request, dead_at_ms, MESSAGES)


def _told(hub: Hub, asked: Asked, taken: Taken, code: str | None) -> Taken:
    hub.note("message", guid=asked.guid, taken=taken, code=code, **asked.record.origin)
    return taken


def give_back(hub: Hub, asked: Asked, reason: str) -> Taken:
    """Say that the record must come again, and why."""
    hub.note("message_given_back", guid=asked.guid, reason=reason, **asked.record.origin)
    return _told(hub, asked, Taken.GIVEN_BACK, None)


def _put_aside(hub: Hub, asked: Asked, code: Code, reason: str) -> Taken:
    """Keep the record where a person finds it; if that cannot be done, it is not taken."""
    facts = {"guid": asked.guid, "code": code, "reason": reason}
    try:
        document = _document(hub, asked, facts)
    except AnswerStoreError as error:
        return give_back(hub, asked, str(error))
    fault = hub.intake.put_aside(document)
    if fault:
        return give_back(hub, asked, fault)
    hub.note("message_rejected", **facts, **asked.record.origin)
    return _told(hub, asked, Taken.REJECTED, code)


def _document(hub: Hub, asked: Asked, facts: dict[str, Any]) -> str:
    """Return the record with its origin and the reason; one too large for the queue goes to S3."""
    sent_ms = asked.request.sent_ms if asked.request else None
    origin = dict(asked.record.origin)
    head = {**facts, "origin": origin, "sent_at": None if sent_ms is None else rfc3339(sent_ms)}
    document = json.dumps(head | contents(asked.record))
    if len(document) <= _INLINE_BYTES_MAX:
        return document
    raw = json.dumps(contents(asked.record)).encode()
    stored = hub.store.put("!rejects", "-".join(map(str, origin.values())), raw)
    return json.dumps(head | {"contents_object": stored})

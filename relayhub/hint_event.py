"""SQS events of the dead-letter queue: the hints in them, and what must come again. Pure.

The rule that it protects: what a message holds never makes it come again; only an event whose
messages cannot be told apart fails whole.
"""

from __future__ import annotations

import re
from typing import Any, Final

from relayhub.flows.reprocess import Hint
from relayhub.message import MalformedError, check_guid, strict_json
from relayhub.message_event import UnknownEventError
from relayhub.strict_json import Number

# 0 is an accepted request that was never claimed.
_ATTEMPT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def read_batch(event: object) -> list[dict[str, Any]] | None:
    """Return the messages of the event; None if it brings none, as the schedule's does not.

    Raises UnknownEventError.
    """
    if isinstance(event, dict) and "Records" not in event:
        return None
    records = event.get("Records") if isinstance(event, dict) else None
    if not isinstance(records, list) or not all(map(_is_named, records)):
        raise UnknownEventError(
            "This is no event of the dead-letter queue whose messages can be told apart, nor of a"
            " schedule: connect the function to these only."
        )
    return records


def read_hint(body: object) -> Hint:
    """Return the hint that the message bears. Raises MalformedError."""
    try:
        document = strict_json(body.encode()) if isinstance(body, str) else None
    except UnicodeEncodeError:
        document = None
    if not isinstance(document, dict):
        raise MalformedError("A hint is a JSON object with a guid.")
    return Hint(check_guid(document.get("guid")), _attempt(document.get("attempt")))


def failures(message_ids: list[str]) -> dict[str, Any]:
    """Return the answer of an SQS event source: these messages come again, the rest is taken."""
    return {"batchItemFailures": [{"itemIdentifier": each} for each in message_ids]}


def _is_named(record: object) -> bool:
    return isinstance(record, dict) and isinstance(record.get("messageId"), str)


def _attempt(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, Number) and _ATTEMPT.fullmatch(value.text):
        return int(value.text)
    raise MalformedError("A hint's attempt is a whole number of at most 9 digits.")

"""SQS events of the dead-letter queue: the hints in them, and what must come again. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from relayhub.flows.reprocess import Hint
from relayhub.message import MalformedError, check_guid, strict_json
from relayhub.strict_json import Number

# 0 is an accepted request that was never claimed.
_ATTEMPT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def read_hint(body: str) -> Hint:
    """Return the hint that the message bears. Raises MalformedError."""
    document = strict_json(body.encode())
    if not isinstance(document, dict):
        raise MalformedError("A hint is a JSON object with a guid.")
    return Hint(check_guid(document.get("guid")), _attempt(document.get("attempt")))


def failures(message_ids: list[str]) -> dict[str, Any]:
    """Return the answer of an SQS event source: these messages come again, the rest is taken."""
    return {"batchItemFailures": [{"itemIdentifier": each} for each in message_ids]}


def _attempt(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, Number) and _ATTEMPT.fullmatch(value.text):
        return int(value.text)
    raise MalformedError("A hint's attempt is a whole number of at most 9 digits.")

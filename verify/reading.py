"""What an answer tells a channel, read as the channel guide says, and by no table of the hub's.

First line of the guide: an answer without a code means E901.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from verify.wire import Answer

EXECUTED: Final = re.compile(r"0000")
REFUSED: Final = re.compile(r"B2[0-9]{2}|E500")
_OWN: Final = re.compile(r"E90[1-8]")
UNCONFIRMED: Final = frozenset({"E901", "E903"})
IN_PROGRESS_STATUS: Final = 409  # What a relay without codes says (IETF's idempotency-key draft).
OTHER_REQUEST_STATUS: Final = 422  # The same.


@dataclass(frozen=True)
class Reading:
    """An answer as an obedient channel takes it; `code` None where there was none."""

    code: str | None
    executed: str = "unknown"
    resend: str = "yes"
    new_guid: str = "no"
    ask_after: datetime | None = None

    @property
    def is_definite(self) -> bool:
        """Whether the act is over: executed, refused, or never to be executed."""
        return self.code is not None and (is_core_code(self.code) or self.code == "E908")


def is_core_code(code: str) -> bool:
    """Tell whether the code is one of the core's definite ones."""
    return bool(EXECUTED.fullmatch(code) or REFUSED.fullmatch(code))


def read(answer: Answer) -> Reading:
    """Return what the answer tells."""
    document = fields_of(answer)
    code = code_of(answer)
    if code is None:
        return Reading(None)
    if "executed" in document:
        told = {name: str(document.get(name)) for name in ("executed", "resend", "new_guid")}
        return Reading(code, **told, ask_after=_time(document.get("ask_after")))
    if EXECUTED.fullmatch(code):
        return Reading(code, "yes", "no", "no")
    if REFUSED.fullmatch(code):
        return Reading(code, "no", "no", "yes")
    return Reading(code)


def fields_of(answer: Answer) -> dict[str, Any]:
    """Return the fields of a JSON object, none where the body is anything else."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def code_of(answer: Answer) -> str | None:
    """Return the code in the JSON body, else in X-Response-Code, else None."""
    code = fields_of(answer).get("code")
    return code if isinstance(code, str) else answer.headers.get("x-response-code")


def is_own_document(answer: Answer) -> bool:
    """Tell whether the answer is a relay's own document about a GUID, and no page of a gateway."""
    return {"code", "executed", "resend", "new_guid"} <= fields_of(answer).keys()


def is_own_code(code: str | None) -> bool:
    """Tell whether the code is one of the relay's own."""
    return code is not None and bool(_OWN.fullmatch(code))


def retry_after_s(answer: Answer) -> int | None:
    """Return Retry-After in seconds, None where it is missing or no number."""
    told = answer.headers.get("retry-after", "")
    return int(told) if told.isascii() and told.isdecimal() else None


def shown(answer: Answer) -> str:
    """Return the answer in a word or two, for a sentence."""
    if answer.status == 0:
        return "no answer"
    return code_of(answer) or f"an answer without a code ({answer.status})"


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

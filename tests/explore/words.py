"""What an answer tells a channel, read as the channel's guide says: by its words alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from relayhub.states import DefiniteCodes
from relayhub.times import parse_rfc3339

if TYPE_CHECKING:
    from relayhub.replies import Reply

CODES: Final = DefiniteCodes()


@dataclass(frozen=True)
class Words:
    """What a channel may go by; times are epoch ms. `is_core` says that the core itself answered.

    `has_row` says that the answer is about a row of the ledger.
    """

    executed: str
    resend: str
    new_guid: str
    ask_after_ms: int | None = None
    valid_until_ms: int | None = None
    is_core: bool = False
    has_row: bool = False


# No answer, no `code`: as E901.
NO_WORD: Final = Words("unknown", "yes", "no")
_EXECUTED: Final = Words("yes", "no", "no", is_core=True, has_row=True)
_REFUSED: Final = Words("no", "no", "yes", is_core=True, has_row=True)


@lru_cache(maxsize=4096)
def read(body: bytes) -> Words:
    """Return what the answer's body tells."""
    try:
        document = json.loads(body)
    except ValueError:
        return NO_WORD
    code = document.get("code")
    if code is None:
        return NO_WORD
    if "executed" in document:
        return _own(document)
    if not CODES.is_definite(code):
        return NO_WORD
    return _EXECUTED if CODES.is_executed(code) else _REFUSED


def of(reply: Reply | None) -> Words:
    """Return what the reply tells; None is an answer that did not come."""
    return NO_WORD if reply is None else read(reply.body)


def _own(document: dict[str, Any]) -> Words:
    return Words(
        executed=document["executed"],
        resend=document["resend"],
        new_guid=document["new_guid"],
        ask_after_ms=_ms(document["ask_after"]),
        valid_until_ms=_ms(document["valid_until"]),
        has_row=document["state"] is not None,
    )


def _ms(time: str | None) -> int | None:
    return None if time is None else parse_rfc3339(time)

"""What the hub answers a channel: the core's own bytes, or the hub's own document. Pure.

The words of the hub's own document come from the table in `states.py` alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from relayhub.row import hub_sends
from relayhub.states import CODE_OF_OPEN_STATE, NOT_KNOWN, Code, DefiniteCodes, State, Told, told
from relayhub.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from relayhub.message import Answer
    from relayhub.row import Row

PROBLEM_TYPE: Final = "application/problem+json"
JSON_TYPE: Final = "application/json"
ACCEPTED: Final = 202
BAD_REQUEST: Final = 400
_OPEN: Final = frozenset({Code.E901, Code.E903})


@dataclass(frozen=True)
class Reply:
    """An answer to a channel; `code` is what it says, for the log and the metrics.

    `is_recorded` says that the ledger is known to hold the request: a message is taken only then.
    """

    status: int
    content_type: str
    body: bytes
    code: str | None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_recorded: bool = False
    document: Mapping[str, Any] | None = None  # Of the hub's own answers alone.


def named(reply: Reply, guid: str) -> Reply:
    """Return the reply with the GUID as its channel knows it; the core's bytes stay as they are."""
    if reply.document is None or reply.document["guid"] in {None, guid}:
        return reply
    place = _location(guid) if "Location" in reply.headers else {}
    document = {**reply.document, "guid": guid}
    own = _own(document, reply.status, reply.code, {**reply.headers, **place})
    return replace(own, is_recorded=reply.is_recorded)


def code_of(row: Row) -> str:
    """Return the code that the row means to its channel now."""
    if row.hold:
        return Code.E901
    if row.state is State.DONE:
        return row.code or Code.E901
    return CODE_OF_OPEN_STATE[row.state]


def of_core(answer: Answer, row: Row, *, replayed: bool) -> Reply:
    """Return the core's answer as it came: status, type and bytes."""
    headers = {"Accepted-At": rfc3339(row.accepted_at), "Attempt": str(row.attempt)}
    if replayed:
        headers["Idempotent-Replayed"] = "true"
    return Reply(
        answer.status, answer.content_type, answer.body, answer.code, headers, is_recorded=True
    )


def of_row(row: Row, codes: DefiniteCodes, now_ms: int, *, code: str | None = None) -> Reply:
    """Return the hub's own document for the row; `code` where the row alone does not say it."""
    code = code or code_of(row)
    words = told(code, codes, hub_sends=hub_sends(row))
    status = words.status or row.response_status or BAD_REQUEST
    headers = _retry_after(_retry_after_s(words, row, now_ms))
    document = _document(words, code, row.guid, status) | _facts(row, code)
    return replace(_own(document, status, code, headers), is_recorded=True)


def of_accepted(row: Row) -> Reply:
    """Return the answer to a channel that does not wait: accepted, and where to ask (RFC 7240)."""
    words = told(Code.E903, DefiniteCodes())
    document = _document(words, Code.E903, row.guid, ACCEPTED) | _facts(row, Code.E903)
    headers = {
        **_retry_after(words.retry_after_s),
        **_location(row.guid),
        "Preference-Applied": "respond-async",
    }
    return replace(_own(document, ACCEPTED, Code.E903, headers), is_recorded=True)


def status_of(row: Row, codes: DefiniteCodes, now_ms: int) -> Reply:
    """Return what the row says of itself to a channel that asks for its status."""
    code = code_of(row)
    words = told(code, codes, hub_sends=hub_sends(row))
    facts = {
        **_facts(row, code),
        "updated_at": rfc3339(row.updated_at),
        "age_s": max(0, now_ms - row.accepted_at) // 1000,
    }
    headers = _retry_after(_retry_after_s(words, row, now_ms))
    return _own(_document(words, code, row.guid, None) | facts, 200, code, headers)


def of_cancel(row: Row, codes: DefiniteCodes) -> Reply:
    """Return what a cancel came to: done with, recorded (202), or too late (200).

    `executed` says which: a recorded cancel ends in E908 if the core turns out to have no record.
    """
    code = code_of(row)
    words = told(code, codes)
    is_settled = row.state is State.DONE and not row.hold
    document = {
        **_document(words, code, row.guid, None),
        **_facts(row, code),
        "cancelled": code == Code.E908,
    }
    return _own(document, 200 if is_settled else ACCEPTED, code, {})


def of_code(code: Code, guid: str | None, *, status: int | None = None, detail: str = "") -> Reply:
    """Return the hub's own document for a request that has no row to tell of."""
    words = told(code, DefiniteCodes())
    status = status or words.status or BAD_REQUEST
    document = _document(words, code, guid, status)
    if detail:
        document["detail"] = f"{detail} {words.detail}"
    return _own(document, status, code, _retry_after(words.retry_after_s))


def not_known(guid: str) -> Reply:
    """Return the answer for a GUID that this channel has no row of; it bears no code."""
    return _own(_document(NOT_KNOWN, None, guid, NOT_KNOWN.status), 404, None, {})


_NO_FACTS: Final = dict.fromkeys(("state", "attempt", "accepted_at", "ask_after", "valid_until"))


def _document(
    words: Told, code: str | None, guid: str | None, status: int | None
) -> dict[str, Any]:
    head = {"type": "about:blank", "title": words.title}
    if status is not None:
        head["status"] = status  # type: ignore[assignment]
    return {
        **head,
        "detail": words.detail,
        "code": code,
        "guid": guid,
        **_NO_FACTS,
        "executed": words.executed,
        "resend": words.resend,
        "new_guid": words.new_guid,
    }


def _facts(row: Row, code: str) -> dict[str, Any]:
    return {
        "state": row.state,
        "attempt": row.attempt,
        "accepted_at": rfc3339(row.accepted_at),
        # Only an open outcome has a time from which it is worth asking.
        "ask_after": rfc3339(row.ask_after) if row.ask_after and code in _OPEN else None,
        "valid_until": None if row.valid_until is None else rfc3339(row.valid_until),
    }


def _own(document: dict[str, Any], status: int, code: str | None, headers: dict[str, str]) -> Reply:
    kind = PROBLEM_TYPE if status >= BAD_REQUEST else JSON_TYPE
    return Reply(status, kind, json.dumps(document).encode(), code, headers, document=document)


def _location(guid: str) -> dict[str, str]:
    return {"Location": f"/transactions/{guid}"}


def _retry_after(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _retry_after_s(words: Told, row: Row, now_ms: int) -> int | None:
    """E903 says how long its holder may still live, at least a second; the rest is the table's."""
    if words.label == Code.E903 and row.dead_at is not None:
        return max(1, -(-(row.dead_at - now_ms) // 1000))
    return words.retry_after_s

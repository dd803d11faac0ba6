"""What a reply of the core proves.

Job: decide whether a reply is the core's definite answer, and what an inquiry's reply says.
May import: states and message (pure, no socket here).
Protects: a reply is definite only if everything about it is; any doubt is a `Reason`, no guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from relayhub.message import Answer, MalformedError, is_json, strict_json
from relayhub.states import DefiniteCodes, Verdict

# 408 and 429 are often the word of a balancer or filter, and 502-504 nearly always are
# (RFC 9110, 15.6.3-15.6.5): none of them says what the core behind it did.
GATEWAY_STATUSES = frozenset({408, 429, 502, 503, 504})
LENGTH_SHAPE = re.compile(r"[0-9]{1,18}")
STATUS_SHAPE = re.compile(r"[1-5][0-9][0-9]")
# A type that is stored and replayed must itself be a legal header value, on one line.
TYPE_SHAPE = re.compile(r"[\x20-\x7e]{0,256}")


class Reason(StrEnum):
    """Why nothing was sent, or why an outcome is in doubt; stable words for logs and metrics."""

    # Nothing of the request can have left.
    NOT_PREPARED = "not_prepared"
    HEADER_REFUSED = "header_refused"
    DNS_FAILED = "dns_failed"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_FAILED = "connect_failed"
    TLS_CERTIFICATE = "tls_certificate"
    TLS_TIMEOUT = "tls_timeout"
    TLS_FAILED = "tls_failed"
    OUT_OF_TIME = "out_of_time"
    NOT_AFTER_PASSED = "not_after_passed"
    # Something may have left, and no complete reply came back.
    WRITE_TIMEOUT = "write_timeout"
    WRITE_FAILED = "write_failed"
    NO_ANSWER = "no_answer"
    CLOSED_UNANSWERED = "closed_unanswered"
    CONNECTION_LOST = "connection_lost"
    ANSWER_TIMEOUT = "answer_timeout"
    TRUNCATED = "truncated"
    GARBLED = "garbled"
    # A reply came back that is not the core's definite answer.
    INTERIM_STATUS = "interim_status"
    REDIRECT = "redirect"
    GATEWAY_STATUS = "gateway_status"
    NO_LENGTH = "no_length"
    AMBIGUOUS_LENGTH = "ambiguous_length"
    OVERSIZED = "oversized"
    ENCODED = "encoded"
    BAD_TYPE = "bad_type"
    OTHER_GUID = "other_guid"
    NOT_JSON = "not_json"
    NO_CODE = "no_code"
    CODES_DIFFER = "codes_differ"
    UNKNOWN_CODE = "unknown_code"
    # An inquiry's reply that decides nothing.
    CORE_UNREACHABLE = "core_unreachable"
    CREDENTIALS = "credentials_unreadable"
    NO_VERDICT = "no_verdict"
    VERDICT_STATUS = "verdict_status_differs"
    OTHER_INQUIRY = "other_inquiry"
    BAD_ORIGINAL_STATUS = "bad_original_status"


# An inquiry that ended so says that the core is away for everybody, and not only for this GUID.
AWAY: Final = frozenset(
    {
        Reason.CORE_UNREACHABLE,
        Reason.GATEWAY_STATUS,
        Reason.NO_ANSWER,
        Reason.CLOSED_UNANSWERED,
        Reason.CONNECTION_LOST,
        Reason.ANSWER_TIMEOUT,
        Reason.WRITE_FAILED,
        Reason.WRITE_TIMEOUT,
    }
)


class DoubtError(Exception):
    """A reply that is not definite; `reason` says why, without a word of the payload."""

    def __init__(self, reason: Reason) -> None:
        """Keep the reason."""
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True)
class Reply:
    """A complete HTTP reply: its final status, its headers in order, its exact body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def values(self, name: str) -> tuple[str, ...]:
        """Return every value of the header, in order, without the blanks around it."""
        wanted = name.lower()
        return tuple(value.strip(" \t") for key, value in self.headers if key.lower() == wanted)


@dataclass(frozen=True)
class Finding:
    """What an inquiry found; `answer` is the original one, with PROCESSED only."""

    verdict: Verdict
    answer: Answer | None
    reason: str

    @property
    def core_is_away(self) -> bool:
        """Whether the inquiry failed in a way that every other one would, too."""
        return self.verdict is Verdict.UNDECIDED and self.reason in AWAY


def refuse_status(status: int) -> None:
    """Raise DoubtError for a final status that is never the core's own definite answer."""
    match status // 100:
        case 1:
            # http.client skips 100 only. No core is known to send another interim status, so that
            # one is not waited out: the inquiry decides.
            raise DoubtError(Reason.INTERIM_STATUS)
        case 3:
            raise DoubtError(Reason.REDIRECT)
        case 2 | 4 | 5 if status not in GATEWAY_STATUSES:
            return
        case _:
            raise DoubtError(Reason.GATEWAY_STATUS)


def declared_length(headers: tuple[tuple[str, str], ...], *, is_http11: bool) -> int | None:
    """Return the body's declared length in bytes, None for chunked.

    Raises DoubtError where the end of the body could be read in two ways, or only from the end of
    the connection (which a broken connection looks like).
    """
    head = Reply(0, headers, b"")
    lengths = head.values("content-length")
    codings = head.values("transfer-encoding")
    if codings:
        if len(codings) == 1 and codings[0].lower() == "chunked" and not lengths and is_http11:
            return None
        raise DoubtError(Reason.AMBIGUOUS_LENGTH)
    if not lengths:
        raise DoubtError(Reason.NO_LENGTH)
    if len(set(lengths)) > 1 or not LENGTH_SHAPE.fullmatch(lengths[0]):
        raise DoubtError(Reason.AMBIGUOUS_LENGTH)
    return int(lengths[0])


def judge(reply: Reply, *, guid: str, codes: DefiniteCodes) -> Answer:
    """Return the core's definite answer, or raise DoubtError; the reply is complete already."""
    refuse_status(reply.status)
    if any(value != guid for value in reply.values("x-guid")):
        raise DoubtError(Reason.OTHER_GUID)
    if any(value.lower() != "identity" for value in reply.values("content-encoding")):
        raise DoubtError(Reason.ENCODED)
    content_type = _content_type(reply)
    code = _code(reply, content_type)
    if not codes.is_definite(code):
        raise DoubtError(Reason.UNKNOWN_CODE)
    return Answer(status=reply.status, content_type=content_type, body=reply.body, code=code)


def judge_inquiry(reply: Reply, *, guid: str, inquiry_id: str, codes: DefiniteCodes) -> Finding:
    """Return what the core said became of the GUID, or raise DoubtError.

    A verdict counts only in a reply to this very inquiry about this very GUID: a cache, a mix-up
    or a proxy's own page repeats neither.
    """
    _expect_one(reply, "x-guid", guid, Reason.OTHER_GUID)
    _expect_one(reply, "x-inquiry-id", inquiry_id, Reason.OTHER_INQUIRY)
    words = reply.values("x-verdict")
    if len(words) != 1:
        raise DoubtError(Reason.NO_VERDICT)
    match words[0], reply.status:
        case "PROCESSED", 200:
            original = Reply(_original_status(reply), reply.headers, reply.body)
            _check_original(original.status)
            answer = judge(original, guid=guid, codes=codes)
            return Finding(Verdict.PROCESSED, answer, "")
        case "NOT_FOUND", 404:
            return Finding(Verdict.NOT_FOUND, None, "")
        case "PROCESSING", 202:
            return Finding(Verdict.PROCESSING, None, "")
        case (("PROCESSED" | "NOT_FOUND" | "PROCESSING"), _):
            raise DoubtError(Reason.VERDICT_STATUS)
        case _:
            raise DoubtError(Reason.NO_VERDICT)


def _expect_one(reply: Reply, name: str, expected: str, reason: Reason) -> None:
    if reply.values(name) != (expected,):
        raise DoubtError(reason)


def _check_original(status: int) -> None:
    """Refuse an original status that no answer has; it says nothing of the core being away."""
    try:
        refuse_status(status)
    except DoubtError:
        raise DoubtError(Reason.BAD_ORIGINAL_STATUS) from None


def _original_status(reply: Reply) -> int:
    values = reply.values("x-original-status")
    if len(values) != 1 or not STATUS_SHAPE.fullmatch(values[0]):
        raise DoubtError(Reason.BAD_ORIGINAL_STATUS)
    return int(values[0])


def _content_type(reply: Reply) -> str:
    values = reply.values("content-type")
    if len(set(values)) > 1:
        raise DoubtError(Reason.BAD_TYPE)
    content_type = values[0] if values else ""
    if not TYPE_SHAPE.fullmatch(content_type):
        raise DoubtError(Reason.BAD_TYPE)
    return content_type


def _code(reply: Reply, content_type: str) -> str:
    """Return the one code of the reply: the JSON body's own, or the header's for other formats."""
    in_header = reply.values("x-response-code")
    if len(in_header) > 1:
        raise DoubtError(Reason.CODES_DIFFER)
    if not is_json(content_type):
        if not in_header:
            raise DoubtError(Reason.NO_CODE)
        return in_header[0]
    in_body = _body_code(reply.body)
    if in_header and in_header[0] != in_body:
        raise DoubtError(Reason.CODES_DIFFER)
    return in_body


def _body_code(body: bytes) -> str:
    try:
        document = strict_json(body)
    except MalformedError:
        raise DoubtError(Reason.NOT_JSON) from None
    code = document.get("code") if isinstance(document, dict) else None
    if not isinstance(code, str):
        raise DoubtError(Reason.NO_CODE)
    return code

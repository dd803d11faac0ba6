"""What a channel may send, and what the hub compares: GUID, fingerprint, limits, times.

It imports the standard library and the other pure modules only. The rule that it protects: the
same request always gets the same GUID and the same fingerprint, and whatever could be read in two
ways is refused (E905) before anything is recorded.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from relayhub.guids import (
    GuidScope,
    born_ms,
    check_guid,
    guid_of,
    guid_of_header,
    guid_of_member,
    guid_of_record_key,
    key_of,
)
from relayhub.states import Delivery
from relayhub.strict_json import (
    MalformedError,
    Number,
    at_pointer,
    canonical_json,
    is_pointer,
    strict_json,
)
from relayhub.times import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ACCEPTED",
    "AlreadyOverError",
    "Answer",
    "Carrier",
    "GuidScope",
    "MalformedError",
    "MessageRules",
    "Number",
    "Submission",
    "born_ms",
    "check_guid",
    "fingerprint",
    "guid_of",
    "is_json",
    "is_operation",
    "key_of",
    "parse_rfc3339",
    "read_submission",
    "rfc3339",
    "scheme_of",
    "strict_json",
]

ACCEPTED: Final = "relayhub-accepted"  # Marks the hub's own message of an accepted request.
CONTENT_TYPE_LENGTH_MAX: Final = 200  # Room for a type with its parameters; the row bears it.
BODY_SCHEME: Final = "body"

_FIELDS_SCHEME: Final = "fields:"
_OPERATION: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # What RFC 9110 calls a token.
_CONTENT_TYPE: Final = re.compile(rf"{_WORD}/{_WORD}[ \t]*(?:;[ -~\t]*)?")
_JSON_SPACE: Final = b" \t\r\n"
_REPLACEMENT_CHARACTER: Final = "\ufffd".encode()


class AlreadyOverError(MalformedError):
    """A request whose Valid-Until has passed: well formed, but not to be executed any more.

    It bears what was read, so that a resend can still be told what became of its GUID.
    """

    def __init__(self, submission: Submission) -> None:
        super().__init__(
            "Valid-Until has passed, so nothing was sent now: "
            "ask what became of the GUID before sending it with a later time."
        )
        self.submission = submission


@dataclass(frozen=True)
class Answer:
    """A definite answer of the core, as it came."""

    status: int
    content_type: str
    body: bytes
    code: str


@dataclass(frozen=True)
class MessageRules:
    """What the settings say about requests; raises ValueError for a field that is no pointer."""

    body_bytes_max: int = 256 * 1024
    fingerprint_fields: tuple[str, ...] = ()
    delivery: Delivery = Delivery.DEFERRED
    guid_scope: GuidScope = GuidScope.GLOBAL

    def __post_init__(self) -> None:
        scheme_of(self.fingerprint_fields)


@dataclass(frozen=True)
class Submission:
    """A well-formed request of a channel; `valid_until_ms` is None when it names no time.

    `guid` is the key of its row, which the scope of GUIDs makes of the channel's own GUID.
    `sent_ms` is a message's own time, epoch ms; None for a request by HTTP.
    """

    guid: str
    channel: str
    operation: str
    body: bytes
    content_type: str
    fingerprint: str
    scheme: str
    delivery: Delivery
    valid_until_ms: int | None
    sent_ms: int | None = None


@dataclass(frozen=True)
class Carrier:
    """What a message's source says of it: a key that may be its GUID, its operation, its time."""

    key: bytes | None = None
    operation: str | None = None
    sent_ms: int | None = None


_BY_HTTP: Final = Carrier()


def read_submission(
    *,
    headers: Mapping[str, str],
    body: bytes,
    is_text: bool,
    channel: str,
    rules: MessageRules,
    now_ms: int,
    carrier: Carrier = _BY_HTTP,
) -> Submission:
    """Return the request that the channel sent; raises MalformedError, and nothing else.

    Header names arrive in lower case. `is_text` says that the body came as text, not as base64.
    """
    _check_body(body, is_text=is_text, bytes_max=rules.body_bytes_max)
    sent_type = _content_type(headers)
    key = guid_of_header(_header(headers, "idempotency-key"))
    has_key = key is not None or carrier.key is not None
    members = _json_members(body, sent_type, has_key=has_key, rules=rules)
    operation = _operation(headers, carrier.operation)
    scheme = scheme_of(rules.fingerprint_fields)
    submission = Submission(
        guid=key_of(_one_guid(key, members, carrier.key), channel, rules.guid_scope),
        channel=channel,
        operation=operation,
        body=body,
        content_type=sent_type or _default_type(members),
        fingerprint=fingerprint(operation, body, scheme),
        scheme=scheme,
        delivery=_delivery(headers, rules.delivery),
        valid_until_ms=_valid_until_ms(headers),
        sent_ms=carrier.sent_ms,
    )
    if submission.valid_until_ms is not None and submission.valid_until_ms <= now_ms:
        raise AlreadyOverError(submission)
    return submission


def scheme_of(fields: tuple[str, ...]) -> str:
    """Return the name of what a fingerprint covers; raises ValueError for a bad pointer."""
    bad = [field for field in fields if not is_pointer(field)]
    if bad:
        names = ", ".join(repr(field) for field in bad)
        raise ValueError(f"not a JSON pointer such as /amount (RFC 6901, no comma): {names}")
    return _FIELDS_SCHEME + ",".join(fields) if fields else BODY_SCHEME


def fingerprint(operation: str, body: bytes, scheme: str) -> str:
    """Return the SHA-256 in hex over the operation and the body, or its declared fields.

    Raises MalformedError when the body lacks a declared field or is not JSON, and ValueError for
    a scheme that this version does not know.
    """
    if scheme == BODY_SCHEME:
        material = body
    elif scheme.startswith(_FIELDS_SCHEME):
        document = strict_json(body)
        fields = scheme.removeprefix(_FIELDS_SCHEME).split(",")
        values = {field: at_pointer(document, field) for field in fields}
        material = canonical_json(values).encode("ascii")
    else:
        raise ValueError(f"unknown fingerprint scheme: {scheme!r}")
    return hashlib.sha256(operation.encode("utf-8") + b"\n" + material).hexdigest()


def _check_body(body: bytes, *, is_text: bool, bytes_max: int) -> None:
    if len(body) > bytes_max:
        raise MalformedError(
            f"The body has {len(body)} bytes; at most {bytes_max} are taken: send less.", status=413
        )
    if not body:
        raise MalformedError("The body is empty: send the request for the core in it.")
    if is_text and _REPLACEMENT_CHARACTER in body:
        # The front decodes text as UTF-8 and puts U+FFFD for what is not: the bytes are lost.
        raise MalformedError(
            "The body was mangled on the way, since it is not UTF-8 text: "
            "send it as application/octet-stream."
        )


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """Return a header without the white space that HTTP allows around it."""
    value = headers.get(name)
    return None if value is None else value.strip(" \t")


def _content_type(headers: Mapping[str, str]) -> str:
    """Return the content type as sent, or the empty string when there is none."""
    text = _header(headers, "content-type") or ""
    if len(text) > CONTENT_TYPE_LENGTH_MAX:
        raise MalformedError(
            f"Content-Type is longer than {CONTENT_TYPE_LENGTH_MAX} characters: shorten it."
        )
    if text and not _CONTENT_TYPE.fullmatch(text):
        raise MalformedError(
            "Content-Type is not one media type in printable ASCII: "
            "send one, such as application/json."
        )
    return text


def is_json(content_type: str) -> bool:
    """Tell whether the content type says JSON."""
    essence = content_type.partition(";")[0].strip(" \t").lower()
    return essence == "application/json" or essence.endswith("+json")


def _json_members(
    body: bytes, content_type: str, *, has_key: bool, rules: MessageRules
) -> Mapping[str, object] | None:
    """Return the JSON body's top-level members; None for a body that stays unread."""
    is_declared = is_json(content_type) or bool(rules.fingerprint_fields)
    looks_json = not content_type and body.lstrip(_JSON_SPACE).startswith(b"{")
    if has_key and not is_declared and not looks_json:
        return None
    try:
        document = strict_json(body)
    except MalformedError as error:
        if has_key or is_declared:
            raise
        raise MalformedError(
            f"There is no Idempotency-Key header, and no guid can be read. {error}"
        ) from None
    return document if isinstance(document, dict) else {}


def _default_type(members: Mapping[str, object] | None) -> str:
    """Return the type that goes to the core for a body that came without one.

    The row keeps it, so every attempt names the same. JSON is said only of what was read as JSON.
    """
    return "application/octet-stream" if members is None else "application/json"


def _one_guid(
    key: str | None, members: Mapping[str, object] | None, record_key: bytes | None
) -> str:
    """Return the GUID that the header, the body or both name; else the one that the key is."""
    named = guid_of_member(members["guid"]) if members and "guid" in members else None
    if key is not None and named is not None and key != named:
        raise MalformedError(
            "The Idempotency-Key header and the body's guid differ: "
            "send the same GUID in both, or only one of them."
        )
    guid = key or named
    if guid is None and record_key is not None:
        return guid_of_record_key(record_key)
    if guid is None:
        raise MalformedError(
            "The GUID is missing: send the Idempotency-Key header, "
            "or a JSON object with the string guid at its top level."
        )
    return guid


def is_operation(text: str) -> bool:
    """Tell whether the text may name an operation."""
    return _OPERATION.fullmatch(text) is not None


def _operation(headers: Mapping[str, str], of_source: str | None) -> str:
    """Return the operation; a source that has one of its own takes no other."""
    text = _header(headers, "x-operation")
    if text is None:
        return of_source or ""
    if not is_operation(text):
        raise MalformedError(
            "X-Operation must be 1 to 64 characters of A-Z a-z 0-9 _ . - and sent once."
        )
    if of_source is not None and text != of_source:
        raise MalformedError(
            f"X-Operation differs from what this source is for, {of_source}: "
            "send it to the source of its operation, or without X-Operation."
        )
    return text


def _delivery(headers: Mapping[str, str], default: Delivery) -> Delivery:
    text = _header(headers, "delivery")
    if text is None:
        return default
    try:
        return Delivery(text.lower())
    except ValueError:
        raise MalformedError(
            "Delivery must be deferred or interactive: send one of them, or no such header."
        ) from None


def _valid_until_ms(headers: Mapping[str, str]) -> int | None:
    text = _header(headers, "valid-until")
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except MalformedError as error:
        raise MalformedError(f"Valid-Until cannot be read. {error}") from None

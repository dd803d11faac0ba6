"""HTTP API events, payload format 2.0: what a call asks for, and the reply as it goes. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from relayhub.message import (
    AlreadyOverError,
    MalformedError,
    MessageRules,
    Submission,
    read_submission,
)
from relayhub.replies import Reply, of_code
from relayhub.settings import Settings
from relayhub.states import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

SUBMIT: Final = "POST /transactions"
STATUS: Final = "GET /transactions/{guid}"
CANCEL: Final = "POST /transactions/{guid}/cancel"
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
SOURCES: Final = ("sqs:", "kafka:")
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_NOT_WHOLE: Final = "The body did not arrive whole: send it again."


@dataclass(frozen=True)
class Call:
    """One HTTP call by an authenticated caller."""

    route: str
    identity: str
    headers: Mapping[str, str]
    body: bytes
    is_text: bool
    guid: str  # Of the path; empty without one.


def read_call(event: Mapping[str, Any], claim: str) -> Call | Reply:
    """Return the call, or the reply that refuses it: no caller (403), no such path or method.

    Raises MalformedError for a body that is not what the event says it is.
    """
    identity = _identity(event, claim)
    if not identity:
        return of_code(Code.E905, None, status=_FORBIDDEN, detail="No authenticated caller.")
    route = str(event.get("routeKey", ""))
    if route not in {SUBMIT, STATUS, CANCEL}:
        return _no_route(event)
    body, is_text = _body(event)
    headers = {str(name).lower(): str(value) for name, value in _map(event, "headers").items()}
    # A gateway may hand a path over as it was sent; no GUID has a % of its own.
    guid = unquote(str(_map(event, "pathParameters").get("guid", "")))
    return Call(route, identity, headers, body, is_text, guid)


def read_request(
    call: Call, settings: Settings, now_ms: int
) -> tuple[Submission, AlreadyOverError | None]:
    """Return the request, and the error if it is over by its own word. Raises MalformedError."""
    rules = MessageRules(
        settings.body_bytes_max,
        settings.fingerprint_fields,
        settings.delivery,
        settings.guid_scope,
    )
    try:
        request = read_submission(
            headers=call.headers,
            body=call.body,
            is_text=call.is_text,
            channel=settings.channel_name(call.identity),
            rules=rules,
            now_ms=now_ms,
        )
    except AlreadyOverError as over:
        return over.submission, over
    return request, None


def prefers_async(call: Call) -> bool:
    """Tell whether the caller prefers not to wait for the outcome (RFC 7240)."""
    plain = _QUOTED.sub("", call.headers.get("prefer", ""))
    named = (re.split(r"[;=]", each, maxsplit=1)[0] for each in plain.split(","))
    return any(each.strip().lower() == "respond-async" for each in named)


def to_response(reply: Reply) -> dict[str, Any]:
    """Return the reply as the gateway takes it; base64 keeps every byte of any body."""
    return {
        "statusCode": reply.status,
        "headers": {"Content-Type": reply.content_type, **reply.headers},
        "body": base64.b64encode(reply.body).decode("ascii"),
        "isBase64Encoded": True,
    }


def _map(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = source.get(name) if isinstance(source, dict) else None
    return value if isinstance(value, dict) else {}


def _identity(event: Mapping[str, Any], claim: str) -> str | None:
    """Return who calls, without the session: a new session of a role is the same channel."""
    authorizer = _map(_map(event, "requestContext"), "authorizer")
    user = _map(authorizer, "iam").get("userId")
    if user:
        return str(user).partition(":")[0]
    named = _map(_map(authorizer, "jwt"), "claims").get(claim)
    # A queue's or a topic's own name is no caller's.
    return str(named) if named and not str(named).startswith(SOURCES) else None


def _no_route(event: Mapping[str, Any]) -> Reply:
    path = [part for part in str(event.get("rawPath", "")).split("/") if part]
    allowed = None
    if path[:1] == ["transactions"]:
        allowed = {1: "POST", 2: "GET", 3: "POST" if path[2:] == ["cancel"] else None}.get(
            len(path)
        )
    method = _map(_map(event, "requestContext"), "http").get("method")
    if allowed is None or method == allowed:
        return of_code(Code.E905, None, status=_NOT_FOUND, detail="There is no such path.")
    detail = f"This path takes {allowed} only."
    refused = of_code(Code.E905, None, status=_NOT_ALLOWED, detail=detail)
    headers = {**refused.headers, "Allow": allowed}
    return Reply(refused.status, refused.content_type, refused.body, refused.code, headers)


def _body(event: Mapping[str, Any]) -> tuple[bytes, bool]:
    body = event.get("body") or ""
    if not isinstance(body, str):
        raise MalformedError(_NOT_WHOLE)
    if event.get("isBase64Encoded"):
        try:
            return base64.b64decode(body, validate=True), False
        except (binascii.Error, ValueError):
            raise MalformedError(_NOT_WHOLE) from None
    try:
        return body.encode(), True
    except UnicodeEncodeError:
        raise MalformedError("The body is not text: send it as application/octet-stream.") from None

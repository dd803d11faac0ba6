"""HTTP API events (payload 2.0) as the gateway hands them to the relay's function."""

from __future__ import annotations

import base64
from typing import Any


def post_event(
    guid: str | None = "G-1",
    body: bytes = b'{"amount":100}',
    *,
    channel: str = "atm",
    headers: dict[str, str] | None = None,
    is_text: bool = False,
) -> dict[str, Any]:
    """Return the HTTP API's event of a POST."""
    key = {} if guid is None else {"idempotency-key": guid}
    coded = body.decode() if is_text else base64.b64encode(body).decode()
    return {
        **_event("POST /transactions", "/transactions", channel),
        "headers": {"content-type": "application/json", **key, **(headers or {})},
        "body": coded,
        "isBase64Encoded": not is_text,
    }


def get_event(guid: str, channel: str = "atm") -> dict[str, Any]:
    """Return the HTTP API's event of a GET of the status."""
    event = _event("GET /transactions/{guid}", f"/transactions/{guid}", channel)
    return {**event, "headers": {}, "pathParameters": {"guid": guid}}


def _event(route: str, path: str, channel: str) -> dict[str, Any]:
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "requestContext": {"authorizer": {"iam": {"userId": f"{channel}:session-1"}}},
    }

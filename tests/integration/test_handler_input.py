"""Bad input: a clear E905, nothing recorded, the core untouched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.test_handler import FIELDS
from tests.world import World, document, get_event, post_event


def key(value: str, **more: Any) -> dict[str, Any]:
    """Return a POST with that header."""
    return post_event(None, headers={"idempotency-key": value}, **more)


def member(text: bytes) -> dict[str, Any]:
    """Return a POST with that body and no header."""
    return post_event(None, text)


BAD: list[Any] = [
    pytest.param(post_event(None), 400, "missing", id="missing"),
    pytest.param(key(""), 400, "empty", id="empty_header"),
    pytest.param(key('""'), 400, "empty", id="empty_quoted"),
    pytest.param(key("g" * 129), 400, "longer than 128", id="129_characters"),
    pytest.param(key("a\r\nb"), 400, "line break", id="CR_LF"),
    pytest.param(key("gü"), 400, "outside ASCII", id="non_ASCII"),
    pytest.param(key("a b"), 400, "not allowed", id="blank_inside"),
    pytest.param(key("-a"), 400, "letter or digit", id="first_character"),
    pytest.param(key("!gate"), 400, "not allowed", id="own_key"),
    pytest.param(key("G-1,G-2"), 400, "Two Idempotency-Key", id="two_keys"),
    pytest.param(member(b'{"guid":null}'), 400, "null", id="null"),
    pytest.param(member(b'{"guid":["G"]}'), 400, "a list", id="list"),
    pytest.param(member(b'{"guid":7}'), 400, "a number", id="number"),
    pytest.param(member(b'{"guid":""}'), 400, "empty", id="empty_member"),
    pytest.param(member(b'{"guid":"a","guid":"a"}'), 400, "same key twice", id="duplicate_keys"),
    pytest.param(member(b'{"guid":NaN}'), 400, "NaN", id="NaN"),
    pytest.param(member(b"[" * 65 + b"]" * 65), 400, "nested", id="depth"),
    pytest.param(member(b'{"guid":"G-1"'), 400, "not valid", id="broken_JSON"),
    pytest.param(post_event("G-1", b'{"guid":"G-2"}'), 400, "differ", id="header_and_body"),
    pytest.param(post_event("G-1", b""), 400, "empty", id="no_body"),
    pytest.param(post_event("G-1", b"x" * 262_145), 413, "262144", id="too_large"),
    pytest.param(
        post_event("G-1", "{\ufffd}".encode(), is_text=True), 400, "octet-stream", id="mangled"
    ),
    pytest.param(post_event(headers={"x-operation": "a b"}), 400, "X-Operation", id="operation"),
    pytest.param(post_event(headers={"delivery": "soon"}), 400, "Delivery", id="delivery"),
    pytest.param(
        post_event(headers={"valid-until": "2030-01-01T00:00:00"}), 400, "offset", id="no_offset"
    ),
    pytest.param({**post_event(), "body": "%%%"}, 400, "arrive whole", id="not_base64"),
    pytest.param({**post_event(), "body": None}, 400, "empty", id="null_body"),
    pytest.param(
        {**post_event(is_text=True), "body": "\ud800"}, 400, "octet-stream", id="lone_surrogate"
    ),
    pytest.param(get_event("g" * 129), 400, "longer than 128", id="GET_129_characters"),
    pytest.param(get_event("!gate"), 400, "not allowed", id="GET_own_key"),
    pytest.param({**get_event("G-1"), "pathParameters": None}, 400, "GUID", id="GET_no_guid"),
]


@pytest.mark.parametrize(("event", "status", "word"), BAD)
def test_bad_input_is_refused_before_anything_is_recorded(
    world: World, event: dict[str, Any], status: int, word: str
) -> None:
    """E905 with a sentence that says what is wrong; no DynamoDB request, the core untouched."""
    reply = world.call(event)
    told = document(reply)
    assert (reply.status, told["code"], told["executed"]) == (status, "E905", "unknown")
    assert reply.content_type == "application/problem+json"
    assert word in told["detail"]
    assert set(told) >= FIELDS
    assert (world.dynamo.calls, world.core.sent, world.s3.calls, world.sqs.calls) == (
        [],
        [],
        [],
        [],
    )


def test_a_body_at_the_limit_is_taken(world: World) -> None:
    """256 KiB, and the row still bears it."""
    body = b'"' + b"x" * (262_144 - 2) + b'"'
    assert world.post(body=body).code == "0000"
    assert world.core.sent[0].body == body
    assert world.held().request == body


def test_invalid_json_is_refused_where_fields_are_declared(make_world: Any) -> None:
    """They could not be compared; neither can a body that lacks one."""
    world = make_world(fingerprint_fields=("/amount",))
    plain = {"content-type": "text/plain"}
    for body in (b"amount=1", b'{"other":1}'):
        reply = world.post(body=body, headers=plain)
        assert (reply.status, reply.code) == (400, "E905")
    assert world.dynamo.calls == []

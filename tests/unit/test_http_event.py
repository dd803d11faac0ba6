"""HTTP API events: who calls, for what, with which bytes; and the reply as the gateway takes it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from relayhub.http_event import STATUS, SUBMIT, Call, prefers_async, read_call, to_response
from relayhub.message import MalformedError
from relayhub.replies import Reply
from tests.world import get_event, post_event


def call_of(event: dict[str, Any], claim: str = "sub") -> Call:
    """Return the call, which must be one."""
    call = read_call(event, claim)
    assert isinstance(call, Call)
    return call


def test_a_post_is_its_bytes() -> None:
    """base64 brings every byte; that is no text."""
    body = bytes(range(256))
    call = call_of(post_event("G-1", body))
    assert (call.route, call.identity) == (SUBMIT, "atm")
    assert (call.body, call.is_text) == (body, False)
    assert call.headers["idempotency-key"] == "G-1"


def test_a_text_is_utf_8_again() -> None:
    """As it left the channel, if it was that."""
    call = call_of(post_event("G-1", "取引".encode(), is_text=True))
    assert (call.body, call.is_text) == ("取引".encode(), True)


def test_header_names_are_in_lower_case() -> None:
    """However the gateway spells them."""
    event = post_event("G-1", headers={"X-Operation": "transfer"})
    assert call_of(event).headers["x-operation"] == "transfer"


def test_a_get_has_its_guid() -> None:
    """From the path."""
    call = call_of(get_event("G-1"))
    assert (call.route, call.guid, call.body) == (STATUS, "G-1", b"")


@pytest.mark.parametrize(
    ("user", "identity"),
    [
        ("AIDA1", "AIDA1"),
        ("AROA1:session", "AROA1"),
        ("AROA1:a:b", "AROA1"),
    ],
)
def test_a_session_is_no_part_of_the_channel(user: str, identity: str) -> None:
    """IAM: userId up to the colon."""
    event = post_event()
    event["requestContext"] = {"authorizer": {"iam": {"userId": user}}}
    assert call_of(event).identity == identity


def test_a_session_alone_is_nobody() -> None:
    """An empty name before the colon would be one channel for all."""
    event = post_event()
    event["requestContext"] = {"authorizer": {"iam": {"userId": ":session"}}}
    found = read_call(event, "sub")
    assert isinstance(found, Reply)
    assert found.status == 403


@pytest.mark.parametrize("claim", ["sub", "client_id"])
def test_a_tokens_claim_is_the_channel(claim: str) -> None:
    """Whole, colons included."""
    event = post_event()
    claims = {"sub": "a:1", "client_id": "b:2"}
    event["requestContext"] = {"authorizer": {"jwt": {"claims": claims}}}
    assert call_of(event, claim).identity == claims[claim]


@pytest.mark.parametrize("body", ["%%%", "AA", "AAA", "QUJ D", "ÄÄÄÄ"])
def test_what_is_not_base64_did_not_arrive(body: str) -> None:
    """Never decoded halfway."""
    with pytest.raises(MalformedError, match="did not arrive whole"):
        read_call({**post_event(), "body": body}, "sub")


@pytest.mark.parametrize("event", [{"headers": None}, {"pathParameters": []}, {"body": None}])
def test_an_event_with_holes_is_still_a_call(event: dict[str, Any]) -> None:
    """What is missing is empty."""
    call = call_of({**post_event(), **event})
    assert call.identity == "atm"


def test_a_reply_goes_in_base64_whatever_it_is() -> None:
    """Text too: no gateway re-codes what it does not read."""
    body = bytes(range(256))
    response = to_response(Reply(201, "text/plain", body, "0000", {"Attempt": "1"}))
    assert response == {
        "statusCode": 201,
        "headers": {"Content-Type": "text/plain", "Attempt": "1"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("respond-async", id="alone"),
        pytest.param("Respond-ASYNC", id="other_case"),
        pytest.param(" \trespond-async\t", id="blanks"),
        pytest.param("respond-async; wait=10", id="parameter"),
        pytest.param("respond-async;wait", id="bare_parameter"),
        pytest.param('respond-async; note="a, b"', id="quoted_parameter"),
        pytest.param("respond-async, wait=100", id="first_of_two"),
        pytest.param("return=minimal, respond-async", id="second_of_two"),
        pytest.param("return=minimal; foo,respond-async ,wait=5", id="among_others"),
        pytest.param('a="x, y",respond-async', id="after_a_quoted_comma"),
        pytest.param('a="\\", b", respond-async', id="after_an_escaped_quote"),
        pytest.param(',, "" , respond-async', id="after_nothing"),
        pytest.param("respond-async=", id="empty_value"),
        pytest.param('respond-async=""', id="empty_quotes"),
        pytest.param("respond-async, respond-async", id="twice"),
    ],
)
def test_a_caller_may_prefer_not_to_wait(text: str) -> None:
    """Prefer is a list of preferences, each with parameters; names are the same in either case."""
    assert prefers_async(call_of(post_event("G-1", headers={"Prefer": text})))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("wait=10", id="another"),
        pytest.param("respond-asynchronously", id="longer"),
        pytest.param("x-respond-async", id="other_name"),
        pytest.param("respond async", id="two_words"),
        pytest.param("return=respond-async", id="value"),
        pytest.param('return="respond-async"', id="quoted_value"),
        pytest.param('a="x, respond-async, y"', id="within_quotes"),
        pytest.param('a="x\\", respond-async, y"', id="after_an_escaped_quote"),
        pytest.param("return=minimal; respond-async", id="anothers_parameter"),
        pytest.param('"respond-async"', id="quoted"),
        pytest.param("wait=10; a=respond-async, b", id="parameters_value"),
    ],
)
def test_no_other_preference_is_taken_for_it(text: str) -> None:
    """What is not understood is ignored (RFC 7240, 2)."""
    assert not prefers_async(call_of(post_event("G-1", headers={"Prefer": text})))


def test_without_the_header_the_caller_waits() -> None:
    """And so it was before there was such a header."""
    assert not prefers_async(call_of(post_event()))


@pytest.mark.parametrize("event", [None, [], "event", 7], ids=repr)
def test_what_is_no_event_has_no_caller(event: Any) -> None:
    """403, as without an authoriser."""
    reply = read_call(event, "sub")
    assert isinstance(reply, Reply)
    assert (reply.status, reply.code) == (403, "E905")


@pytest.mark.parametrize("body", [{"a": 1}, ["eA=="], 7, True], ids=repr)
@pytest.mark.parametrize("is_coded", [False, True], ids=["text", "base64"])
def test_a_body_that_is_no_text_did_not_arrive_whole(body: object, *, is_coded: bool) -> None:
    """Malformed, not in doubt: nothing was read of it, so nothing can have been sent."""
    event = {**post_event(), "body": body, "isBase64Encoded": is_coded}
    with pytest.raises(MalformedError, match="did not arrive whole"):
        read_call(event, "sub")

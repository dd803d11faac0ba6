"""Who a channel is, and what it cannot learn of another: nothing but that a GUID is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from relayhub.core import Answered
from relayhub.message import Answer
from relayhub.replies import PROBLEM_TYPE, Reply, of_code
from relayhub.states import Code
from tests.maintenance import cancel
from tests.message_events import post_async
from tests.plant import Works
from tests.world import document, get_event, post_event

LARGE: Final = Answer(200, "application/json", b'{"code":"0000"}' + b" " * 400_000, "0000")


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


def large(works: Works) -> None:
    """Make a DONE row whose answer lies in the bucket."""
    works.core.outcomes.append(Answered(LARGE))
    works.post()


def parked(works: Works) -> None:
    """Make a FAILED row that only its channel's resend moves on."""
    works.fail()
    works.edit(parked="cap")


def held(works: Works) -> None:
    """Make a row that only a person moves on."""
    works.doubt()
    works.edit(hold="operator")


ROWS: Final[dict[str, Callable[[Works], object]]] = {
    "RECEIVED": post_async,
    "SENT": Works.kill,
    "UNKNOWN": Works.doubt,
    "FAILED": Works.fail,
    "parked": parked,
    "held": held,
    "DONE": Works.post,
    "large": large,
    "cancelled": cancel,
}


def told(works: Works, call: Callable[[], Reply], guid: str) -> tuple[Any, ...]:
    """Return all that a caller can see of an answer, its GUID left out, and what it cost."""
    done = (len(works.dynamo.calls), len(works.s3.calls), len(works.sqs.calls))
    reply = call()
    cost = works.dynamo.calls[done[0] :], works.s3.calls[done[1] :], works.sqs.calls[done[2] :]
    body = reply.body.replace(guid.encode(), b"?")
    return reply.status, reply.content_type, dict(reply.headers), body, cost


@pytest.mark.parametrize("make", ROWS.values(), ids=ROWS)
def test_a_status_of_another_channels_guid_is_that_of_an_absent_one(
    works: Works, make: Callable[[Works], object]
) -> None:
    """404, the same bytes but for the GUID, after the same single read."""
    make(works)
    theirs = told(works, lambda: works.get("G-1", channel="app"), "G-1")
    absent = told(works, lambda: works.get("G-9", channel="app"), "G-9")
    assert theirs == absent
    assert (theirs[0], theirs[-1]) == (404, (["get_item"], [], []))


CALLS: Final[dict[str, tuple[Callable[[Works], Reply], str]]] = {
    "post": (lambda works: works.post(channel="app"), "put_item"),
    "post_async": (lambda works: post_async(works, channel="app"), "put_item"),
    "post_over": (
        lambda works: works.post(channel="app", headers={"valid-until": "2020-01-01T00:00:00Z"}),
        "get_item",
    ),
    "cancel": (lambda works: cancel(works, channel="app"), "put_item"),
}


@pytest.mark.parametrize(("call", "request_made"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("make", ROWS.values(), ids=ROWS)
def test_a_guid_that_is_taken_is_refused_in_one_way_whatever_its_row(
    works: Works,
    make: Callable[[Works], object],
    call: Callable[[Works], Reply],
    request_made: str,
) -> None:
    """E904, the same bytes after the same single request: the row itself tells nothing."""
    make(works)
    before, sends = works.item(), len(works.core.sent)
    answer = told(works, lambda: call(works), "G-1")
    refusal = of_code(Code.E904, "?")
    assert answer == (422, PROBLEM_TYPE, {}, refusal.body, ([request_made], [], []))
    assert (works.item(), len(works.core.sent)) == (before, sends)


# What a caller may write into a request, and what some front might have put there for a hub that
# believes it.
CLAIMED: Final = {
    "x-channel": "atm",
    "channel": "atm",
    "x-channel-id": "atm",
    "x-user-id": "atm",
    "x-amzn-oidc-identity": "atm",
    "x-amzn-iam-user-id": "atm",
    "x-forwarded-user": "atm",
    "x-forwarded-for": "atm",
    "x-apigateway-context": '{"authorizer":{"iam":{"userId":"atm"}}}',
    "authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhdG0ifQ.",
    "cookie": "channel=atm",
}


def with_claims(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with everything in it that its caller can set saying that it is atm."""
    return {
        **event,
        "headers": {**event["headers"], **CLAIMED},
        "queryStringParameters": {"channel": "atm", "userId": "atm"},
        "cookies": ["channel=atm"],
        "stageVariables": {"channel": "atm"},
        "authorizer": {"iam": {"userId": "atm"}},
        "identity": {"userArn": "atm"},
    }


def test_a_channel_is_who_the_gateway_says_and_never_who_the_caller_says(works: Works) -> None:
    """No header, query, cookie or member of the body names a channel."""
    works.post()
    body = b'{"amount":100,"channel":"atm","userId":"atm"}'
    assert works.call(with_claims(get_event("G-1", "app"))).status == 404
    assert works.call(with_claims(post_event("G-1", channel="app"))).code == "E904"
    assert works.call(with_claims(post_event("G-2", body, channel="app"))).code == "0000"
    assert works.held("G-2").channel == "app"


@pytest.mark.parametrize("event", [get_event("G-1"), post_event()], ids=["get", "post"])
def test_a_caller_whom_the_gateway_does_not_name_is_nobody(
    works: Works, event: dict[str, Any]
) -> None:
    """403 whatever it claims; there is no channel for those that have none."""
    works.post()
    calls = len(works.dynamo.calls)
    contexts: list[Any] = [{}, {"authorizer": {}}, {"http": {"sourceIp": "192.0.2.1"}}, None]
    for context in contexts:
        reply = works.call(with_claims({**event, "requestContext": context}))
        assert (reply.status, reply.code, document(reply)["guid"]) == (403, "E905", None)
    assert len(works.dynamo.calls) == calls


@pytest.mark.parametrize("name", ["sqs:relayhub-intake", "kafka:receipts"])
def test_a_token_never_names_a_source_of_messages(works: Works, name: str) -> None:
    """What came by a queue belongs to the queue's own channel."""
    context = {"authorizer": {"jwt": {"claims": {"sub": name}}}}
    assert works.call({**post_event(), "requestContext": context}).status == 403


def test_an_identity_of_one_authorizer_is_not_taken_from_the_other(works: Works) -> None:
    """A signed caller's claims do not count: only the gateway of tokens fills them."""
    both = {"iam": {"userId": "app:session"}, "jwt": {"claims": {"sub": "atm"}}}
    works.call({**post_event(), "requestContext": {"authorizer": both}})
    assert works.held().channel == "app"

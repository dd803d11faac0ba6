"""The HTTP function: who may call, what is refused before anything happens, what is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relayhub.core import Doubt, NotSent
from relayhub.replies import Reply
from relayhub.states import Event
from tests.world import World, document, get_event, post_event

FIELDS = {
    "code",
    "guid",
    "state",
    "attempt",
    "accepted_at",
    "executed",
    "resend",
    "new_guid",
    "ask_after",
    "valid_until",
}


def without_caller(event: dict[str, Any], authorizer: Any) -> dict[str, Any]:
    """Return the event with another authorizer block."""
    return {**event, "requestContext": {"authorizer": authorizer}}


NOBODY: list[Any] = [
    pytest.param({}, id="no_authorizer"),
    pytest.param(None, id="null"),
    pytest.param({"iam": {}}, id="empty_iam"),
    pytest.param({"iam": {"userId": ""}}, id="empty_user"),
    pytest.param({"iam": None, "jwt": None}, id="nulls"),
    pytest.param({"jwt": {"claims": {}}}, id="no_claim"),
    pytest.param({"jwt": {"claims": {"sub": ""}}}, id="empty_claim"),
    pytest.param({"jwt": {"claims": {"client_id": "app"}}}, id="another_claim"),
    pytest.param("atm", id="a_text"),
]


@pytest.mark.parametrize("authorizer", NOBODY)
def test_nobody_gets_past_the_door(world: World, authorizer: Any) -> None:
    """403 before anything else: no request, whatever the path, the method or the body."""
    wrong = {**post_event(None, b""), "routeKey": "$default", "rawPath": "/x"}
    for event in (post_event(), get_event("G-1"), wrong):
        reply = world.call(without_caller(event, authorizer))
        assert reply.status == 403
        assert set(document(reply)) >= FIELDS
    assert (world.dynamo.calls, world.core.sent) == ([], [])


def test_an_event_without_any_context_is_nobodys(world: World) -> None:
    """The same for an event that is none."""
    assert world.call({}).status == 403


@pytest.mark.parametrize(
    ("route", "path", "status", "allowed"),
    [
        ("$default", "/", 404, None),
        ("$default", "/payments", 404, None),
        ("$default", "/transactions/G-1/other", 404, None),
        ("$default", "/transactions", 405, "POST"),
        ("$default", "/transactions/G-1", 405, "GET"),
        ("$default", "/transactions/G-1/cancel", 405, "POST"),
    ],
)
def test_a_wrong_path_or_method_is_the_hubs_own_answer(
    world: World, route: str, path: str, status: int, allowed: str | None
) -> None:
    """404, or 405 with what the path does take; nothing is read or written."""
    event = {**post_event(), "routeKey": route, "rawPath": path}
    reply = world.call(event)
    assert (reply.status, reply.headers.get("Allow")) == (status, allowed)
    assert document(reply)["code"] == "E905"
    assert (world.dynamo.calls, world.core.sent) == ([], [])


@pytest.mark.parametrize("make", [World.post, World.doubt, World.fail, World.kill])
def test_another_channels_guid_looks_like_an_absent_one(world: World, make: Any) -> None:
    """The very same document, but for the GUID: nothing tells that there is a row."""
    make(world)
    theirs, absent = world.get("G-1", channel="app"), world.get("G-9", channel="app")
    assert (theirs.status, theirs.headers, theirs.content_type) == (
        absent.status,
        absent.headers,
        absent.content_type,
    )
    assert theirs.body.replace(b"G-1", b"G-9") == absent.body
    assert theirs.status == 404
    told = document(theirs)
    assert (told["executed"], told["resend"], told["new_guid"]) == ("unknown", "yes", "no")
    assert "not known yet" in told["title"]


def test_a_new_session_of_a_role_is_the_same_channel(world: World) -> None:
    """What follows the colon of userId is the session."""
    event = post_event()
    event["requestContext"] = {"authorizer": {"iam": {"userId": "AROA1:session-2"}}}
    other = {**event, "requestContext": {"authorizer": {"iam": {"userId": "AROA1:other"}}}}
    assert (world.call(event).code, world.call(other).code) == ("0000", "0000")
    assert (world.held().channel, len(world.core.sent)) == ("AROA1", 1)


@pytest.mark.parametrize("claim", ["sub", "client_id"])
def test_a_token_names_its_channel_by_the_claim_of_the_setting(make_world: Any, claim: str) -> None:
    """A subject or a client."""
    world = make_world(channel_claim=claim)
    claims = {"sub": "user-1", "client_id": "app-1"}
    event = without_caller(post_event(), {"jwt": {"claims": claims}})
    world.call(event)
    assert world.held().channel == claims[claim]


def test_several_identities_may_be_one_channel(make_world: Any) -> None:
    """HTTP first, another way as the fallback: one act, one row."""
    world = make_world(channel_names=(("app", "mobile"), ("app-old", "mobile")))
    assert world.post(channel="app").code == "0000"
    assert world.post(channel="app-old").headers["Idempotent-Replayed"] == "true"
    assert world.get(channel="app").status == 200
    assert len(world.core.sent) == 1


def test_a_guid_is_one_in_either_case(world: World) -> None:
    """A UUID that is spelt otherwise on the resend is no new act; GET takes either."""
    guid = "5F0C9A3E-1B2D-4C6F-8A7B-0000000000AB"
    world.post(guid)
    assert world.post(guid.lower()).headers["Idempotent-Replayed"] == "true"
    assert document(world.get(guid))["guid"] == guid.lower()
    assert len(world.core.sent) == 1


def test_whatever_goes_wrong_inside_is_in_doubt(world: World) -> None:
    """E901 with every field, and not a word of the fault or where it was."""

    def break_down() -> None:
        raise RuntimeError("a-secret-word")

    world.core.during.append(break_down)
    reply = world.post()
    told = document(reply)
    assert (reply.status, told["code"], told["executed"]) == (504, "E901", "unknown")
    assert (told["guid"], world.notes[-1][1]["guid"]) == ("G-1", "G-1")
    assert set(told) >= FIELDS
    assert b"a-secret-word" not in reply.body
    assert b"Traceback" not in reply.body
    assert world.post().code == "E903"


def not_sent(world: World, **headers: str) -> Reply:
    """POST what the core never gets."""
    world.core.outcomes.append(NotSent("connect_refused"))
    return world.post(headers=headers)


def in_doubt(world: World) -> Reply:
    """POST what the core leaves without an answer."""
    world.core.outcomes.append(Doubt("no_answer", aborted=True))
    return world.post()


def in_progress(world: World) -> Reply:
    """Resend while the row is SENT."""
    world.kill()
    return world.post()


def other(world: World) -> Reply:
    """Use a GUID for another request."""
    world.post()
    return world.post(body=b'{"amount":7}')


def no_time(world: World) -> Reply:
    """Come with too little time."""
    return world.call(post_event(), left_ms=1_000)


def expired(world: World) -> Reply:
    """Resend a FAILED row that is not valid any more."""
    world.fail()
    world.clock.advance(90_000)
    return world.post()


def unreadable(world: World) -> Reply:
    """Replay an answer whose object is gone."""
    world.post()
    world.edit(response=None, response_object={"key": "x", "bytes": 1, "sha256": "0"})
    return world.post()


def row(
    make: Any, status: int, code: str, words: tuple[str, str, str], retry: str | None = None
) -> Any:
    """Return one line of the table of what each code tells."""
    return pytest.param(make, status, code, words, retry, id=f"{code}-{status}")


TOLD: list[Any] = [
    row(lambda w: w.post(None), 400, "E905", ("unknown", "yes", "no")),
    row(lambda w: w.post(body=b"x" * 262_145), 413, "E905", ("unknown", "yes", "no")),
    row(no_time, 503, "E906", ("unknown", "yes", "no"), "1"),
    row(other, 422, "E904", ("unknown", "no", "no")),
    row(expired, 410, "E908", ("no", "yes", "yes")),
    row(in_doubt, 504, "E901", ("unknown", "yes", "no")),
    row(in_progress, 409, "E903", ("unknown", "yes", "no"), "25"),
    row(not_sent, 202, "E902", ("no", "yes", "after_cancel")),
    row(
        lambda w: not_sent(w, delivery="interactive"),
        *(503, "E902", ("no", "yes", "after_cancel"), "30"),
    ),
    row(unreadable, 200, "0000", ("yes", "yes", "no")),
]


@pytest.mark.parametrize(("make", "status", "code", "words", "retry"), TOLD)
def test_every_answer_of_the_hubs_own_bears_every_field(
    world: World, *, make: Any, status: int, code: str, words: tuple[str, str, str], retry: str
) -> None:
    """Code, status, what was executed, what may be sent again; problem+json but for 2xx."""
    reply = make(world)
    told = document(reply)
    assert set(told) >= FIELDS | {"type", "title", "status", "detail"}
    assert (reply.status, told["status"], told["code"]) == (status, status, code)
    if code == "E908":
        words = ("no", told["resend"], "yes")
    if code == "0000":
        words = ("yes", told["resend"], "no")
    assert (told["executed"], told["resend"], told["new_guid"]) == words
    assert reply.headers.get("Retry-After") == retry
    kind = "application/problem+json" if status >= 400 else "application/json"
    assert reply.content_type == kind
    assert (told["guid"] == "G-1") == (code != "E905")


def test_a_status_tells_all_that_the_row_says(world: World) -> None:
    """200 with the state, the code, the times and the age in whole seconds."""
    world.doubt()
    world.clock.advance(61.5)
    reply = world.get()
    told = document(reply)
    assert (reply.status, reply.content_type) == (200, "application/json")
    assert told == {
        **told,
        "code": "E901",
        "guid": "G-1",
        "state": "UNKNOWN",
        "attempt": 1,
        "accepted_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
        "age_s": 61,
        "ask_after": "2027-01-15T08:01:05.000Z",
        "valid_until": "2027-01-16T08:00:00.000Z",
        "executed": "unknown",
        "resend": "yes",
        "new_guid": "no",
    }


@pytest.mark.parametrize("make", [World.post, World.doubt, World.fail, World.kill])
def test_a_status_never_bears_the_cores_bytes(world: World, make: Any) -> None:
    """It is the hub's own document, for a DONE row too."""
    make(world)
    told = json.loads(world.get().body)
    assert set(told) >= FIELDS
    assert "reference" not in told
    assert "request" not in told


def test_a_held_rows_status_is_in_doubt(world: World) -> None:
    """A person looks at it: neither executed nor not."""
    world.post()
    world.move(Event.HELD, by="operator", hold="operator", expires_at=None)
    told = document(world.get())
    assert (told["code"], told["executed"], told["new_guid"]) == ("E901", "unknown", "no")

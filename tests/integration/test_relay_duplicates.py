"""A GUID that has a row: one request, no read, and the answer is what the row says."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from relayhub.core import Answered, Doubt
from relayhub.http_event import to_response
from relayhub.message import Answer
from relayhub.replies import Reply
from relayhub.row import Row
from relayhub.states import Event, State
from tests.world import EXECUTED, World, document


def make_done(world: World) -> Row:
    """Make a DONE row."""
    world.post()
    return world.held()


MAKERS: dict[str, Callable[[World], Row]] = {
    "SENT": World.kill,
    "DONE": make_done,
    "UNKNOWN": World.doubt,
    "FAILED": World.fail,
}
CODES = {"SENT": (409, "E903"), "DONE": (200, "0000"), "UNKNOWN": (504, "E901")}


@pytest.mark.parametrize("state", CODES)
def test_a_duplicate_is_one_request_and_no_read(world: World, state: str) -> None:
    """The loser of the claim answers from the row that beat it, and leaves it as it is."""
    MAKERS[state](world)
    before, sent = world.item(), len(world.core.sent)
    world.dynamo.calls.clear()
    reply = world.post()
    assert (reply.status, reply.code) == CODES[state]
    assert world.dynamo.calls == ["put_item"]
    assert (world.item(), len(world.core.sent)) == (before, sent)
    assert ("Idempotent-Replayed" in reply.headers) == (state == "DONE")


def test_a_channels_resend_of_a_failed_row_is_three_requests(world: World) -> None:
    """The lost claim, the second claim, the result."""
    world.fail()
    world.dynamo.calls.clear()
    assert world.post().code == "0000"
    assert world.dynamo.calls == ["put_item", "update_item", "update_item"]


DIFFERENT: list[Any] = [
    pytest.param({"body": b'{"amount":200}'}, id="body"),
    pytest.param({"headers": {"x-operation": "refund"}}, id="operation"),
    pytest.param({"channel": "app"}, id="channel"),
]


@pytest.mark.parametrize("state", MAKERS)
@pytest.mark.parametrize("other", DIFFERENT)
def test_the_guid_of_another_request_is_refused_in_every_state(
    world: World, state: str, other: dict[str, Any]
) -> None:
    """E904 costs one request, changes nothing, sends nothing and tells nothing of the other."""
    row = MAKERS[state](world)
    before, sent = world.item(), len(world.core.sent)
    world.dynamo.calls.clear()
    reply = world.post(**other)
    assert (reply.status, reply.code) == (422, "E904")
    assert world.dynamo.calls == ["put_item"]
    assert (world.item(), len(world.core.sent)) == (before, sent)
    told = document(reply)
    assert {told[name] for name in ("state", "attempt", "accepted_at", "valid_until")} == {None}
    assert row.state.encode() not in reply.body


def test_a_held_row_of_another_request_is_refused_too(world: World) -> None:
    """E904 stands before E901."""
    world.fail()
    world.edit(hold="operator")
    assert world.post(body=b'{"amount":200}').code == "E904"


def test_a_row_is_compared_by_its_own_scheme(world: World) -> None:
    """A deploy that changes the declared fields does not make strangers of older rows."""
    world.post(body=b'{"amount":100,"at":1}')
    world.deploy(fingerprint_fields=("/amount",))
    assert world.post(body=b'{"amount":100,"at":1}').code == "0000"
    assert world.post(body=b'{"amount":100,"at":2}').code == "E904"
    world.post("G-2", body=b'{"amount":100,"at":1}')
    world.deploy(fingerprint_fields=())
    assert world.post("G-2", body=b'{"amount":100,"at":2}').headers["Idempotent-Replayed"]
    assert world.post("G-2", body=b'{"amount":101,"at":1}').code == "E904"
    assert world.post("G-2", body=b'{"at":1}').code == "E904"
    assert len(world.core.sent) == 2


def test_declared_fields_find_the_duplicate_behind_a_new_timestamp(
    make_world: Callable[..., World],
) -> None:
    """What is not declared may differ: a replay all the same."""
    world = make_world(fingerprint_fields=("/amount",))
    world.post(body=b'{"amount":100,"sent_at":"09:00","trace":"a"}')
    reply = world.post(body=b'{"trace":"b","amount":100,"sent_at":"09:05"}')
    assert (reply.body, reply.headers["Idempotent-Replayed"]) == (EXECUTED.body, "true")
    assert len(world.core.sent) == 1


REPLAYED = [
    pytest.param(
        Answer(200, "text/plain; charset=Shift_JIS", "受付完了 \0  ".encode("shift_jis"), "0000"),
        id="shift_jis",
    ),
    pytest.param(Answer(422, "application/json", b'{"code":"B234"}\r\n', "B234"), id="refusal"),
    pytest.param(Answer(500, "application/octet-stream", bytes(range(256)), "E500"), id="E500"),
    pytest.param(Answer(201, "", b"", "0000"), id="empty"),
    pytest.param(Answer(200, "text/plain", b"x" * 500_000, "0000"), id="500_kB"),
]


@pytest.mark.parametrize("answer", REPLAYED)
def test_a_replay_is_the_first_answer(world: World, answer: Answer) -> None:
    """Same status, type and bytes by SHA-256, marked as a replay, and the core is not called."""
    world.core.outcomes.append(Answered(answer))
    first = world.post()
    world.clock.advance(60)
    again = world.post()
    assert (first.status, again.status) == (answer.status, answer.status)
    assert (first.content_type, again.content_type) == (answer.content_type, answer.content_type)
    assert digest(first) == digest(again) == hashlib.sha256(answer.body).hexdigest()
    facts = {"Accepted-At": "2027-01-15T08:00:00.000Z", "Attempt": "1"}
    assert first.headers == facts
    assert again.headers == {**facts, "Idempotent-Replayed": "true"}
    assert len(world.core.sent) == 1


def digest(reply: Reply) -> str:
    """Return the digest of the bytes that the gateway hands to the channel."""
    response = to_response(reply)
    assert response["isBase64Encoded"] is True
    return hashlib.sha256(base64.b64decode(response["body"])).hexdigest()


@pytest.mark.parametrize("state", MAKERS)
def test_a_row_on_hold_is_in_doubt_for_everybody(world: World, state: str) -> None:
    """POST and GET say E901, a stored answer included; nothing is sent and nothing changes."""
    MAKERS[state](world)
    world.move(Event.HELD, by="operator", hold="operator", expires_at=None)
    world.edit(doubted=True)
    before, sent = world.item(), len(world.core.sent)
    world.dynamo.calls.clear()
    reply = world.post()
    assert (reply.status, reply.code) == (504, "E901")
    assert (world.dynamo.calls, world.core.asked) == (["put_item"], [])
    told = document(world.get())
    assert (told["code"], told["executed"], told["state"]) == ("E901", "unknown", state)
    assert (world.item(), len(world.core.sent)) == (before, sent)


def test_a_newer_versions_row_is_left_alone(world: World) -> None:
    """A row of a schema that this code does not know: in progress, nothing written or sent."""
    world.fail()
    world.edit(schema=2)
    before = world.item()
    reply = world.post()
    assert (reply.status, reply.code) == (409, "E903")
    assert (world.item(), len(world.core.sent)) == (before, 1)


def test_every_answer_in_progress_says_when_to_come_back(world: World) -> None:
    """E903 bears Retry-After for a row of a newer version too."""
    world.fail()
    world.edit(schema=2)
    assert int(world.post().headers["Retry-After"]) >= 1


@pytest.mark.parametrize("name", ["state", "why", "hold", "delivery"])
def test_a_newer_versions_word_is_left_alone(world: World, name: str) -> None:
    """A newer row may say what this version has no word for: still E903."""
    world.fail()
    world.edit(schema=2, **{name: "a_word_of_tomorrow"})
    before = world.item()
    assert world.post().code == "E903"
    assert (world.item(), len(world.core.sent)) == (before, 1)


def test_fifty_parallel_requests_execute_once(world: World) -> None:
    """One sends; the others are told "in progress", or get the very same bytes."""
    start = threading.Barrier(50)

    def post(_: int) -> Reply:
        start.wait(timeout=20)
        return world.post()

    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(post, range(50)))
    assert len(world.core.sent) == 1
    assert {reply.code for reply in replies} <= {"E903", "0000"}
    assert {reply.body for reply in replies if reply.code == "0000"} == {EXECUTED.body}
    first = [r for r in replies if r.code == "0000" and "Idempotent-Replayed" not in r.headers]
    assert len(first) == 1


def test_nobody_waits_for_a_call_that_is_running(world: World) -> None:
    """While the core is at work, 49 others are told so at once."""
    others = threading.Event()
    world.core.during.append(lambda: others.wait(timeout=20))
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(world.post)
        while not world.core.sent:
            assert not first.done()
        replies = list(pool.map(lambda _: world.post(), range(49)))
        others.set()
    assert {reply.code for reply in replies} == {"E903"}
    assert (first.result().code, len(world.core.sent)) == ("0000", 1)


def test_parallel_resends_of_a_failed_row_send_once(world: World) -> None:
    """Two channels' resends and a reprocessor may meet: one claim wins."""
    world.fail()
    start = threading.Barrier(10)

    def post(_: int) -> Reply:
        start.wait(timeout=20)
        return world.post()

    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(post, range(10)))
    assert len(world.core.sent) == 2
    assert {reply.code for reply in replies} <= {"E903", "0000"}
    assert (world.held().state, world.held().attempt) == (State.DONE, 2)


def test_a_doubted_duplicate_is_told_when_to_ask(world: World) -> None:
    """E901 says from when the hub can know."""
    world.core.outcomes.append(Doubt("no_answer", aborted=False))
    first, again = world.post(), world.post()
    assert document(first)["ask_after"] == document(again)["ask_after"]
    assert document(again)["ask_after"] == "2027-01-15T08:01:30.000Z"

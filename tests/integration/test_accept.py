"""Accepted for later: 202 at once, the row is the truth, the message only brings it forward."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.core import Answered
from relayhub.message import Answer
from relayhub.states import State
from tests.maintenance import NOT_FOUND, reprocessor, resolver, sweep
from tests.message_events import PREFER, accepted_message, announced, deliver, post_async, sqs_event
from tests.world import (
    START_MS,
    World,
    document,
    post_event,
    refused,
)

DAY_MS = 86_400_000
MESSAGE = sqs_event(accepted_message())


def test_an_accepted_request_is_told_where_to_ask(world: World) -> None:
    """202 with Location, Preference-Applied and the hub's own document: E903, RECEIVED."""
    reply = post_async(world)
    assert (reply.status, reply.content_type) == (202, "application/json")
    assert reply.headers == {
        "Location": "/transactions/G-1",
        "Preference-Applied": "respond-async",
        "Retry-After": "1",
    }
    told = document(reply)
    assert told == {
        **told,
        "code": "E903",
        "guid": "G-1",
        "state": "RECEIVED",
        "attempt": 0,
        "status": 202,
        "accepted_at": "2027-01-15T08:00:00.000Z",
        "valid_until": "2027-01-16T08:00:00.000Z",
        "ask_after": None,
        "executed": "unknown",
        "resend": "yes",
        "new_guid": "no",
    }


def test_an_accepted_request_costs_one_write_and_one_message(world: World) -> None:
    """Its row waits for two minutes; nothing is sent."""
    post_async(world)
    row = world.held()
    assert (row.state, row.attempt, row.due_at) == (State.RECEIVED, 0, START_MS + 120_000)
    assert (row.request, row.request_type) == (b'{"amount":100}', "application/json")
    assert (row.sent_at, row.dead_at, row.expires_at) == (None, None, None)
    assert str(row.open_shard).startswith("RECEIVED#")
    assert (world.dynamo.calls, world.core.sent) == (["put_item"], [])
    (raw,) = announced(world)
    assert (raw["body"], list(raw["messageAttributes"])) == (
        '{"guid":"G-1"}',
        ["relayhub-accepted"],
    )
    assert raw["messageAttributes"]["relayhub-accepted"]["stringValue"] == "1"


def test_a_message_that_cannot_be_sent_changes_nothing_of_the_answer(world: World) -> None:
    """Still 202: the sweep makes up for it, and the loss is counted."""
    world.sqs.faults["send_message"].append(refused("InternalError", 500))
    reply = post_async(world)
    assert (reply.status, world.held().state) == (202, State.RECEIVED)
    assert (world.noted("intake_lost"), announced(world)) == (1, [])
    world.clock.advance(121)
    resolver(world)
    world.clock.advance(30)
    assert sweep(world).hinted == 1
    world.core.findings.append(NOT_FOUND)
    reprocessor(world)
    assert (len(world.core.sent), world.held().code) == (1, "0000")


def test_a_repeat_is_told_as_the_first_was(world: World) -> None:
    """While it waits, 202 word for word; no second row, no second message."""
    first = post_async(world)
    world.clock.advance(60)
    again = post_async(world)
    assert (again.status, again.headers, again.body) == (202, first.headers, first.body)
    assert (world.held().due_at, len(announced(world))) == (START_MS + 120_000, 1)


def test_a_repeat_that_would_wait_is_told_that_it_is_in_progress(world: World) -> None:
    """Without the preference E903: it is not sent a second way."""
    post_async(world)
    reply = world.post()
    assert (reply.status, reply.code, reply.headers.get("Retry-After")) == (409, "E903", "1")
    assert "Preference-Applied" not in reply.headers
    assert world.core.sent == []


@pytest.mark.parametrize(
    ("make", "status", "code"),
    [(World.kill, 409, "E903"), (World.doubt, 504, "E901")],
    ids=["sent", "unknown"],
)
def test_a_repeat_of_what_was_sent_already_is_not_accepted_for_later(
    world: World, make: Any, status: int, code: str
) -> None:
    """The preference is not applied: it is told as what it is, and no message leaves."""
    make(world)
    reply = post_async(world)
    assert (reply.status, reply.code) == (status, code)
    assert "Preference-Applied" not in reply.headers
    assert (len(world.core.sent), announced(world)) == (1, [])


@pytest.mark.parametrize("headers", [PREFER, {}], ids=["async", "waits"])
def test_a_repeat_after_its_end_is_a_replay(world: World, headers: dict[str, str]) -> None:
    """The stored answer, byte for byte."""
    post_async(world)
    world.core.outcomes.append(Answered(Answer(200, "text/plain", b"0000 \x00ok", "0000")))
    deliver(world, MESSAGE)
    reply = world.post(headers=headers)
    assert (reply.status, reply.content_type, reply.body) == (200, "text/plain", b"0000 \x00ok")
    assert reply.headers["Idempotent-Replayed"] == "true"
    assert "Preference-Applied" not in reply.headers


@pytest.mark.parametrize("headers", [PREFER, {}], ids=["async", "waits"])
@pytest.mark.parametrize("is_done", [False, True], ids=["received", "done"])
def test_another_request_under_its_guid_is_refused(
    world: World, headers: dict[str, str], *, is_done: bool
) -> None:
    """E904 before and after; the row is as it was, and no message leaves."""
    post_async(world)
    message = sqs_event(*announced(world))
    if is_done:
        deliver(world, message)
    before = world.item()
    assert world.post(body=b'{"amount":7}', headers=headers).code == "E904"
    assert world.post(channel="app", headers=headers).code == "E904"
    assert (world.item(), announced(world)) == (before, [])


def test_a_repeat_of_one_that_failed_is_sent_at_once(world: World) -> None:
    """Its channel's resend claims it: the core's answer, not another 202."""
    world.fail()
    reply = post_async(world)
    assert (reply.status, reply.code, "Preference-Applied" in reply.headers) == (200, "0000", False)
    assert (len(world.core.sent), announced(world)) == (2, [])


def test_a_repeat_of_one_that_failed_needs_the_time_for_a_call(world: World) -> None:
    """Else nothing is claimed: E906."""
    world.fail()
    event = post_event(headers=PREFER)
    assert world.call(event, left_ms=23_999).code == "E906"
    assert (len(world.core.sent), world.held().state) == (1, State.FAILED)


def test_where_a_customer_waits_the_preference_is_not_applied(world: World) -> None:
    """Interactive: sent now, answered by the core, and nothing is left for later."""
    reply = post_async(world, headers={**PREFER, "delivery": "interactive"})
    assert (reply.status, reply.code) == (200, "0000")
    assert "Preference-Applied" not in reply.headers
    assert (len(world.core.sent), announced(world)) == (1, [])


def test_a_guid_older_than_the_memory_is_refused_as_ever(world: World) -> None:
    """E907: no row, no message."""
    guid = f"{START_MS - 28 * DAY_MS - 1:012x}7abc8def0123456789ab"
    assert post_async(world, guid).code == "E907"
    assert (world.row(guid), announced(world)) == (None, [])


def test_a_request_over_by_its_own_word_is_refused_as_ever(world: World) -> None:
    """E905: no row, no message."""
    headers = {**PREFER, "valid-until": "2027-01-15T08:00:00Z"}
    assert post_async(world, headers=headers).code == "E905"
    assert (world.row(), announced(world)) == (None, [])


def test_an_acceptance_needs_no_more_time_than_to_write_it(world: World) -> None:
    """Four seconds; with less, nothing is begun: E906."""
    event = post_event(headers=PREFER)
    assert world.call(event, left_ms=3_999).code == "E906"
    assert (world.dynamo.calls, announced(world)) == ([], [])
    assert world.call(event, left_ms=4_000).status == 202


def test_its_status_is_told_to_its_channel_alone(world: World) -> None:
    """RECEIVED, E903; to another it looks like an absent one."""
    post_async(world)
    told = document(world.get())
    assert (told["code"], told["state"], told["attempt"]) == ("E903", "RECEIVED", 0)
    assert (told["executed"], told["new_guid"]) == ("unknown", "no")
    assert world.get(channel="app").status == 404

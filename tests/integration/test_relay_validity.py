"""What is not sent: who sends it later, until when, and what its channel is told."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from relayhub.core import Doubt, NotSent
from relayhub.states import Event, State
from tests.emulated import Fault, fails
from tests.world import START_MS, World, document, refused

INTERACTIVE = {"delivery": "interactive"}
TOMORROW = "2027-01-16T09:00:00+00:00"


def test_a_deferred_request_that_was_not_sent_is_the_hubs_to_send(world: World) -> None:
    """202, valid until it is over, and a hint for the reprocessor."""
    world.core.outcomes.append(NotSent("connect_refused"))
    reply = world.post()
    told = document(reply)
    assert (reply.status, reply.code, reply.content_type) == (202, "E902", "application/json")
    assert (told["executed"], told["new_guid"], told["resend"]) == ("no", "after_cancel", "yes")
    assert told["valid_until"] == "2027-01-16T08:00:00.000Z"
    assert "Retry-After" not in reply.headers
    assert world.hints() == [{"guid": "G-1", "attempt": 1}]


def test_an_interactive_request_that_was_not_sent_is_its_channels(world: World) -> None:
    """503 and Retry-After, no hint, and its turn is when its validity ends."""
    row = world.fail(headers=INTERACTIVE)
    reply = world.get()
    assert (row.delivery, row.due_at) == ("interactive", START_MS + 120_000)
    assert row.valid_until == START_MS + 120_000
    assert world.hints() == []
    assert document(reply)["detail"].count("not sent unless you resend")
    world.core.outcomes.append(NotSent("connect_refused"))
    again = world.post(headers=INTERACTIVE)
    assert (again.status, again.headers["Retry-After"]) == (503, "30")
    assert again.content_type == "application/problem+json"


@pytest.mark.parametrize(
    ("headers", "channel", "attempts"),
    [({}, "atm", [1, 2]), (INTERACTIVE, "atm", [])],
    ids=["deferred", "interactive"],
)
def test_a_hint_names_the_attempt_that_failed(
    world: World, headers: dict[str, str], channel: str, attempts: list[int]
) -> None:
    """Each deferred E902 gives one; nothing else does."""
    world.fail(headers=headers, channel=channel)
    world.fail(headers=headers, channel=channel)
    hints = world.hints()
    assert sorted(each["attempt"] for each in hints) == attempts


def test_no_hint_leaves_for_anything_but_a_failed_row(world: World) -> None:
    """Done, in doubt and killed rows have none."""
    world.post("G-1")
    world.doubt("G-2")
    world.kill("G-3")
    world.post("G-3")
    assert (world.hints(), world.sqs.calls) == ([], [])


@pytest.mark.parametrize(
    "fault",
    [refused("AccessDenied", 403), fails(ReadTimeoutError(endpoint_url="http://x"))],
    ids=["denied", "no_answer"],
)
def test_a_lost_hint_is_noted_and_harmless(world: World, fault: Fault) -> None:
    """The ledger is the truth; the sweep makes up for it."""
    world.core.outcomes.append(NotSent("connect_refused"))
    world.sqs.faults["send_message"].append(fault)
    reply = world.post()
    assert (reply.status, reply.code) == (202, "E902")
    assert (world.held().state, world.noted("hint_lost")) == (State.FAILED, 1)
    assert world.sqs.calls == ["send_message"]


NOT_THE_HUBS: list[Any] = [
    pytest.param(Event.PARKED, {"parked": "cap"}, "E902", id="parked"),
    pytest.param(Event.HELD, {"hold": "operator"}, "E901", id="held"),
]


@pytest.mark.parametrize(("event", "flags", "code"), NOT_THE_HUBS)
def test_a_row_that_the_hub_will_not_send_does_not_say_that_it_will(
    world: World, event: Event, flags: dict[str, Any], code: str
) -> None:
    """A parked or held row waits for its channel or for a person."""
    world.fail()
    world.move(event, by="operator", **flags)
    told = document(world.get())
    assert told["code"] == code
    assert "sends it by itself" not in told["detail"]


def test_valid_until_stands_in_the_row_as_the_channel_gave_it(world: World) -> None:
    """It overrides the setting, and the first one counts."""
    world.fail(headers={"valid-until": TOMORROW})
    first = world.held().valid_until
    world.fail(headers={"valid-until": "2027-01-20T00:00:00Z"})
    assert (first, world.held().valid_until) == (START_MS + 90_000_000, first)


def test_a_hubs_turn_is_never_later_than_the_end_of_validity(world: World) -> None:
    """A row that is over must be ended in time."""
    world.fail(headers={"valid-until": "2027-01-15T08:00:02Z"})
    assert world.held().due_at == START_MS + 2_000


OVER = {"valid-until": "2027-01-15T07:59:59Z"}


def test_a_request_that_is_over_is_never_claimed(world: World) -> None:
    """Without a row it is E905, and nothing is written or sent."""
    reply = world.post(headers=OVER)
    assert (reply.status, reply.code) == (400, "E905")
    assert "Valid-Until has passed" in document(reply)["detail"]
    assert world.dynamo.calls == ["get_item"]
    assert (world.row(), world.core.sent) == (None, [])


@pytest.mark.parametrize("state", ["DONE", "SENT", "UNKNOWN"])
def test_a_request_that_is_over_is_answered_from_its_row(world: World, state: str) -> None:
    """A resend that comes too late still hears what became of its GUID."""
    makers: dict[str, Any] = {"DONE": World.post, "SENT": World.kill, "UNKNOWN": World.doubt}
    makers[state](world)
    before, sent = world.item(), len(world.core.sent)
    code = world.post(headers=OVER).code
    assert code == {"DONE": "0000", "SENT": "E903", "UNKNOWN": "E901"}[state]
    assert (world.item(), len(world.core.sent)) == (before, sent)


def test_a_failed_row_whose_resend_is_over_ends_if_the_row_is_over(world: World) -> None:
    """The channel resends the same request with the same Valid-Until."""
    until = {"valid-until": "2027-01-15T08:00:10Z"}
    world.fail(headers=until)
    world.clock.advance(11)
    assert world.post(headers=until).code == "E908"
    assert len(world.core.sent) == 1


def test_a_resend_that_says_it_is_over_is_not_sent_by_it(world: World) -> None:
    """The row's first Valid-Until still counts for the hub, but this request asks for nothing."""
    world.fail()
    reply = world.post(headers=OVER)
    assert (reply.code, len(world.core.sent)) == ("E902", 1)
    assert world.held().attempt == 1


def test_a_request_that_is_over_is_compared_like_any_other(world: World) -> None:
    """E904 for another body; nothing of the row is told."""
    world.post()
    assert world.post(body=b'{"amount":7}', headers=OVER).code == "E904"


def test_a_request_that_is_over_hears_nothing_of_a_ledger_that_refuses(world: World) -> None:
    """Not E905: the row may be there."""
    world.dynamo.faults["get_item"] += [refused("ThrottlingException")] * 2
    assert world.post(headers=OVER).code == "E906"


def test_a_doubt_is_told_with_the_same_words_whatever_the_delivery(world: World) -> None:
    """E901 is no E902: an interactive request in doubt is not "not sent"."""
    world.core.outcomes.append(Doubt("no_answer", aborted=True))
    told = document(world.post(headers=INTERACTIVE))
    assert (told["code"], told["executed"], told["new_guid"]) == ("E901", "unknown", "no")
    assert "failed" not in told["detail"]

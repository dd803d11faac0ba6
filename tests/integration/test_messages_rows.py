"""A message meets a row: what is sent again, what is left to the hub, what is only told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Answered
from relayhub.flows.reprocess import Taken
from relayhub.states import Code, Delivery, Event, Hold, State
from tests.emulated import Fault
from tests.maintenance import NOT_FOUND, accept, cancel, events, processed, reprocessor
from tests.message_events import (
    deliver,
    doubted,
    failed,
    killed,
    put_aside,
    settled,
    sqs_event,
    sqs_message,
)
from tests.world import (
    EXECUTED,
    REFUSED,
    START_MS,
    World,
    never_arrives,
    refused,
    reply_lost,
)

CHANNEL = "sqs:relayhub-intake"
ONE_NAME = (("atm", CHANNEL),)
INTERACTIVE: dict[str, Any] = {"attributes": {"delivery": "interactive"}}
AGAIN = sqs_event(sqs_message())
OTHER = sqs_event(sqs_message(body='{"amount":7}'))
SKEW_MS = 5_000


def resend(world: World, *, later_ms: int = SKEW_MS + 1) -> list[str]:
    """Deliver the request as a message that was sent after the row's last step."""
    world.clock.ms = world.held().updated_at + later_ms
    return deliver(world, sqs_event(sqs_message(sent_ms=world.clock())))


def code_told(world: World) -> str:
    """Return the code that the last message was taken with."""
    told = [facts for what, facts in world.notes if what == "message"]
    return str(told[-1]["code"])


def park(world: World) -> None:
    """Make a FAILED row that the hub will not send by itself any more."""
    failed(world)
    world.move(Event.PARKED, by="reprocessor", parked="cap")


def hold(world: World) -> None:
    """Make a FAILED row that only a person moves on."""
    failed(world)
    world.move(Event.HELD, by="operator", hold=Hold.OPERATOR)


def received(world: World) -> None:
    """Make a RECEIVED row of the very same request."""
    failed(world, "G-0")
    same = world.held("G-0")
    accept(world, channel=CHANNEL, operation="", fingerprint=same.fingerprint)
    world.core.sent.clear()


def buried(world: World) -> None:
    """Make a tombstone: the cancel came first."""
    world.deploy(channel_names=ONE_NAME)
    cancel(world)


def test_a_failed_row_that_the_hub_sends_is_left_to_it(world: World) -> None:
    """Taken; no claim, no attempt spent, no call, no hint a second time."""
    row = failed(world)
    assert len(world.hints()) == 1
    world.dynamo.calls.clear()
    assert deliver(world, AGAIN) + resend(world) == []
    assert (world.held(), len(world.core.sent), world.hints()) == (row, 1, [])
    assert (world.dynamo.calls, code_told(world)) == (["put_item"] * 2, "E902")


def test_a_failed_row_that_the_hub_sends_is_sent_by_it_once(world: World) -> None:
    """Whatever was redelivered meanwhile; the message after that is told the answer."""
    failed(world)
    for _ in range(3):
        deliver(world, AGAIN)
    world.core.findings.append(NOT_FOUND)
    assert reprocessor(world) is Taken.SENT
    assert deliver(world, AGAIN) == []
    assert (len(world.core.sent), world.held().attempt, code_told(world)) == (2, 2, "0000")


def test_a_message_is_sent_later_whatever_the_setting_says_of_http(make_world: Any) -> None:
    """Nobody waits at a queue to send it again: only its own header makes it interactive."""
    world = make_world(delivery=Delivery.INTERACTIVE)
    assert failed(world).delivery is Delivery.DEFERRED
    assert failed(world, "G-2", **INTERACTIVE).delivery is Delivery.INTERACTIVE
    assert [each["guid"] for each in world.hints()] == ["G-1"]


@pytest.mark.parametrize(
    "make", [lambda world: failed(world, **INTERACTIVE), park], ids=["interactive", "parked"]
)
def test_a_failed_row_that_the_hub_does_not_send_is_sent_by_a_later_one(
    world: World, make: Callable[[World], object]
) -> None:
    """As by a resend of its channel: claimed, the same bytes, the next attempt."""
    make(world)
    assert resend(world) == []
    row = world.held()
    assert (row.state, row.code, row.attempt, row.parked) == (State.DONE, "0000", 2, None)
    assert [request.attempt for request in world.core.sent] == [1, 2]
    assert events(world)[-2:] == ["claimed", "answered"]
    assert {entry["by"] for entry in row.history[-2:]} == {"messages"}


@pytest.mark.parametrize(
    "make", [lambda world: failed(world, **INTERACTIVE), park], ids=["interactive", "parked"]
)
@pytest.mark.parametrize("later_ms", [None, SKEW_MS], ids=["handed_over_again", "within_the_skew"])
def test_what_is_handed_over_again_is_no_resend(
    world: World, make: Callable[[World], object], later_ms: int | None
) -> None:
    """Else it would undo a person's decision, or be tried each time that its batch comes."""
    make(world)
    before = world.held()
    answer = deliver(world, AGAIN) if later_ms is None else resend(world, later_ms=later_ms)
    assert (answer, world.held(), len(world.core.sent)) == ([], before, 1)
    assert code_told(world) == "E902"


LOST: list[Any] = [
    pytest.param([reply_lost] * 2, State.SENT, id="reply_lost"),
    pytest.param([never_arrives] * 2, State.FAILED, id="never_arrived"),
    pytest.param([refused("ThrottlingException")] * 2, State.FAILED, id="throttled"),
]


@pytest.mark.parametrize(("faults", "state"), LOST)
def test_a_row_whose_second_claim_gets_no_answer_is_held_by_the_ledger_already(
    world: World, faults: list[Fault], state: State
) -> None:
    """Taken, not sent: its row is there, whatever became of the claim."""
    park(world)
    world.dynamo.faults["update_item"] += faults
    assert resend(world) == []
    assert (world.held().state, len(world.core.sent)) == (state, 1)


def test_a_parked_row_once_in_doubt_is_asked_about_before_its_message_sends_it(
    world: World,
) -> None:
    """PROCESSED ends it without a send."""
    doubted(world)
    world.clock.advance(120)
    world.not_found()
    world.move(Event.PARKED, by="reprocessor", parked="cap")
    world.core.findings.append(processed())
    assert resend(world) == []
    assert (world.held().code, len(world.core.sent), world.core.asked) == ("0000", 1, ["G-1"])


def test_a_failed_row_on_hold_is_nobodys_but_a_persons(world: World) -> None:
    """Taken with E901; not a write."""
    hold(world)
    before = world.item()
    world.dynamo.calls.clear()
    assert deliver(world, AGAIN) == []
    assert (world.item(), len(world.core.sent), code_told(world)) == (before, 1, "E901")
    assert world.dynamo.calls == ["put_item"]


def test_a_hold_that_comes_before_the_claim_of_a_parked_row_stops_it(world: World) -> None:
    """It stands in the claim's own condition."""
    park(world)
    held = {"by": "operator", "hold": Hold.OPERATOR}
    world.dynamo.before["update_item"].append(lambda: world.move(Event.HELD, **held))
    assert resend(world) == []
    assert (len(world.core.sent), code_told(world)) == (1, "E901")


@pytest.mark.parametrize("make", [failed, park], ids=["waits", "parked"])
def test_a_failed_row_that_is_over_ends_with_its_message(
    world: World, make: Callable[[World], object]
) -> None:
    """Its validity has passed: E908, not sent."""
    make(world)
    world.clock.ms = world.held().valid_until or 0
    assert deliver(world, AGAIN) == []
    assert (world.held().state, world.held().code) == (State.DONE, Code.E908)
    assert (len(world.core.sent), code_told(world)) == (1, "E908")


def test_a_failed_row_with_a_cancel_ends_with_its_message(world: World) -> None:
    """Nobody claims it any more: E908, not sent."""
    park(world)
    world.edit(cancel={"at": START_MS, "by": CHANNEL})
    assert deliver(world, AGAIN) == []
    assert (world.held().code, len(world.core.sent)) == (Code.E908, 1)


ROWS: dict[str, tuple[Callable[[World], object], str, str]] = {
    "received": (received, "RECEIVED", "E903"),
    "sent": (killed, "SENT", "E903"),
    "unknown": (doubted, "UNKNOWN", "E901"),
    "done": (lambda world: settled(world, Answered(EXECUTED)), "DONE", "0000"),
    "refused": (lambda world: settled(world, Answered(REFUSED)), "DONE", "B201"),
    "tombstone": (buried, "DONE", "E908"),
}
FAILED: dict[str, Callable[[World], object]] = {"failed": failed, "parked": park, "held": hold}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_not_failed_is_told_as_it_is(world: World, name: str) -> None:
    """Taken: the ledger holds it, and nothing is written, asked or sent."""
    make, state, code = ROWS[name]
    make(world)
    before, sent = world.item(), len(world.core.sent)
    assert deliver(world, AGAIN) == []
    assert (world.item(), before["state"]) == (before, {"S": state})
    assert (len(world.core.sent), world.core.asked, code_told(world)) == (sent, [], code)


@pytest.mark.parametrize("name", [*FAILED, *list(ROWS)[:-1]])
def test_another_request_under_the_same_guid_is_put_aside(world: World, name: str) -> None:
    """E904 in every state: the row is as it was, and the message is kept for a person."""
    make = FAILED[name] if name in FAILED else ROWS[name][0]
    make(world)
    before, sent = world.item(), len(world.core.sent)
    assert deliver(world, OTHER) == []
    assert (world.item(), len(world.core.sent)) == (before, sent)
    (aside,) = put_aside(world)
    assert (aside["code"], aside["guid"], aside["body"]) == ("E904", "G-1", '{"amount":7}')


def test_a_tombstone_belongs_to_any_body(world: World) -> None:
    """Its channel's cancel came first: E908, and not put aside."""
    buried(world)
    assert deliver(world, OTHER) == []
    assert (code_told(world), put_aside(world), world.core.sent) == ("E908", [], [])


def test_a_newer_versions_row_of_the_same_request_is_taken(world: World) -> None:
    """The ledger holds it, and a newer function goes on with it; nothing is written."""
    failed(world, **INTERACTIVE)
    world.edit(schema=2)
    before = world.item()
    assert deliver(world, AGAIN) == []
    assert (world.item(), len(world.core.sent), code_told(world)) == (before, 1, "E903")


def test_another_request_under_a_newer_versions_row_comes_again(world: World) -> None:
    """Whether it is another is for the newer version to say: not taken, nothing is written."""
    failed(world)
    world.edit(schema=2)
    before = world.item()
    assert deliver(world, OTHER) == ["m-1"]
    assert (world.item(), len(world.core.sent), put_aside(world)) == (before, 1, [])


def test_a_message_over_by_its_own_word_is_answered_by_its_row(world: World) -> None:
    """Whatever the row says, FAILED included: no claim is made for it."""
    over = {"valid-until": "2027-01-15T08:00:01Z", "delivery": "interactive"}
    event = sqs_event(sqs_message(attributes=over))
    failed(world, attributes={"delivery": "interactive"})
    world.clock.advance(2)
    assert deliver(world, event) == []
    assert (code_told(world), len(world.core.sent), put_aside(world)) == ("E902", 1, [])


def test_a_message_over_by_its_own_word_without_a_row_is_put_aside(world: World) -> None:
    """It was never accepted, and is not executed now: E905, kept with its GUID and its time."""
    over = sqs_message(attributes={"valid-until": "2027-01-15T08:00:00Z"}, sent_ms=START_MS - 1)
    assert deliver(world, sqs_event(over)) == []
    (aside,) = put_aside(world)
    assert (aside["code"], aside["guid"]) == ("E905", "G-1")
    assert "Valid-Until has passed" in aside["reason"]
    assert aside["sent_at"] == "2027-01-15T07:59:59.999Z"
    assert (world.row(), world.core.sent) == (None, [])


def test_a_message_over_by_its_own_word_comes_again_if_its_row_cannot_be_read(
    world: World,
) -> None:
    """A ledger that does not answer is not taken for one without the row."""
    over = sqs_event(sqs_message(attributes={"valid-until": "2027-01-15T08:00:00Z"}))
    world.dynamo.faults["get_item"] += [refused("ThrottlingException")] * 2
    assert deliver(world, over) == ["m-1"]
    assert put_aside(world) == []
    world.dynamo.faults["get_item"] += [never_arrives] * 2
    assert deliver(world, over) == ["m-1"]

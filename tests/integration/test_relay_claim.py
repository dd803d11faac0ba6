"""What the channel is told when a claim did not go through: E906 only if nothing can have."""

from __future__ import annotations

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from relayhub.states import State
from tests.emulated import Fault, fails
from tests.world import World, document, get_event, never_arrives, post_event, refused, reply_lost

NEVER_APPLIED = [
    pytest.param(refused("ThrottlingException"), 2, id="throttled"),
    pytest.param(refused("ProvisionedThroughputExceededException"), 2, id="provisioned"),
    pytest.param(fails(EndpointConnectionError(endpoint_url="http://x")), 2, id="no_connection"),
    pytest.param(fails(NoCredentialsError()), 2, id="no_credentials"),
    pytest.param(refused("AccessDeniedException"), 1, id="denied"),
    pytest.param(refused("ResourceNotFoundException"), 1, id="no_table"),
]


@pytest.mark.parametrize(("fault", "requests"), NEVER_APPLIED)
def test_a_claim_refused_every_time_is_not_accepted(
    world: World, fault: Fault, requests: int
) -> None:
    """E906: nothing was sent, no row is there, and the channel may resend at once."""
    world.dynamo.faults["put_item"] += [fault, fault]
    reply = world.post()
    assert (reply.status, reply.code, reply.headers["Retry-After"]) == (503, "E906", "1")
    assert world.dynamo.calls == ["put_item"] * requests
    assert (world.core.sent, world.row()) == ([], None)
    world.dynamo.faults["put_item"].clear()
    assert world.post().code == "0000"


def test_a_claim_refused_once_is_tried_again(world: World) -> None:
    """One throttled request is not yet a refusal."""
    world.dynamo.faults["put_item"].append(refused("ThrottlingException"))
    assert world.post().code == "0000"
    assert world.dynamo.calls == ["put_item", "put_item", "update_item"]


MAY_BE_APPLIED = [
    pytest.param([reply_lost, reply_lost], True, id="reply_lost_for_good"),
    pytest.param([never_arrives, never_arrives], False, id="request_lost"),
    pytest.param([reply_lost, refused("ThrottlingException")], True, id="then_throttled"),
    pytest.param([reply_lost, refused("AccessDeniedException")], True, id="then_denied"),
    pytest.param([refused("InternalServerError", 500)] * 2, False, id="server_fault"),
    pytest.param([never_arrives, refused("ThrottlingException")], False, id="lost_then_throttled"),
]


@pytest.mark.parametrize(("faults", "is_there"), MAY_BE_APPLIED)
def test_a_claim_without_an_answer_is_in_doubt_and_nothing_is_sent(
    world: World, faults: list[Fault], *, is_there: bool
) -> None:
    """E901, never E906: the claim may stand, and the resolver finishes the row if it does."""
    world.dynamo.faults["put_item"] += faults
    reply = world.post()
    assert (reply.status, reply.code) == (504, "E901")
    assert document(reply)["executed"] == "unknown"
    assert world.core.sent == []
    row = world.row()
    assert (row is not None) == is_there
    if row is not None:
        assert (row.state, row.claim_id) == (State.SENT, "claim-1")
        assert world.post().code == "E903"
    assert world.noted("claim_without_answer") == 1


@pytest.mark.parametrize(("fault", "requests"), NEVER_APPLIED)
def test_a_resends_claim_refused_every_time_leaves_the_row(
    world: World, fault: Fault, requests: int
) -> None:
    """E906 for a FAILED row too: it is as it was, and nothing was sent again."""
    world.fail()
    before = world.item()
    world.dynamo.calls.clear()
    world.dynamo.faults["update_item"] += [fault, fault]
    assert world.post().code == "E906"
    assert world.dynamo.calls == ["put_item"] + ["update_item"] * requests
    assert (world.item(), len(world.core.sent)) == (before, 1)


@pytest.mark.parametrize(("faults", "is_there"), MAY_BE_APPLIED)
def test_a_resends_claim_without_an_answer_is_in_doubt(
    world: World, faults: list[Fault], *, is_there: bool
) -> None:
    """The second claim may stand as the first may."""
    world.fail()
    world.dynamo.faults["update_item"] += faults
    assert world.post().code == "E901"
    assert len(world.core.sent) == 1
    assert (world.held().state is State.SENT) == is_there


def test_a_resends_claim_whose_reply_was_lost_goes_on(world: World) -> None:
    """The retry meets the row that says SENT under our own claim_id."""
    world.fail()
    world.dynamo.faults["update_item"].append(reply_lost)
    assert world.post().code == "0000"
    assert (len(world.core.sent), world.held().attempt) == (2, 2)


def test_a_claim_that_was_moved_on_before_its_retry_is_not_sent(world: World) -> None:
    """Our claim_id on a row that is not SENT any more is no leave to send."""

    def resolver_was_quicker() -> None:
        world.abandon()
        world.not_found()

    world.dynamo.faults["put_item"].append(reply_lost)
    world.dynamo.before["put_item"] += [lambda: None, resolver_was_quicker]
    reply = world.post()
    assert world.core.sent == []
    assert (world.held().state, world.held().claim_id) == (State.FAILED, "claim-1")
    assert reply.code == "E902"


def test_a_resends_claim_that_was_moved_on_before_its_retry_is_not_sent(world: World) -> None:
    """The same for the second claim: the resolver may be quicker than the retry."""
    world.fail()
    world.dynamo.faults["update_item"].append(reply_lost)
    world.dynamo.before["update_item"] += [lambda: None, world.abandon]
    reply = world.post()
    assert len(world.core.sent) == 1
    assert (world.held().state, reply.code) == (State.UNKNOWN, "E901")


def test_a_second_claim_by_another_is_no_leave_to_send(world: World) -> None:
    """Two resends meet at one FAILED row: the loser finds SENT under another's claim_id."""
    world.fail()
    world.dynamo.before["update_item"].append(world.claim_again)
    reply = world.post()
    assert (reply.code, len(world.core.sent)) == ("E903", 1)
    assert world.held().attempt == 2


def test_too_little_time_at_entry_claims_nothing(world: World) -> None:
    """The whole call and its margin must fit, or no request is made at all."""
    reply = world.call(post_event(), left_ms=23_999)
    assert (reply.status, reply.code) == (503, "E906")
    assert (world.dynamo.calls, world.core.sent) == ([], [])
    assert world.call(post_event(), left_ms=24_000).code == "0000"


def test_an_unreadable_secret_claims_nothing(world: World) -> None:
    """A call that could not be made is not claimed."""
    world.core.unprepared = True
    reply = world.post()
    assert (reply.status, reply.code) == (503, "E906")
    assert (world.dynamo.calls, world.core.sent, world.row()) == ([], [], None)


def test_a_status_that_cannot_be_read_says_nothing_of_the_row(world: World) -> None:
    """GET with a ledger that refuses: unknown, ask again."""
    world.post()
    world.dynamo.faults["get_item"] += [refused("ThrottlingException")] * 2
    told = document(world.call(get_event("G-1")))
    assert (told["code"], told["executed"], told["new_guid"]) == ("E906", "unknown", "no")


def test_a_status_is_one_consistent_read_and_no_write(world: World) -> None:
    """What a person sees is what the ledger says now."""
    row = world.fail()
    world.dynamo.calls.clear()
    world.dynamo.requests.clear()
    world.get()
    assert world.dynamo.calls == ["get_item"]
    assert world.dynamo.requests[0]["ConsistentRead"] is True
    assert world.held() == row

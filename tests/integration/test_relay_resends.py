"""A FAILED row: the same bytes under the same GUID, claimed anew, while it is valid and free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Finding, NotSent
from relayhub.states import Event, State, Verdict, Why
from tests.world import World, document, never_arrives, reply_lost

NOT_FOUND = Finding(Verdict.NOT_FOUND, None, "")


def test_three_attempts_are_one_row_and_one_guid(world: World) -> None:
    """Refused twice, then executed: three claims, three ids, one execution."""
    world.fail()
    world.fail()
    reply = world.post()
    assert (reply.code, reply.headers["Attempt"]) == ("0000", "3")
    assert [(each.guid, each.attempt) for each in world.core.sent] == [
        ("G-1", 1),
        ("G-1", 2),
        ("G-1", 3),
    ]
    row = world.held()
    assert (row.state, row.attempt, row.resends) == (State.DONE, 3, 0)
    claims = [each for each in row.history if each["event"] == "claimed"]
    assert [each["attempt"] for each in claims] == [1, 2, 3]


def test_each_claim_has_an_id_of_its_own(world: World) -> None:
    """The fencing token is never used for two attempts."""
    assert len({world.fail().claim_id for _ in range(3)}) == 3


def test_a_claim_that_was_moved_on_gets_a_new_id_for_the_next(world: World) -> None:
    """A first claim of ours that stood is attempt 1; what this function sends is attempt 2."""

    def resolver_was_quicker() -> None:
        world.abandon()
        world.not_found()

    world.core.findings.append(NOT_FOUND)
    world.dynamo.faults["put_item"].append(reply_lost)
    world.dynamo.before["put_item"] += [lambda: None, resolver_was_quicker]
    world.post()
    assert [each.attempt for each in world.core.sent] == [2]
    assert world.held().claim_id != "claim-1"


def test_attempt_two_is_the_request_of_attempt_one(make_world: Callable[..., World]) -> None:
    """Bytes, type and operation come from the row, also where another body counts as equal."""
    world = make_world(fingerprint_fields=("/amount",))
    world.fail(body=b'{"amount":1.00,"at":"09:00"}', headers={"content-type": "application/json"})
    other = {"content-type": "application/json; charset=utf-8"}
    world.post(body=b'{"at":"09:30", "amount":1.00}', headers=other)
    first, second = world.core.sent
    assert (second.body, second.content_type) == (first.body, first.content_type)
    assert (second.guid, second.operation) == (first.guid, first.operation)
    assert (first.attempt, second.attempt) == (1, 2)


def test_a_failed_row_says_why(world: World) -> None:
    """Nothing left the hub: code, reason and the next turn stand in the row."""
    row = world.fail()
    assert (row.code, row.why) == ("E902", Why.NOT_SENT)
    assert row.due_at == world.clock() + 6_000  # 1 s, and half of 10 s by the test's chance.
    assert row.expires_at is None
    assert (row.open_shard or "").startswith("FAILED#")


@pytest.mark.parametrize(("attempt", "longest_s"), [(1, 10), (2, 20), (3, 40), (7, 600), (9, 600)])
def test_a_failed_row_is_due_later_each_time(world: World, attempt: int, longest_s: int) -> None:
    """10 s, doubling to 10 min, with jitter."""
    for _ in range(attempt):
        world.fail()
    assert world.held().due_at == world.clock() + 1_000 + longest_s * 500


STOPPED: list[Any] = [
    pytest.param({"hold": "operator"}, "E901", id="hold"),
    pytest.param({"cancel": {"at": 1}}, "E902", id="cancel"),
    pytest.param({"valid_until": 1}, "E902", id="valid_until"),
]


@pytest.mark.parametrize(("flag", "code"), STOPPED)
def test_a_flag_set_between_read_and_claim_stops_the_claim(
    world: World, flag: dict[str, Any], code: str
) -> None:
    """Such a flag changes neither state nor claim_id: it stands in the claim's own condition."""
    world.fail()
    world.dynamo.before["update_item"].append(lambda: world.edit(**flag))
    reply = world.post()
    assert (reply.code, len(world.core.sent)) == (code, 1)
    assert (world.held().state, world.held().attempt) == (State.FAILED, 1)


def test_a_parked_row_is_sent_and_unparked_by_its_channel(world: World) -> None:
    """Parked binds the hub only."""
    world.fail()
    world.move(Event.PARKED, by="reprocessor", parked="cap")
    assert (world.held().open_shard or "").startswith("PARKED#")
    world.core.outcomes.append(NotSent("connect_refused"))
    world.post()
    row = world.held()
    assert (row.attempt, row.parked) == (2, None)
    assert (row.open_shard or "").startswith("FAILED#")


def test_a_row_parked_between_read_and_claim_is_told_as_it_then_is(world: World) -> None:
    """Else the row would say parked where its index and its channel's answer do not."""
    world.fail()
    park = {"by": "reprocessor", "parked": "cap"}
    world.dynamo.before["update_item"].append(lambda: world.move(Event.PARKED, **park))
    reply, row = world.post(), world.held()
    if row.attempt == 1:
        assert (reply.status, row.parked, len(world.core.sent)) == (503, "cap", 1)
        assert (row.open_shard or "").startswith("PARKED#")
    else:
        assert (reply.code, row.parked) == ("0000", None)


def test_a_row_that_is_not_valid_any_more_ends(world: World) -> None:
    """E908: never sent again, its code stored with the retention's expiry; a resend is the same."""
    world.fail()
    world.clock.advance(86_400)
    reply = world.post()
    assert (reply.status, reply.code) == (410, "E908")
    row = world.held()
    assert (row.state, row.code, row.why) == (State.DONE, "E908", None)
    assert row.expires_at == world.clock() // 1000 + 30 * 86_400
    assert len(world.core.sent) == 1
    assert world.post().body == reply.body
    told = document(reply)
    assert (told["executed"], told["new_guid"], told["state"]) == ("no", "yes", "DONE")


def test_a_row_is_valid_until_the_last_millisecond(world: World) -> None:
    """One before the end it is sent, at the end it is not."""
    world.fail("G-1")
    world.fail("G-2")
    world.clock.ms += 86_400_000 - 1
    assert world.post("G-1").code == "0000"
    world.clock.ms += 1
    assert world.post("G-2").code == "E908"


def test_a_failed_row_with_a_cancel_ends(world: World) -> None:
    """Whoever meets it ends it; it is never claimed."""
    world.fail()
    world.edit(cancel={"at": world.clock(), "by": "atm"})
    reply = world.post()
    assert (reply.code, world.held().code, world.held().state) == ("E908", "E908", State.DONE)
    assert len(world.core.sent) == 1


def test_hold_ranks_before_the_end_of_validity_and_before_a_cancel(world: World) -> None:
    """A hold that came between read and write stops E908, too."""
    for guid, flags in (("G-1", {"valid_until": 1}), ("G-2", {"cancel": {"at": 1}})):
        world.fail(guid)
        world.edit(guid, **flags)

        def hold(held: str = guid) -> None:
            world.edit(held, hold="operator")

        world.dynamo.before["update_item"].append(hold)
        assert world.post(guid).code == "E901"
        assert world.held(guid).state is State.FAILED


@pytest.mark.parametrize("faults", [[reply_lost] * 2, [never_arrives] * 2], ids=["lost", "never"])
def test_an_end_without_an_answer_is_still_not_executed(world: World, faults: list[Any]) -> None:
    """E902 or E908: whichever the row says, nothing was executed and nothing is sent."""
    world.fail()
    world.edit(valid_until=1)
    world.dynamo.faults["update_item"] += faults
    assert document(world.post())["executed"] == "no"
    assert len(world.core.sent) == 1

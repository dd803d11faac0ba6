"""What stands in a write's own condition: no step may be taken from a row that is another."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.dynamo import NoAnswer
from relayhub.ledger import Found, Stored
from relayhub.row import Row
from relayhub.states import STEPS, Event, State, Step
from tests.emulated import client
from tests.integration.test_ledger import a_row, put, step
from tests.world import START_MS, TABLE, World

WRITES = [
    (each, each.source) for each in STEPS if each.source is not None and each.target is not None
]


def name_of(each: Step) -> str:
    """Return the step's name in a test's id."""
    return f"{each.event}-{each.source}"


def another_state(row: Row, each: Step) -> dict[str, Any]:
    """Move the row to a state that is neither the one read nor the one that is written."""
    others = (state for state in State if state not in {row.state, each.target})
    return {"state": str(next(others))}


TAMPERED: list[Any] = [
    pytest.param(another_state, id="another_state"),
    pytest.param(lambda *_: {"claim_id": "claim-2"}, id="another_claim"),
    pytest.param(lambda *_: {"claim_id": None}, id="no_claim"),
    pytest.param(lambda *_: {"schema": 2}, id="newer_schema"),
    pytest.param(lambda *_: {"schema": None}, id="no_schema"),
    # The index key that a write sets is made of hold and parked; a NOT_FOUND from before the core
    # was seen at it proves nothing.
    pytest.param(lambda *_: {"hold": "operator"}, id="held_meanwhile"),
    pytest.param(lambda *_: {"parked": "operator"}, id="parked_meanwhile"),
    pytest.param(lambda *_: {"processing_at": START_MS}, id="core_seen_at_it_meanwhile"),
]


@pytest.mark.parametrize("tamper", TAMPERED)
def test_no_write_is_made_to_a_row_that_is_not_the_one_read(world: World, tamper: Any) -> None:
    """What it was judged by stands in the condition of every step of the table."""
    world.clock.advance(1)
    for number, (each, source) in enumerate(WRITES):
        row = put(a_row(source, f"G-{number}"))
        world.edit(row.guid, **tamper(row, each))
        before = world.item(row.guid)
        outcome = step(world, row, each.event)
        assert isinstance(outcome, Found), name_of(each)
        assert world.item(row.guid) == before, name_of(each)


def test_every_step_is_written_to_the_row_that_was_read(world: World) -> None:
    """The same loop, nothing tampered with: each condition can hold."""
    world.clock.advance(1)
    for number, (each, source) in enumerate(WRITES):
        row = put(a_row(source, f"G-{number}"))
        outcome = step(world, row, each.event)
        assert isinstance(outcome, Stored), name_of(each)
        assert world.held(row.guid).state is each.target, name_of(each)


def test_no_update_makes_a_row_where_none_is(world: World) -> None:
    """A deleted row stays deleted: no ghost without its GUID's history."""
    world.clock.advance(1)
    for number, (each, source) in enumerate(WRITES):
        row = a_row(source, f"G-{number}")
        assert isinstance(step(world, row, each.event), NoAnswer), name_of(each)
    assert client("dynamodb").scan(TableName=TABLE)["Count"] == 0


def test_every_updates_condition_names_what_it_accepts(world: World) -> None:
    """The row is there, its state and claim are those read, its schema is no newer."""
    world.clock.advance(1)
    for number, (each, source) in enumerate(WRITES):
        row = put(a_row(source, f"G-{number}"))
        step(world, row, each.event)
    for request in world.dynamo.requests:
        condition = request["ConditionExpression"]
        for term in ("attribute_exists(#guid)", "#state = ", "#claim_id = ", "#schema <= "):
            assert term in condition, request["UpdateExpression"]
        assert "<>" not in condition
        assert "NOT " not in condition
        assert " OR " not in condition
        assert request["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


def test_a_put_is_made_only_where_no_row_is(world: World) -> None:
    """The claim's own condition."""
    world.post()
    (put_item, _) = world.dynamo.requests
    assert put_item["ConditionExpression"] == "attribute_not_exists(guid)"
    assert put_item["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


HOLD: dict[str, Any] = {"hold": "operator"}
CANCEL: dict[str, Any] = {"cancel": {"at": 1, "by": "atm"}}
OVER: dict[str, Any] = {"valid_until": START_MS}
PARKED: dict[str, Any] = {"parked": "cap"}


def stopped(event: Event, source: State, flag: dict[str, Any], by: str = "relay") -> Any:
    """Return one case."""
    name = next(iter(flag))
    return pytest.param(event, source, flag, by, id=f"{event}-{source}-{by}-{name}")


STOPPED = [
    *(
        stopped(Event.CLAIMED, source, flag, by)
        for source in (State.FAILED, State.RECEIVED)
        for flag in (HOLD, CANCEL, OVER)
        for by in ("relay", "reprocessor")
    ),
    stopped(Event.CLAIMED, State.FAILED, PARKED, "reprocessor"),
    *(stopped(Event.NOT_SENT, source, CANCEL) for source in (State.SENT, State.UNKNOWN)),
    stopped(Event.NOT_FOUND, State.UNKNOWN, CANCEL, "resolver"),
    stopped(Event.OVERDUE, State.RECEIVED, CANCEL, "resolver"),
    stopped(Event.ATTESTED_NOT_EXECUTED, State.UNKNOWN, CANCEL, "operator"),
    *(
        stopped(Event.CANCELLED, source, HOLD)
        for source in (State.SENT, State.UNKNOWN, State.FAILED, State.RECEIVED)
    ),
    *(stopped(Event.EXPIRED, source, HOLD) for source in (State.FAILED, State.RECEIVED)),
]


@pytest.mark.parametrize("is_seen", [True, False], ids=["read", "set_after_the_read"])
@pytest.mark.parametrize(("event", "source", "flag", "by"), STOPPED)
def test_a_flag_stops_the_write_whether_it_was_read_or_not(
    world: World, event: Event, source: State, flag: dict[str, Any], by: str, *, is_seen: bool
) -> None:
    """Hold before cancel before validity before parked, each in the write's own condition."""
    row = put(a_row(source))
    if is_seen:
        world.edit(**flag)
        row = world.held()
    else:
        world.dynamo.before["update_item"].append(lambda: world.edit(**flag))
    outcome = step(world, row, event, by, claim_id="claim-2" if event == "claimed" else "claim-1")
    assert isinstance(outcome, Found)
    assert world.held().state is source
    assert outcome.row == world.held()


def test_a_row_that_was_given_more_time_meanwhile_does_not_expire(world: World) -> None:
    """A person's redrive comes between the look at the validity and the write of its end."""
    row = put(a_row(State.FAILED, valid_until=START_MS))
    world.dynamo.before["update_item"].append(lambda: world.edit(valid_until=START_MS + 60_000))
    assert isinstance(step(world, row, Event.EXPIRED, code="E908"), Found)
    assert world.held().state is State.FAILED


def test_a_channel_may_claim_what_is_parked(world: World) -> None:
    """Parked binds the hub's own claims only."""
    row = put(a_row(State.FAILED, parked="cap", open_shard="PARKED#1"))
    outcome = step(world, row, Event.CLAIMED, claim_id="claim-2", parked=None)
    assert isinstance(outcome, Stored)


def test_an_answer_is_written_to_a_held_row_that_was_seen_as_such(world: World) -> None:
    """The writer knows of the hold, so it gives no expiry."""
    row = put(a_row(hold="operator"))
    assert isinstance(step(world, row, Event.ANSWERED, code="0000"), Stored)
    assert world.held().hold == "operator"


@pytest.mark.parametrize("event", [Event.ANSWERED, Event.PROCESSED])
def test_an_answer_is_not_written_under_a_hold_that_was_not_seen(
    world: World, event: Event
) -> None:
    """It would bear an expiry."""
    row = put(a_row(State.UNKNOWN))
    world.dynamo.before["update_item"].append(lambda: world.edit(**HOLD))
    outcome = step(world, row, event, code="0000", expires_at=5)
    assert isinstance(outcome, Found)
    assert "expires_at" not in world.item()


def test_a_released_hold_is_set_again_by_who_must_hold(world: World) -> None:
    """A person lets the row go between the read and the write of a contradiction."""
    row = put(a_row(hold="operator"))
    world.dynamo.before["update_item"].append(lambda: world.edit(hold=None))
    outcome = step(world, row, Event.HELD, hold="contradiction")
    assert isinstance(outcome, Found) or world.held().hold == "contradiction"

"""The ledger's own rules on moto: which writes are ours, and what the index is told."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.dynamo import NoAnswer, Refused
from relayhub.ledger import Found, Stored
from relayhub.row import Row, encode, from_item, to_item
from relayhub.states import STEPS, Code, Event, IllegalStepError, State, Why
from tests.emulated import Fault, client
from tests.world import START_MS, TABLE, World, never_arrives, refused, reply_lost


def a_row(state: State = State.SENT, guid: str = "G-1", **values: Any) -> Row:
    """Return a row as the hub would write it."""
    entry = {"at": START_MS, "by": "relay", "event": "claimed", "to": "SENT", "attempt": 1}
    is_open = state is not State.DONE
    defaults: dict[str, Any] = {
        "fingerprint": b"f",
        "request": b"{}",
        "attempt": 1,
        "claim_id": "claim-1",
        "dead_at": START_MS + 25_000,
        "valid_until": START_MS + 86_400_000,
        "history": (entry,),
        "due_at": START_MS + 30_000 if is_open else None,
        "open_shard": f"{state}#1" if is_open else None,
        "code": None if is_open else "0000",
    }
    return Row(guid, state, "atm", START_MS, START_MS, **defaults | values)


def put(row: Row) -> Row:
    """Put the row past all rules."""
    client("dynamodb").put_item(TableName=TABLE, Item=to_item(row))
    return row


def step(world: World, row: Row, event: Event, by: str = "relay", **changes: Any) -> Any:
    """Take a step at the world's time."""
    return world.hub.ledger.move(row, event, by, world.clock(), **changes)


def test_an_absent_row_is_none(world: World) -> None:
    """One consistent read."""
    assert world.hub.ledger.read("G-1") is None
    assert world.dynamo.requests == [
        {"TableName": TABLE, "Key": {"guid": {"S": "G-1"}}, "ConsistentRead": True}
    ]


def test_a_row_is_read_as_it_was_written(world: World) -> None:
    """Round trip through the table."""
    row = put(a_row(cancel={"at": 5, "by": "atm"}))
    assert world.hub.ledger.read("G-1") == row


@pytest.mark.parametrize(
    ("faults", "kind"),
    [([refused("ThrottlingException")] * 2, Refused), ([never_arrives] * 2, NoAnswer)],
    ids=["refused", "no_answer"],
)
def test_a_read_that_fails_is_no_absent_row(
    world: World, faults: list[Fault], kind: type[object]
) -> None:
    """Never None: nobody may take a failure for an empty ledger."""
    world.dynamo.faults["get_item"] += faults
    assert isinstance(world.hub.ledger.read("G-1"), kind)


def test_a_row_is_put_only_where_none_is(world: World) -> None:
    """The loser gets the row that is there, untouched."""
    first = put(a_row(State.DONE))
    before = world.item()
    outcome = world.hub.ledger.create(a_row(claim_id="claim-2"), Event.CLAIMED, "relay")
    assert outcome == Found(first)
    assert (world.item(), world.steps) == (before, [])


def test_a_step_that_was_written_is_heard_once(world: World) -> None:
    """The listener gets the entry and the row, also where the reply was lost."""
    world.dynamo.faults["put_item"].append(reply_lost)
    outcome = world.hub.ledger.create(a_row(history=()), Event.CLAIMED, "relay")
    assert isinstance(outcome, Stored)
    ((entry, row),) = world.steps
    assert (entry["event"], entry["to"], row.guid) == ("claimed", "SENT", "G-1")


NOT_OURS: list[Any] = [
    pytest.param({"claim_id": "claim-2"}, id="another_claim"),
    pytest.param({"state": "UNKNOWN"}, id="moved_to_unknown"),
    pytest.param({"state": "FAILED"}, id="moved_to_failed"),
    pytest.param({"state": "DONE"}, id="moved_to_done"),
    pytest.param({"schema": 2}, id="newer_schema"),
]


@pytest.mark.parametrize("change", NOT_OURS)
def test_a_claim_is_ours_only_while_it_is_sent_under_our_id(
    world: World, change: dict[str, Any]
) -> None:
    """Whoever finds his claim moved on, or another's, must not send."""
    world.dynamo.faults["put_item"].append(reply_lost)
    world.dynamo.before["put_item"] += [lambda: None, lambda: world.edit(**change)]
    outcome = world.hub.ledger.create(a_row(history=()), Event.CLAIMED, "relay")
    assert isinstance(outcome, Found)
    assert world.steps == []


@pytest.mark.parametrize("change", NOT_OURS)
def test_a_second_claim_is_ours_only_while_it_is_sent_under_our_id(
    world: World, change: dict[str, Any]
) -> None:
    """The same for the claim of a FAILED row."""
    row = put(a_row(State.FAILED))
    world.dynamo.faults["update_item"].append(reply_lost)
    other = {"claim_id": "claim-3"} if "claim_id" in change else change
    world.dynamo.before["update_item"] += [lambda: None, lambda: world.edit(**other)]
    outcome = step(world, row, Event.CLAIMED, claim_id="claim-2", attempt=2)
    assert isinstance(outcome, Found)


def test_a_second_claim_whose_reply_was_lost_is_ours(world: World) -> None:
    """SENT under our new id: our own write."""
    row = put(a_row(State.FAILED))
    world.dynamo.faults["update_item"].append(reply_lost)
    outcome = step(world, row, Event.CLAIMED, claim_id="claim-2", attempt=2)
    assert isinstance(outcome, Stored)
    assert (outcome.row.claim_id, outcome.row.attempt) == ("claim-2", 2)
    assert len(world.held().history) == 2


RESULTS: list[Any] = [
    pytest.param(Event.ANSWERED, {"code": "0000", "response": b"a"}, id="answered"),
    pytest.param(Event.DOUBTED, {"code": Code.E901, "doubted": True}, id="doubted"),
    pytest.param(Event.NOT_SENT, {"code": Code.E902, "why": Why.NOT_SENT}, id="not_sent"),
    pytest.param(Event.ABANDONED, {"code": Code.E901}, id="abandoned"),
    pytest.param(Event.HELD, {"hold": "operator"}, id="held"),
    pytest.param(Event.CANCEL_RECORDED, {"cancel": {"at": 1}}, id="cancel_recorded"),
]


@pytest.mark.parametrize(("event", "changes"), RESULTS)
def test_a_write_whose_reply_was_lost_is_ours(
    world: World, event: Event, changes: dict[str, Any]
) -> None:
    """The row says what we wrote: success, and it stands once."""
    row = put(a_row())
    world.dynamo.faults["update_item"].append(reply_lost)
    outcome = step(world, row, event, **changes)
    assert isinstance(outcome, Stored)
    assert [each["event"] for each in world.held().history] == ["claimed", event]
    assert len(world.steps) == 1


def test_a_result_that_others_have_built_on_is_ours_by_its_history(world: World) -> None:
    """Written, its reply lost, then held by a person: the history holds our step."""
    row = put(a_row())
    world.dynamo.faults["update_item"].append(reply_lost)
    world.dynamo.before["update_item"] += [lambda: None, lambda: world.edit(hold="operator")]
    outcome = step(world, row, Event.ANSWERED, code="0000", response=b"a")
    assert isinstance(outcome, Stored)
    assert outcome.row.hold == "operator"


FOREIGN: list[Any] = [
    pytest.param({"claim_id": "claim-2"}, id="another_claim"),
    pytest.param({"code": "B201"}, id="another_code"),
    pytest.param({"response": b"b"}, id="another_answer"),
    pytest.param({"schema": 2}, id="newer_schema"),
]


@pytest.mark.parametrize("change", FOREIGN)
def test_a_result_is_ours_only_if_claim_state_code_and_answer_are(
    world: World, change: dict[str, Any]
) -> None:
    """Another's result that looks alike is another's."""
    row = put(a_row())
    theirs = {"state": "DONE", "code": "0000", "response": b"a"} | change
    world.dynamo.before["update_item"].append(lambda: world.edit(**theirs))
    outcome = step(world, row, Event.ANSWERED, code="0000", response=b"a")
    assert isinstance(outcome, Found)
    assert world.held().code == theirs["code"]


def test_an_own_step_under_another_claim_is_not_ours(world: World) -> None:
    """A history that holds our step says nothing once the row was claimed again."""
    row = put(a_row())
    world.dynamo.faults["update_item"].append(reply_lost)
    again = {"claim_id": "claim-2", "state": "SENT"}
    world.dynamo.before["update_item"] += [lambda: None, lambda: world.edit(**again)]
    assert isinstance(step(world, row, Event.NOT_SENT, code=Code.E902), Found)


INDEXED = [
    pytest.param(Event.DOUBTED, State.SENT, {}, "UNKNOWN", id="unknown"),
    pytest.param(Event.NOT_SENT, State.SENT, {}, "FAILED", id="failed"),
    pytest.param(Event.CLAIMED, State.FAILED, {"claim_id": "claim-2"}, "SENT", id="sent"),
    pytest.param(Event.PARKED, State.FAILED, {"parked": "cap"}, "PARKED", id="parked"),
]


@pytest.mark.parametrize(("event", "source", "changes", "group"), INDEXED)
def test_the_index_follows_the_state(
    world: World, event: Event, source: State, changes: dict[str, Any], group: str
) -> None:
    """Key and turn are written with the step itself."""
    row = put(a_row(source))
    step(world, row, event, due_at=77, **changes)
    item = world.item()
    name, _, shard = item["open_shard"]["S"].partition("#")
    assert (name, item["due_at"]) == (group, {"N": "77"})
    assert 0 <= int(shard) < 16


DONE_BY = [
    (Event.ANSWERED, State.SENT),
    (Event.ANSWERED, State.UNKNOWN),
    (Event.ANSWERED, State.FAILED),
    (Event.PROCESSED, State.UNKNOWN),
    (Event.CANCELLED, State.FAILED),
    (Event.EXPIRED, State.RECEIVED),
]


@pytest.mark.parametrize(("event", "source"), DONE_BY)
def test_a_done_row_leaves_the_index(world: World, event: Event, source: State) -> None:
    """Neither key nor turn stays behind."""
    row = put(a_row(source))
    assert isinstance(step(world, row, event, code="0000", due_at=5), Stored)
    assert {"open_shard", "due_at"} & set(world.item()) == set()


def test_a_shard_is_the_same_in_every_state(world: World) -> None:
    """It comes from the GUID alone."""
    shards = set()
    step(world, put(a_row(State.FAILED)), Event.CLAIMED, claim_id="claim-2")
    for event in (Event.DOUBTED, Event.NOT_FOUND, Event.RESTORED):
        shards.add((world.held().open_shard or "").partition("#")[2])
        step(world, world.held(), event)
    assert len(shards) == 1


LEGAL = {(each.event, each.source) for each in STEPS}
ILLEGAL = [(event, state) for event in Event for state in State if (event, state) not in LEGAL]


@pytest.mark.parametrize(("event", "state"), ILLEGAL)
def test_an_illegal_step_raises_and_makes_no_request(
    world: World, event: Event, state: State
) -> None:
    """Whatever the table of steps does not have is never written."""
    with pytest.raises(IllegalStepError):
        step(world, a_row(state), event)
    assert world.dynamo.calls == []


@pytest.mark.parametrize("event", [each for each in Event if (each, None) not in LEGAL])
def test_an_illegal_first_step_raises_and_makes_no_request(world: World, event: Event) -> None:
    """A row begins with a claim, an acceptance or a tombstone."""
    with pytest.raises(IllegalStepError):
        world.hub.ledger.create(a_row(), event, "relay")
    assert world.dynamo.calls == []


def test_deleting_is_no_write_of_a_row(world: World) -> None:
    """The purger deletes by a condition of its own."""
    with pytest.raises(ValueError, match="no write of a row"):
        step(world, a_row(State.DONE), Event.PURGED)
    assert world.dynamo.calls == []


def test_an_update_without_the_item_on_conflict_is_no_answer(world: World) -> None:
    """A conflict that carries no item tells nothing: neither ours nor another's."""
    outcome = step(world, a_row(), Event.DOUBTED)
    assert isinstance(outcome, NoAnswer)
    assert world.row() is None


def test_a_removed_field_is_removed(world: World) -> None:
    """None takes an attribute off; what was not changed is not sent."""
    row = put(a_row(State.FAILED, code=Code.E902, why=Why.NOT_SENT, not_found_at=4))
    step(world, row, Event.CLAIMED, claim_id="c", code=None, why=None, not_found_at=None)
    item = world.item()
    assert {"code", "why", "not_found_at"} & set(item) == set()
    values = world.dynamo.requests[-1]["ExpressionAttributeValues"].values()
    assert encode(b"{}") not in values
    assert from_item(item).request == b"{}"

"""An act whose row moves on meanwhile, whose reply is lost, or whose clock is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from relayhub.flows import operate
from relayhub.flows.operate import RefusedError, UnwrittenError
from relayhub.row import Row
from relayhub.states import Delivery, Hold, State
from tests.emulated import FaultyClient, client, never_arrives, refused, reply_lost
from tests.integration.operate_kit import ACTS, ALICE, NOW_MS, Situation
from tests.maintenance import DAY_MS, NOT_FOUND, put_rows, reprocessor
from tests.world import EXECUTED, START_MS, World, document

DEFERRED: Final = Delivery.DEFERRED
FREE: Final = {
    each: Situation(each, None, None, cancelled=False, delivery=DEFERRED) for each in State
}
HELD: Final = replace(FREE[State.FAILED], hold=Hold.OPERATOR)
# A situation in which each act is allowed.
ALLOWED: Final = {
    "park": FREE[State.FAILED],
    "hold": FREE[State.SENT],
    "release": replace(FREE[State.UNKNOWN], hold=Hold.FORGOTTEN),
    "redrive": FREE[State.FAILED],
    "close": FREE[State.FAILED],
    "close over its hold": HELD,
    "attest executed": FREE[State.UNKNOWN],
    "attest not executed": FREE[State.UNKNOWN],
}
# What another may do between the reading of the row and the write.
MOVES: Final[dict[str, dict[str, Any]]] = {
    "its state": {"state": "DONE", "code": "0000"},
    "its attempt": {"claim_id": "another", "attempt": 2},
    "a hold": {"hold": "contradiction"},
    "a newer version": {"schema": 2},
}


def placed(world: World, situation: Situation) -> Row:
    """Put the row, an hour ago; return it as it is read."""
    world.clock.ms = NOW_MS
    put_rows([situation.row()])
    return world.held(situation.guid)


def test_each_act_has_its_situation() -> None:
    """A new act must be raced too."""
    assert set(ALLOWED) == set(ACTS) - {"close over another hold"}


@pytest.mark.parametrize("moved", MOVES)
@pytest.mark.parametrize("act", ALLOWED)
def test_a_row_that_moved_on_after_it_was_read_is_left_as_it_is(
    world: World, act: str, moved: str
) -> None:
    """The write's own condition sees it; the person is told to look again."""
    row = placed(world, ALLOWED[act])
    world.dynamo.before["update_item"] = [lambda: world.edit(row.guid, **MOVES[moved])]
    with pytest.raises(RefusedError, match="it has moved on meanwhile"):
        ACTS[act](world.hub, row)
    assert world.held(row.guid) == replace(row, **_typed(MOVES[moved]))
    assert world.hints() == []


def _typed(changes: dict[str, Any]) -> dict[str, Any]:
    kinds = {"state": State, "hold": Hold}
    return {name: kinds.get(name, lambda same: same)(value) for name, value in changes.items()}


@pytest.mark.parametrize("act", ["redrive", "attest not executed"])
def test_a_cancel_that_comes_between_stops_what_would_be_sent_again(world: World, act: str) -> None:
    """A flag changes neither state nor attempt, so it stands in the write's condition."""
    row = placed(world, ALLOWED[act])
    cancel = {"at": START_MS, "by": "atm"}
    world.dynamo.before["update_item"] = [lambda: world.edit(row.guid, cancel=cancel)]
    with pytest.raises(RefusedError, match="moved on"):
        ACTS[act](world.hub, row)
    assert world.held(row.guid) == replace(row, cancel=cancel)


@pytest.mark.parametrize("act", ALLOWED)
def test_an_act_whose_reply_is_lost_is_found_again_and_made_once(world: World, act: str) -> None:
    """The second try meets its own write: one line of history, and success."""
    row = placed(world, ALLOWED[act])
    world.dynamo.faults["update_item"] = [reply_lost]
    made = ACTS[act](world.hub, row)
    assert world.held(row.guid) == made
    assert len(made.history) == len(row.history) + 1


@pytest.mark.parametrize("act", ALLOWED)
def test_an_act_without_any_answer_is_told_as_not_known(world: World, act: str) -> None:
    """Whether it is written nobody knows: the person looks."""
    row = placed(world, ALLOWED[act])
    world.dynamo.faults["update_item"] = [never_arrives, never_arrives]
    with pytest.raises(UnwrittenError, match="look whether it is written"):
        ACTS[act](world.hub, row)
    assert world.held(row.guid) == row


@pytest.mark.parametrize("act", ALLOWED)
def test_an_act_that_the_ledger_refuses_is_not_written(world: World, act: str) -> None:
    """As where a permission lacks."""
    row = placed(world, ALLOWED[act])
    world.dynamo.faults["update_item"] = [refused("AccessDeniedException")]
    with pytest.raises(UnwrittenError, match=r"AccessDeniedException.*nothing is written"):
        ACTS[act](world.hub, row)
    assert world.held(row.guid) == row


def test_a_row_of_a_newer_version_or_none_at_all_is_refused(world: World) -> None:
    """Whoever cannot read a row acts on none."""
    row = placed(world, FREE[State.FAILED])
    world.edit(row.guid, schema=2)
    with pytest.raises(RefusedError, match="newer version"):
        operate.read(world.hub, row.guid)
    with pytest.raises(RefusedError, match="no row of absent"):
        operate.read(world.hub, "absent")
    world.dynamo.faults["get_item"] = [refused("AccessDeniedException")]
    with pytest.raises(UnwrittenError, match="AccessDenied"):
        operate.read(world.hub, row.guid)


@pytest.mark.parametrize("ahead_ms", [60_000, -60_000], ids=["behind", "ahead"])
def test_a_clock_that_is_off_attests_nothing(world: World, ahead_ms: int) -> None:
    """What is proved from which moment on depends on it."""
    row = placed(world, FREE[State.UNKNOWN])
    world.dynamo = FaultyClient(client("dynamodb"), lambda: world.clock() + ahead_ms)
    world.deploy()
    with pytest.raises(RefusedError, match="this machine's clock is off"):
        ACTS["attest not executed"](world.hub, row)
    assert world.held(row.guid) == row


def test_not_executed_is_not_said_before_its_time_nor_by_a_journal_that_ends_before(
    world: World,
) -> None:
    """The very moment is one too early; the journal must reach beyond it, and not beyond now."""
    row = placed(world, FREE[State.UNKNOWN])
    from_ms = row.ask_after
    assert from_ms is not None
    world.clock.ms = from_ms
    with pytest.raises(
        RefusedError, match=r"not executed can be said from 2027-01-15T08:01:30\.000Z"
    ):
        operate.attest_not_executed(world.hub, row, ALICE, from_ms)
    world.clock.ms = from_ms + 1
    with pytest.raises(RefusedError, match="complete through a later time"):
        operate.attest_not_executed(world.hub, row, ALICE, from_ms)
    with pytest.raises(RefusedError, match="still to come"):
        operate.attest_not_executed(world.hub, row, ALICE, from_ms + 2)
    made = operate.attest_not_executed(world.hub, row, ALICE, from_ms + 1)
    assert made.state is State.FAILED
    assert "journal complete through 2027-01-15T08:01:30.001Z" in made.history[-1]["reason"]


def test_a_row_without_its_times_is_attested_by_nobody(world: World) -> None:
    """From when anything can be proved of it is not known."""
    row = replace(placed(world, FREE[State.UNKNOWN]), ask_after=None)
    with pytest.raises(RefusedError, match="it bears no time"):
        ACTS["attest not executed"](world.hub, row)


def test_an_answer_that_means_refused_attests_no_execution(world: World) -> None:
    """Its code decides."""
    row = placed(world, FREE[State.UNKNOWN])
    with pytest.raises(RefusedError, match="'B201' does not mean executed"):
        operate.attest_executed(world.hub, row, ALICE, replace(EXECUTED, code="B201"))


def test_a_redrive_is_sent_by_the_reprocessor_after_the_core_was_asked(world: World) -> None:
    """New attempts, a new validity, a hint; and what a person touched is asked about first."""
    row = placed(world, replace(FREE[State.FAILED], parked="cap"))
    world.edit(row.guid, resends=20, valid_until=NOW_MS - 1)
    made = ACTS["redrive"](world.hub, world.held(row.guid))
    assert (made.resends, made.parked, made.valid_until) == (0, None, NOW_MS + DAY_MS)
    assert world.hints() == [{"guid": row.guid, "attempt": 1}]
    world.core.findings = [NOT_FOUND]
    reprocessor(world, row.guid)
    assert world.core.asked == [row.guid]
    assert [(each.guid, each.attempt) for each in world.core.sent] == [(row.guid, 2)]


def test_what_was_attested_is_replayed_from_then_on(world: World) -> None:
    """Byte for byte, as the core would have answered."""
    world.doubt()
    world.clock.advance(600)
    operate.attest_executed(world.hub, world.held(), ALICE, EXECUTED)
    reply = world.post()
    assert (reply.status, reply.body) == (EXECUTED.status, EXECUTED.body)
    assert len(world.core.sent) == 1


def test_a_held_row_is_told_as_in_doubt_and_sent_by_nobody_until_it_is_released(
    world: World,
) -> None:
    """Whatever it was before: FAILED here."""
    world.fail()
    operate.hold(world.hub, world.held(), ALICE)
    assert document(world.post())["code"] == "E901"
    operate.release(world.hub, world.held(), ALICE)
    world.core.findings = [NOT_FOUND]
    assert world.post().code == "0000"


def test_a_released_doubt_is_asked_about_anew_and_nothing_that_was_counted_counts(
    world: World,
) -> None:
    """Not executed can be said only from a new time on."""
    row = placed(world, replace(FREE[State.FAILED], hold=Hold.CONTRADICTION))
    world.edit(row.guid, not_found_at=START_MS)
    made = operate.release(world.hub, world.held(row.guid), ALICE)
    assert (made.state, made.code, made.not_found_at) == (State.UNKNOWN, "E901", None)
    with pytest.raises(RefusedError, match="not executed can be said from"):
        ACTS["attest not executed"](world.hub, made)

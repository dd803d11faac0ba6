"""Each rule breaks a schedule that does not keep it: a check that cannot fail checks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from relayhub.message import Answer
from relayhub.replies import Reply, of_code, of_core, of_row
from relayhub.row import Row, from_item, to_item
from relayhub.states import Code, Delivery, Event, Hold, State
from tests.explore import casts, registry, rows
from tests.explore.bank import Attempt
from tests.explore.chooser import Scripted
from tests.explore.coverage import Coverage
from tests.explore.customer import EXECUTED, GIVEN_UP, Customer
from tests.explore.rows import G
from tests.explore.scheduler import ViolationError
from tests.explore.words import CODES
from tests.explore.world import START_MS, World


@dataclass(frozen=True)
class Case:
    """A write: what it changes of which row, and the words of the rule that it breaks."""

    name: str
    row: str
    event: Event | None
    changes: dict[str, Any]
    says: str
    executed: bool = False


def _sent(**more: Any) -> dict[str, Any]:
    claim = {"state": State.SENT, "claim_id": "post-1.1", "attempt": 2, "open_shard": "SENT#0"}
    entry = {"at": START_MS, "by": "reprocessor", "event": Event.CLAIMED, "to": State.SENT}
    return {**claim, "history": (entry,), "code": None, **more}


def _done(code: str, **more: Any) -> dict[str, Any]:
    shut = {"state": State.DONE, "open_shard": None, "due_at": None, "code": code}
    return {**shut, "expires_at": START_MS // 1000 + 500 * 86_400, **more}


CASES = (
    Case("step", "failed", None, {"state": State.RECEIVED}, "no legal step"),
    Case("event", "failed", Event.ANSWERED, {}, "no legal step"),
    Case("body", "failed", Event.BACKED_OFF, {"request": b"other"}, "request was changed"),
    Case("delivery", "failed", None, {"delivery": Delivery.INTERACTIVE}, "delivery was changed"),
    Case("attempt", "failed", Event.CLAIMED, _sent(attempt=1), "the attempt was not counted"),
    Case("counted", "failed", Event.BACKED_OFF, {"attempt": 2}, "the attempt was not counted"),
    Case("index", "failed", Event.BACKED_OFF, {"open_shard": None}, "stands in the index as None"),
    Case("group", "failed", Event.PARKED, {"parked": "cap"}, "stands in the index as FAILED#0"),
    Case("turn", "failed", Event.BACKED_OFF, {"due_at": None}, "its next turn is None"),
    Case("expiry", "failed", Event.BACKED_OFF, {"expires_at": 9_999_999_999}, "bears an expiry"),
    Case("early", "failed", Event.CANCELLED, _done("E908", expires_at=9), "before the retention"),
    Case("held", "failed", Event.CANCELLED, _done("E908", hold=Hold.OPERATOR), "bears an expiry"),
    Case(
        "believed",
        "unknown",
        Event.NOT_FOUND,
        {"state": State.FAILED, "open_shard": "FAILED#0", "code": "E902"},
        "UNKNOWN became FAILED",
    ),
    Case("expired", "unknown", None, _done("B201"), "but it was executed or still may be"),
    Case("never", "failed", Event.ANSWERED, _done("0000"), "and it was never executed"),
    Case("executed", "failed", Event.CLAIMED, _sent(), "claimed again", executed=True),
    Case("hold", "held", Event.CLAIMED, _sent(hold=None), "a row on hold became SENT"),
    Case("cancel", "cancelled", Event.CLAIMED, _sent(), "a cancelled row became SENT"),
    Case("over", "over", Event.CLAIMED, _sent(), "claimed after its validity"),
    Case("cap", "failed", Event.CLAIMED, _sent(resends=9), "more often than the cap"),
    Case("parked", "parked", Event.CLAIMED, _sent(parked=None), "a parked row was claimed"),
    Case(
        "alive",
        "lives",
        Event.ABANDONED,
        {"state": State.UNKNOWN, "open_shard": "UNKNOWN#0"},
        "given up while its holder lives",
    ),
)


@pytest.fixture
def world() -> Iterator[World]:
    """Return a world with one request that is about to be sent."""
    world = World(registry.find("two-posts"), Scripted(), Coverage())
    casts.post(world)
    yield world
    world.close()


def _row(world: World, kind: str) -> Row:
    flags: dict[str, dict[str, Any]] = {
        "held": {"hold": Hold.OPERATOR, "open_shard": "HELD#0"},
        "cancelled": {"cancel": {"at": 1, "by": "atm"}},
        "over": {"valid_until": START_MS - 60_000},
        "parked": {"parked": "cap", "open_shard": "PARKED#0"},
        "lives": {"claim_id": "post-1.1"},
    }
    more = flags.get(kind, {})
    if kind == "unknown":
        rows.unknown(world, G, **more)
    elif kind == "lives":
        rows.sent(world, G, **more)
    else:
        rows.failed(world, G, **more)
    return from_item(world.table.items[G])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_write_that_breaks_a_rule_breaks_the_schedule(world: World, case: Case) -> None:
    """Checked as it is made."""
    row = _row(world, case.row)
    if case.executed:
        rows.executed_before(world, G, 1)
    new = to_item(replace(row, **case.changes))
    with pytest.raises(ViolationError, match=case.says):
        world.rules.written(G, to_item(row), new, case.event)


@pytest.mark.parametrize("kind", ["open", "held", "early"])
def test_a_row_is_deleted_only_when_its_time_is_over(world: World, kind: str) -> None:
    """Only DONE, not held, and past its own expiry."""
    if kind == "open":
        rows.failed(world)
    else:
        hold = {"hold": Hold.OPERATOR} if kind == "held" else {}
        over_ms = 60_000 if kind == "early" else -60_000
        rows.done(world, G, ago_ms=1, expires_in_ms=over_ms, **hold)
    with pytest.raises(ViolationError, match="before its time"):
        world.rules.written(G, world.table.items[G], None, None)


def _reply(row: Row, code: str) -> Reply:
    return of_row(replace(row, code=code), CODES, START_MS, code=code)


def test_what_is_told_must_be_so(world: World) -> None:
    """Executed, not executed, never executed: each is held against the core's journal."""
    rows.failed(world)
    row = from_item(world.table.items[G])
    with pytest.raises(ViolationError, match="and it never was"):
        world.rules.told(G, _reply(row, "0000"))
    world.rules.told(G, _reply(row, Code.E908))
    rows.executed_before(world, "H", 1)
    for code in (Code.E902, Code.E908, "B201"):
        with pytest.raises(ViolationError, match="was executed or still"):
            world.rules.told("H", _reply(row, code))
    with pytest.raises(ViolationError, match="after it was told"):
        world.bank.execute(_attempt(G))


def _attempt(guid: str) -> Attempt:
    return Attempt(guid, 2, START_MS, START_MS)


def test_an_answer_is_the_cores_and_stays_the_first(world: World) -> None:
    """Not one byte differs, and only who heard it says it without calling it a replay."""
    rows.done(world, G, ago_ms=1, expires_in_ms=60_000)
    row = from_item(world.table.items[G])
    answer = Answer(200, "application/json", row.response or b"", "0000")
    with pytest.raises(ViolationError, match="not called one"):
        world.rules.told(G, of_core(answer, row, replayed=False))
    world.rules.told(G, of_core(answer, row, replayed=True))
    other = replace(answer, status=201)
    with pytest.raises(ViolationError, match="another answer than the first"):
        world.rules.told(G, of_core(other, row, replayed=True))
    made_up = replace(answer, body=b'{"code":"0000"}')
    with pytest.raises(ViolationError, match="never gave"):
        world.rules.told(G, of_core(made_up, row, replayed=True))


def test_who_sent_something_does_not_say_that_nothing_was_sent(world: World) -> None:
    """E906 and its like are about this very call."""
    world.rules.sent(G)
    with pytest.raises(ViolationError, match="this very call sent something"):
        world.rules.told(G, of_code(Code.E906, G))


def test_nothing_arrives_that_the_ledger_does_not_say_is_sent(world: World) -> None:
    """Neither without a row, nor in another state, nor as another attempt."""
    rows.failed(world)
    failed = world.table.items[G]
    rows.sent(world, G)
    for item, number in ((None, 1), (failed, 1), (world.table.items[G], 2)):
        with pytest.raises(ViolationError, match="arrived while the ledger says"):
            world.rules.received(G, number, item)
    world.rules.received(G, 1, world.table.items[G])


def test_a_taken_message_is_held_or_put_aside(world: World) -> None:
    """Else it is lost."""
    with pytest.raises(ViolationError, match="no row holds it"):
        world.rules.taken(G, None, is_aside=False)
    world.rules.taken(G, None, is_aside=True)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("gone", "no row is there"),
        ("open", "is left open: FAILED"),
        ("journal", "DONE 0000, executed 0 times"),
    ],
)
def test_the_end_agrees_with_rows_and_journal(world: World, kind: str, says: str) -> None:
    """Every GUID that was told of is DONE or left to a person, as the journal says."""
    rows.failed(world)
    row = from_item(world.table.items[G])
    items = {
        "gone": {},
        "open": {G: to_item(row)},
        "journal": {G: to_item(replace(row, **_done("0000")))},
    }
    with pytest.raises(ViolationError, match=says):
        world.rules.ended(items[kind])


def test_an_act_is_paid_once_and_comes_to_its_end(world: World) -> None:
    """Over all its GUIDs."""
    act = Customer(world, "A", 0, guids=["A1", "A2"])
    world.others.append(act)
    with pytest.raises(ViolationError, match="not at an end"):
        act.check_end()
    rows.executed_before(world, "A1", 1)
    act.end = EXECUTED
    act.check_end()
    act.end = GIVEN_UP
    with pytest.raises(ViolationError, match="executed 1 times"):
        act.check_end()
    with pytest.raises(ViolationError, match="PAID TWICE"):
        rows.executed_before(world, "A2", 1)

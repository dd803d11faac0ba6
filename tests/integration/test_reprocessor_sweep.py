"""The sweep: what is lost in a queue comes again, what is over ends, and nobody else is hinted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from relayhub.core import NotSent
from relayhub.flows.reprocess import Taken
from relayhub.states import Event, State
from tests.maintenance import AWAY, DAY_MS, NOT_FOUND, cancel, reprocessor, sweep
from tests.plant import Works
from tests.world import START_MS, refused

INTERACTIVE = {"delivery": "interactive"}


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


def due(works: Works, guid: str = "G-1") -> None:
    """Turn the clock to the row's next turn."""
    works.clock.ms = works.held(guid).due_at or 0


def test_a_row_is_hinted_when_it_is_due_and_not_before(works: Works) -> None:
    """With the attempt that failed."""
    works.fail()
    works.hints()
    due(works)
    works.clock.ms -= 1
    assert sweep(works).hinted == 0
    works.clock.ms += 1
    assert sweep(works).hinted == 1
    assert works.hints() == [{"guid": "G-1", "attempt": 1}]


def test_a_hint_that_was_lost_comes_again_by_itself(works: Works) -> None:
    """A queue that forgets, or refuses: the ledger is the truth. Only real sends count."""
    works.sqs.faults["send_message"] += [refused("AccessDenied", 403)] * 2
    works.fail()
    due(works)
    swept = sweep(works)
    assert (swept.due, swept.hinted, works.noted("hint_lost"), works.hints()) == (1, 0, 2, [])
    assert (works.held().due_at or 0) > works.clock()
    due(works)
    assert sweep(works).hinted == 1
    assert works.hints() == [{"guid": "G-1", "attempt": 1}]


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.999])
def test_the_next_turn_doubles_to_ten_minutes_with_full_jitter(works: Works, chance: float) -> None:
    """From a second on to the whole back-off, by chance."""
    works.hub = replace(works.hub, chance=lambda: chance)
    works.fail()
    waits = []
    for attempt in range(1, 9):
        works.edit(attempt=attempt, due_at=works.clock())
        sweep(works)
        waits.append((works.held().due_at or 0) - works.clock() - 1_000)
    longest_ms = [int(chance * min(600_000, 10_000 * 2**n)) for n in range(10)]
    assert waits in (longest_ms[:8], longest_ms[1:9])
    works.edit(attempt=40, due_at=works.clock())
    sweep(works)
    assert (works.held().due_at or 0) - works.clock() <= 601_000


def test_hinting_is_no_attempt(works: Works) -> None:
    """The row keeps its attempt, claim and history."""
    works.fail()
    before = works.held()
    due(works)
    sweep(works)
    row = works.held()
    assert (row.attempt, row.resends, row.claim_id) == (1, 0, before.claim_id)
    assert (row.history, row.state) == (before.history, State.FAILED)


def test_an_interactive_row_is_never_hinted_and_ends_in_time(works: Works) -> None:
    """A day of schedules: no hint, no call, E908."""
    works.fail(headers=INTERACTIVE)
    for minute in range(12):
        works.clock.advance(60)
        sweep(works)
        assert works.held().state is (State.FAILED if minute < 1 else State.DONE)
    assert works.held().code == "E908"
    assert (works.sqs.calls, len(works.core.sent)) == ([], 1)


OVER: list[Any] = [
    pytest.param({}, {}, "expired", id="failed"),
    pytest.param({}, {"parked": "cap", "open_shard": "PARKED#2"}, "expired", id="parked"),
    pytest.param(INTERACTIVE, {}, "expired", id="interactive"),
    pytest.param({}, {"cancel": {"at": 1, "by": "atm"}}, "cancelled", id="cancelled"),
]


@pytest.mark.parametrize(("headers", "values", "event"), OVER)
def test_what_is_over_ends_as_never_executed(
    works: Works, headers: dict[str, str], values: dict[str, Any], event: str
) -> None:
    """FAILED or parked, past its validity or cancelled: E908, without a hint."""
    works.fail(headers=headers)
    works.hints()
    works.edit(due_at=START_MS, **values)
    works.clock.ms = (works.held().valid_until or 0) - (0 if event == "expired" else 1)
    swept = sweep(works)
    row = works.held()
    assert (row.state, row.code, row.history[-1]["event"]) == (State.DONE, "E908", event)
    assert (swept.ended, swept.hinted, works.hints()) == (1, 0, [])
    assert row.expires_at is not None


def test_a_parked_row_stays_until_it_is_over(works: Works) -> None:
    """It is found in its own group of the index, at the end of its validity."""
    works.fail()
    works.edit(resends=20)
    assert reprocessor(works) is Taken.PARKED
    works.hints()
    works.clock.ms = START_MS + DAY_MS - 1
    assert sweep(works).due == 0
    works.clock.ms += 1
    assert sweep(works).ended == 1
    assert (works.held().state, works.held().code) == (State.DONE, "E908")


@pytest.mark.parametrize(
    "values",
    [{"hold": "operator"}, {"hold": "restored", "cancel": {"at": 1}}, {"schema": 2}],
    ids=["held", "held_and_cancelled", "newer"],
)
def test_rows_that_are_a_persons_or_a_newer_versions_are_left_alone(
    works: Works, values: dict[str, Any]
) -> None:
    """Also past their validity, and where the index still lists them."""
    works.fail()
    works.hints()
    works.edit(due_at=START_MS, **values)
    works.clock.ms = START_MS + 2 * DAY_MS
    before = works.item()
    swept = sweep(works)
    assert (works.item(), swept.hinted, swept.ended) == (before, 0, 0)
    assert works.dynamo.calls[-1] == "get_item"  # Not even tried.


def test_a_row_that_moved_on_since_the_index_was_read_is_passed_by(works: Works) -> None:
    """The index lags; the row decides."""
    works.fail()
    works.hints()
    due(works)
    works.dynamo.before["get_item"] += [lambda: None, works.claim_again]  # The gate, then the row.
    assert (sweep(works).hinted, works.hints()) == (0, [])
    row = works.held()
    assert row.dead_at is not None
    assert row.due_at == row.dead_at + 5_000  # Its holder's turn is not put off.


def test_a_row_that_is_claimed_between_read_and_write_is_not_hinted(works: Works) -> None:
    """Its next turn is its holder's."""
    works.fail()
    works.hints()
    due(works)
    works.dynamo.before["update_item"].append(works.claim_again)
    assert (sweep(works).hinted, works.hints()) == (0, [])


def test_ends_that_others_were_faster_with_are_not_counted(works: Works) -> None:
    """The report says what this sweep has done."""
    works.fail(headers=INTERACTIVE)
    works.clock.advance(121)
    works.dynamo.before["update_item"].append(lambda: cancel(works))
    assert sweep(works).ended == 0


def test_while_the_gate_is_closed_one_hint_is_enough(works: Works) -> None:
    """It brings the probe; the rest waits for the gate."""
    for number in range(5):
        works.fail(f"G-{number}")
    works.hints()
    works.core.findings[:] = [AWAY]
    reprocessor(works, "G-0")
    works.clock.advance(60)
    assert sweep(works).hinted == 1
    assert len(works.hints()) == 1
    works.core.findings[:] = [NOT_FOUND]
    works.clock.advance(60)
    assert reprocessor(works, "G-1") is Taken.SENT
    works.clock.advance(60)
    assert sweep(works).hinted == 4


def test_a_hint_that_is_lost_while_the_gate_is_closed_lets_the_next_row_hint(works: Works) -> None:
    """Else no probe would come."""
    works.fail("G-1")
    works.fail("G-2")
    works.hints()
    works.core.findings[:] = [AWAY]
    reprocessor(works)
    works.clock.advance(60)
    works.sqs.faults["send_message"].append(refused("AccessDenied", 403))
    assert sweep(works).hinted == 1


def test_a_gate_that_cannot_be_read_counts_as_closed(works: Works) -> None:
    """One hint, no flood."""
    for number in range(3):
        works.fail(f"G-{number}")
    works.clock.advance(60)
    works.dynamo.faults["get_item"] += [refused("ThrottlingException")] * 2
    assert sweep(works).hinted == 1


def test_a_sweep_ends_before_its_time_does(works: Works) -> None:
    """What is left is the next one's."""
    for number in range(4):
        works.fail(f"G-{number}")
    works.hints()
    works.clock.advance(60)

    def slow() -> None:
        works.clock.advance(4.999)

    works.dynamo.before["update_item"] += [slow] * 3
    first = sweep(works, left_ms=20_000)
    assert (first.hinted, first.complete) == (3, False)
    sweep(works)
    assert {hint["guid"] for hint in works.hints()} == {"G-0", "G-1", "G-2", "G-3"}


def test_the_oldest_are_hinted_first(works: Works) -> None:
    """Over all shards and groups."""
    for number in range(4):
        works.fail(f"G-{number}")
        works.edit(f"G-{number}", due_at=START_MS + 10 - number)
    works.hints()
    works.clock.advance(60)
    order: list[str] = []
    real = works.hub.hints.send_hint
    hints = _Order(order, real)
    works.hub = replace(works.hub, hints=hints)  # type: ignore[arg-type]
    sweep(works)
    assert order == ["G-3", "G-2", "G-1", "G-0"]


class _Order:
    """Writes down in which order hints leave."""

    def __init__(self, order: list[str], real: Callable[[str, int], str | None]) -> None:
        self._order = order
        self._real = real

    def send_hint(self, guid: str, attempt: int) -> str | None:
        """Note it and send it."""
        self._order.append(guid)
        return self._real(guid, attempt)


def test_a_row_that_cannot_be_read_harms_no_other(works: Works) -> None:
    """Words of a newer version: the others are hinted all the same."""
    for number in range(3):
        works.fail(f"G-{number}")
    works.edit("G-0", why="of a newer version", schema=2, due_at=START_MS)
    works.hints()
    works.clock.advance(60)
    assert sweep(works).hinted == 2


def test_a_failed_row_comes_again_until_it_is_sent(works: Works) -> None:
    """Refused twice more, then executed: one GUID, one row, an attempt each."""
    works.fail()
    for outcome in (NotSent("connect_refused"), NotSent("connect_refused"), None):
        works.core.outcomes[:] = [outcome] if outcome else []
        works.hints()
        due(works)
        assert sweep(works).hinted == 1
        (hint,) = works.hints()
        works.core.findings[:] = [NOT_FOUND]
        assert reprocessor(works, hint["guid"], hint["attempt"]) is Taken.SENT
    row = works.held()
    claims = [entry for entry in row.history if entry["event"] == Event.CLAIMED]
    assert (row.state, row.code, row.attempt, len(claims)) == (State.DONE, "0000", 4, 4)

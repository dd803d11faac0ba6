"""A row's history: the first and the newest lines, a count of the rest, and nobody's line lost."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.ledger import Stored
from relayhub.row import HISTORY_MAX, Row
from relayhub.states import Event, State
from tests.integration.test_ledger import a_row, put, step
from tests.world import START_MS, World, reply_lost


def entries(count: int) -> tuple[dict[str, Any], ...]:
    """Return numbered lines."""
    return tuple({"at": START_MS + n, "by": "x", "event": "held", "to": "S"} for n in range(count))


def times(row: Row) -> list[int]:
    """Return the numbers of the lines; -1 for one of now."""
    return [-1 if each["by"] != "x" else each["at"] - START_MS for each in row.history]


def test_an_entry_says_who_did_what_when(world: World) -> None:
    """at, by, event, from, to, attempt, code; nothing else, no payload."""
    world.clock.advance(3)
    step(world, put(a_row()), Event.ANSWERED, "relay", code="0000", response=b"a")
    assert world.held().history[-1] == {
        "at": START_MS + 3_000,
        "by": "relay",
        "event": "answered",
        "from": "SENT",
        "to": "DONE",
        "attempt": 1,
        "code": "0000",
    }


@pytest.mark.parametrize("count", [18, 19, 20])
def test_a_history_keeps_the_first_and_the_newest(world: World, count: int) -> None:
    """Up to 20 lines; what falls out is counted."""
    row = put(a_row(history=entries(count), history_dropped=0))
    step(world, row, Event.DOUBTED)
    now = world.held()
    kept = list(range(count))
    expected = [*kept, -1] if count < HISTORY_MAX else [0, *kept[2:], -1]
    assert (times(now), now.history_dropped) == (expected, max(0, count - 19))


def test_a_history_never_grows_past_its_limit(world: World) -> None:
    """A dozen attempts later there are 20 lines, the first claim among them."""
    for _ in range(12):
        world.fail()
    row = world.held()
    assert (len(row.history), row.history_dropped) == (HISTORY_MAX, 2 * 12 - HISTORY_MAX)
    assert (row.history[0]["event"], row.history[0]["attempt"]) == ("claimed", 1)
    assert row.history[-1]["attempt"] == 12


@pytest.mark.parametrize("count", [5, 18, 19, 20])
def test_a_line_that_another_writes_meanwhile_is_kept(world: World, count: int) -> None:
    """Two writers that change no state: both lines stand, whatever the length."""
    row = put(a_row(State.FAILED, history=entries(count)))
    world.dynamo.before["update_item"].append(lambda: world.move(Event.FENCED, by="other"))
    outcome = step(world, row, Event.BACKED_OFF, "reprocessor", due_at=9)
    assert isinstance(outcome, Stored)
    assert "other" in [each["by"] for each in world.held().history]


@pytest.mark.parametrize("count", [5, 18, 19, 20])
def test_both_lines_of_two_writers_stand_and_what_fell_out_is_counted(
    world: World, count: int
) -> None:
    """A step and another's note at once: 2 lines more, and no more than that lost."""
    row = put(a_row(State.SENT, history=entries(count)))
    world.dynamo.before["update_item"].append(lambda: world.move(Event.FENCED, by="other"))
    outcome = step(world, row, Event.DOUBTED)
    assert isinstance(outcome, Stored)
    now = world.held()
    assert [each["event"] for each in now.history[-2:]] == ["fenced", "doubted"]
    assert len(now.history) + now.history_dropped == count + 2
    assert now.history[0]["at"] == START_MS


def test_a_full_history_still_recognises_its_own_write(world: World) -> None:
    """The reply of a trimming write is lost: it is ours, and it stands once."""
    row = put(a_row(history=entries(20)))
    world.dynamo.faults["update_item"].append(reply_lost)
    assert isinstance(step(world, row, Event.DOUBTED), Stored)
    assert [each["event"] for each in world.held().history].count("doubted") == 1


def test_a_full_history_does_not_hide_a_flag(world: World) -> None:
    """A cancel that came with a line of its own still stops the write that it must stop."""
    row = put(a_row(history=entries(20)))
    cancel: dict[str, Any] = {"by": "atm", "cancel": {"at": 1}}
    world.dynamo.before["update_item"].append(lambda: world.move(Event.CANCEL_RECORDED, **cancel))
    assert not isinstance(step(world, row, Event.NOT_SENT), Stored)
    assert (world.held().state, world.held().cancel) == (State.SENT, {"at": 1})


def test_a_wait_that_changes_nothing_writes_no_line(world: World) -> None:
    """Inquiries would fill the history."""
    row = put(a_row(State.UNKNOWN, history=entries(3)))
    step(world, row, Event.BACKED_OFF, "resolver", due_at=9, inquiries=1)
    now = world.held()
    assert (len(now.history), now.due_at, now.inquiries) == (3, 9, 1)

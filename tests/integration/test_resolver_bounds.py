"""When the resolver believes a NOT_FOUND: to the millisecond, by what the row itself carries."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.states import State
from tests.maintenance import (
    NOT_FOUND,
    cancel,
    events,
    resolve_at,
)
from tests.plant import Works
from tests.world import START_MS

COUNTS_MS = START_MS + 65_001  # The first moment at which a NOT_FOUND of `doubt()` counts.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


# One term alone is the latest of all in each case: what the row says, what the settings say, and
# how long after START_MS a NOT_FOUND is still too early.
BOUNDS: list[Any] = [
    pytest.param({"ask_after": START_MS + 200_000}, {}, 200_000, id="ask_after_of_the_row"),
    pytest.param(
        {"ask_after": START_MS, "ended_at": START_MS + 100_000}, {}, 165_000, id="end_and_min_age"
    ),
    pytest.param(
        {"ask_after": START_MS, "ended_at": None, "dead_at": START_MS + 100_000},
        {},
        165_000,
        id="no_end_known_so_dead_at",
    ),
    pytest.param({"ask_after": START_MS}, {"min_age_s": 300}, 300_000, id="min_age_of_the_run"),
    pytest.param(
        {"ask_after": START_MS},
        {"hold_not_found_until": "2027-01-15T08:10:00Z"},
        600_000,
        id="failover_of_the_core",
    ),
    pytest.param({"processing_at": START_MS + 400_000}, {}, 465_000, id="core_seen_at_it"),
]


@pytest.mark.parametrize(("row", "settings", "bound_ms"), BOUNDS)
def test_a_not_found_counts_only_when_asked_for_after_the_latest_bound(
    works: Works, row: dict[str, Any], settings: dict[str, Any], bound_ms: int
) -> None:
    """Asked at the bound: not yet, and its turn is the next millisecond. Then it counts."""
    works.doubt()
    works.edit(**row)
    works.deploy(**settings)
    early = resolve_at(works, START_MS + bound_ms, NOT_FOUND)
    assert (early.state, early.not_found_at) == (State.UNKNOWN, None)
    assert early.due_at == START_MS + bound_ms + 1
    counted = resolve_at(works, START_MS + bound_ms + 1, NOT_FOUND)
    assert (counted.state, counted.not_found_at) == (State.UNKNOWN, START_MS + bound_ms + 1)
    assert works.hints() == []


@pytest.mark.parametrize(("row", "settings", "bound_ms"), BOUNDS)
def test_two_not_founds_at_the_bound_leave_the_row_in_doubt(
    works: Works, row: dict[str, Any], settings: dict[str, Any], bound_ms: int
) -> None:
    """The bound stands by itself, not on the second NOT_FOUND."""
    works.doubt()
    works.edit(**row)
    works.deploy(not_found_apart_s=0, **settings)
    for _ in range(3):
        state = resolve_at(works, START_MS + bound_ms, NOT_FOUND).state
        assert state is State.UNKNOWN


def test_a_killed_holder_counts_from_its_certain_end(works: Works) -> None:
    """Nobody wrote when the sending ended, so it ended at dead_at at the latest."""
    works.kill()
    bound_ms = START_MS + 25_000 + 65_000
    assert resolve_at(works, bound_ms, NOT_FOUND).not_found_at is None
    assert resolve_at(works, bound_ms + 1, NOT_FOUND).not_found_at == bound_ms + 1


def test_a_row_keeps_the_bound_of_the_settings_that_it_was_sent_under(works: Works) -> None:
    """A deploy that says less of the core's longest time judges no older row by it."""
    sent = works.kill()
    assert sent.dead_at is not None
    works.deploy(core_longest_s=10, min_age_s=15)
    resolve_at(works, sent.dead_at + 5_001)
    for late_ms, counted in ((65_000, False), (65_001, True)):
        row = resolve_at(works, sent.dead_at + late_ms, NOT_FOUND)
        assert (row.not_found_at is not None) is counted


def test_a_second_claim_has_a_bound_of_its_own(works: Works) -> None:
    """Also where the settings of now would believe earlier: the row says until when to doubt."""
    works.fail()
    works.clock.advance(600)
    works.deploy(core_longest_s=10, min_age_s=15)
    first = works.held()
    again = works.kill()
    assert None not in {first.ask_after, first.sent_at, again.dead_at}
    assert again.sent_at == START_MS + 600_000
    assert again.ask_after == START_MS + 600_000 + 25_000 + 15_000


def test_a_not_found_that_was_asked_for_early_and_written_late_does_not_count(
    works: Works,
) -> None:
    """The age is taken when the inquiry leaves, not when its answer is written."""
    works.doubt()
    works.core.during_ask.append(lambda: works.clock.advance(4))
    row = resolve_at(works, COUNTS_MS - 1, NOT_FOUND)
    assert works.clock() > COUNTS_MS
    assert row.not_found_at is None


def test_two_not_founds_are_apart_as_they_were_asked_for(works: Works) -> None:
    """A slow first answer does not bring the second one nearer."""
    works.doubt()
    works.core.during_ask.append(lambda: works.clock.advance(4))
    row = resolve_at(works, COUNTS_MS, NOT_FOUND)
    assert (row.not_found_at, row.due_at) == (COUNTS_MS, COUNTS_MS + 30_000)


@pytest.mark.parametrize(
    ("apart_ms", "state"), [(1, "UNKNOWN"), (29_999, "UNKNOWN"), (30_000, "FAILED")]
)
def test_only_a_second_not_found_that_is_apart_from_the_first_acts(
    works: Works, apart_ms: int, state: str
) -> None:
    """Too soon, it changes nothing but the next turn; the first one keeps its time."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    row = resolve_at(works, COUNTS_MS + apart_ms, NOT_FOUND)
    assert (row.state, row.not_found_at) == (state, COUNTS_MS)
    hints = [{"guid": "G-1", "attempt": 1}] if state == "FAILED" else []
    assert works.hints() == hints
    assert len(works.core.sent) == 1


def test_a_not_found_believed_is_told_as_not_executed(works: Works) -> None:
    """FAILED says why, and its next turn comes by itself."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    row = resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND)
    assert (row.code, row.why, row.attempt) == ("E902", "not_found", 1)
    assert events(works) == ["claimed", "doubted", "not_found_counted", "not_found"]
    assert (row.due_at or 0) > works.clock()
    assert works.get().code == "E902"


def test_an_interactive_request_that_was_not_found_is_not_hinted(works: Works) -> None:
    """The hub never sends it by itself."""
    works.doubt(headers={"delivery": "interactive"})
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    assert resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND).state is State.FAILED
    assert (works.hints(), works.sqs.calls) == ([], [])


def test_a_recorded_cancel_makes_the_end_of_a_not_found(works: Works) -> None:
    """E908, never FAILED: nothing may send it any more."""
    works.doubt()
    cancel(works)
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    row = resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND)
    assert (row.state, row.code, works.hints()) == (State.DONE, "E908", [])
    assert works.post().code == "E908"
    assert len(works.core.sent) == 1

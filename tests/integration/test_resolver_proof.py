"""What else a NOT_FOUND may not prove: memory, another core, one still at it, another attempt."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.core import Doubt
from relayhub.states import Event, Hold, State
from tests.maintenance import (
    NOT_FOUND,
    PROCESSING,
    UNDECIDED,
    processed,
    reprocessor,
    resolve_at,
    resolver,
)
from tests.plant import Works
from tests.world import START_MS

COUNTS_MS = START_MS + 65_001  # The first moment at which a NOT_FOUND of `doubt()` counts.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


MEMORY_MS = START_MS + (604_800 - 5) * 1000  # Seven days, less the skew.


@pytest.mark.parametrize(
    ("at_ms", "hold"), [(MEMORY_MS - 1, None), (MEMORY_MS, Hold.FORGOTTEN)], ids=["last", "past"]
)
def test_past_the_cores_memory_a_not_found_proves_nothing(
    works: Works, at_ms: int, hold: Hold | None
) -> None:
    """The core has forgotten: the row stays UNKNOWN and waits for a person."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    row = resolve_at(works, at_ms, NOT_FOUND)
    assert row.hold == hold
    assert row.state == (State.UNKNOWN if hold else State.FAILED)
    assert works.noted("held") == int(hold is not None)
    works.clock.advance(1_000)
    asked = len(works.core.asked)
    resolver(works)
    assert len(works.core.asked) == asked


def test_what_the_core_still_knows_counts_at_any_age(works: Works) -> None:
    """PROCESSED is never too old."""
    works.doubt()
    assert resolve_at(works, MEMORY_MS + 1, processed()).state is State.DONE


@pytest.mark.parametrize("field", ["ask_after", "sent_at"])
def test_a_row_that_does_not_say_when_is_held_for_a_person(works: Works, field: str) -> None:
    """Without the times a NOT_FOUND proves nothing; it is asked about no more."""
    works.doubt()
    values: dict[str, Any] = {field: None}
    works.edit("G-1", **values)
    row = resolve_at(works, START_MS + 1_000_000, NOT_FOUND)
    assert (row.state, works.noted("held")) == (State.UNKNOWN, 1)
    assert row.hold is not None
    works.clock.advance(1_000)
    assert (resolver(works).due, len(works.core.asked)) == (0, 1)


@pytest.mark.parametrize("where", ["row", "settings"])
def test_another_cores_word_says_nothing_about_a_row(works: Works, where: str) -> None:
    """It is not even asked; the row stays and waits longer."""
    works.doubt()
    if where == "row":
        works.edit(core="old")
    else:
        works.deploy(core_name="new")
    row = resolve_at(works, COUNTS_MS, processed())
    assert (row.state, works.core.asked) == (State.UNKNOWN, [])
    assert (row.due_at or 0) > works.clock()


@pytest.mark.parametrize(("at_ms", "alarms"), [(START_MS + 65_000, 0), (START_MS + 65_001, 1)])
def test_a_core_still_at_it_past_its_longest_time_raises_the_alarm(
    works: Works, at_ms: int, alarms: int
) -> None:
    """The setting is wrong then; from the last time it was seen a NOT_FOUND waits all over."""
    works.doubt()
    row = resolve_at(works, at_ms, PROCESSING)
    assert (row.state, works.noted("core_longest_wrong")) == (State.UNKNOWN, alarms)
    assert row.processing_at == at_ms
    for ms in (at_ms + 30_000, at_ms + 65_000):
        row = resolve_at(works, ms, NOT_FOUND)
        assert (row.state, row.not_found_at) == (State.UNKNOWN, None)
    resolve_at(works, at_ms + 65_001, NOT_FOUND)
    assert resolve_at(works, at_ms + 95_001, NOT_FOUND).state is State.FAILED


def test_the_core_counts_as_at_it_until_its_answer_came(works: Works) -> None:
    """Not only until it was asked."""
    works.doubt()
    works.core.during_ask.append(lambda: works.clock.advance(4))
    assert resolve_at(works, COUNTS_MS, PROCESSING).processing_at == COUNTS_MS + 4_000


def test_a_not_found_before_the_core_was_seen_at_it_does_not_count_as_the_first(
    works: Works,
) -> None:
    """Both NOT_FOUNDs must have left after the bound, which the sighting moves."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    resolve_at(works, COUNTS_MS + 10_000, PROCESSING)
    row = resolve_at(works, COUNTS_MS + 10_000 + 65_001, NOT_FOUND)
    assert row.state is State.UNKNOWN
    assert resolve_at(works, COUNTS_MS + 10_000 + 95_001, NOT_FOUND).state is State.FAILED


def test_a_not_found_from_before_a_failover_does_not_count_as_the_first(works: Works) -> None:
    """The setting moves the bound: what was asked for before it proves nothing."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    works.deploy(hold_not_found_until="2027-01-15T08:10:00Z")
    row = resolve_at(works, START_MS + 600_001, NOT_FOUND)
    assert row.state is State.UNKNOWN
    assert resolve_at(works, START_MS + 630_001, NOT_FOUND).state is State.FAILED


def test_a_sighting_between_an_inquiry_and_its_write_stops_the_write(works: Works) -> None:
    """What must stop a write stands in its condition: another resolver saw the core at it."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)

    def other_resolver() -> None:
        works.clock.advance(1)
        works.edit(due_at=works.clock())
        works.core.findings.insert(0, PROCESSING)
        resolver(works)

    works.dynamo.before["update_item"].append(other_resolver)
    row = resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND)
    assert works.noted("core_longest_wrong") == 1
    assert row.state is State.UNKNOWN


@pytest.mark.parametrize("by", ["reprocessor", "channel"])
def test_every_claim_begins_without_not_founds(works: Works, by: str) -> None:
    """What was said of one attempt is never counted for the next."""
    works.doubt()
    resolve_at(works, START_MS + 15_000, PROCESSING)
    resolve_at(works, START_MS + 100_000, NOT_FOUND)
    before = resolve_at(works, START_MS + 130_000, NOT_FOUND)
    assert None not in {before.not_found_at, before.processing_at}
    assert before.inquiries > 0
    works.core.findings.append(NOT_FOUND)
    works.core.outcomes.append(Doubt("no_answer", aborted=True))
    if by == "reprocessor":
        reprocessor(works)
    else:
        works.post()
    row = works.held()
    assert (row.state, row.attempt) == (State.UNKNOWN, 2)
    assert (row.not_found_at, row.processing_at, row.inquiries) == (None, None, 0)


@pytest.mark.parametrize(("ahead_ms", "counts"), [(0, True), (2_000, True), (4_000, False)])
def test_no_not_found_counts_under_a_clock_that_is_off(
    works: Works, ahead_ms: int, *, counts: bool
) -> None:
    """Off by more than half the skew against the ledger's own time: it waits."""
    works.doubt()
    works.dynamo_ahead_ms = ahead_ms
    row = resolve_at(works, COUNTS_MS, NOT_FOUND)
    assert (row.not_found_at is not None) is counts
    assert row.state is State.UNKNOWN


def test_undecided_between_two_not_founds_takes_nothing_back(works: Works) -> None:
    """It says nothing, so the first one still stands."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    resolve_at(works, COUNTS_MS + 30_000, UNDECIDED)
    assert resolve_at(works, COUNTS_MS + 60_000, NOT_FOUND).state is State.FAILED
    assert works.held().history[-1]["event"] == Event.NOT_FOUND

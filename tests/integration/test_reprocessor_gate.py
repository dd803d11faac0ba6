"""The gate: while the core is away one probe now and then goes to it, and no attempt is spent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from relayhub.core import Finding
from relayhub.flows.reprocess import Taken
from relayhub.message import MalformedError, check_guid
from tests.maintenance import (
    AWAY,
    NOT_FOUND,
    PROCESSING,
    UNDECIDED,
    processed,
    purger,
    reprocessor,
    sweep,
)
from tests.plant import Works
from tests.world import START_MS, KilledError, never_arrives, refused

GATE = "!gate"
GARBLED = Finding(UNDECIDED.verdict, None, "not_json")  # It answers, if in no known words.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with two requests that were not sent."""
    del aws
    works = Works()
    works.fail("G-1")
    works.fail("G-2")
    return works


def close(works: Works) -> None:
    """Let one inquiry find the core away."""
    works.core.findings[:] = [AWAY]
    assert reprocessor(works) is Taken.WAITS
    assert works.item(GATE)
    works.core.asked.clear()


def test_a_core_that_cannot_be_reached_closes_the_gate(works: Works) -> None:
    """Once, with a note for the alarm; the row that found out is as it was."""
    before = works.item()
    close(works)
    assert (works.item(), works.noted("gate_closed")) == (before, 1)
    assert works.item(GATE)["probe_at"] == {"N": str(START_MS + 15_000)}


@pytest.mark.parametrize(
    "finding",
    [NOT_FOUND, processed(), PROCESSING, GARBLED],
    ids=["not_found", "processed", "processing", "garbled"],
)
def test_a_core_that_is_there_leaves_the_gate_open(works: Works, finding: Finding) -> None:
    """Whatever it says."""
    works.core.findings[:] = [finding]
    reprocessor(works)
    assert works.item(GATE) == {}


def test_of_two_that_find_the_core_away_the_first_closes_the_gate(works: Works) -> None:
    """The second one is slower: the probe that the first has set is not put off, nor told twice."""
    works.core.findings[:] = [AWAY, AWAY]

    def another_finds_out() -> None:
        assert reprocessor(works, "G-2") is Taken.WAITS
        works.clock.advance(3)

    works.core.during_ask.append(another_finds_out)
    assert reprocessor(works, "G-1") is Taken.WAITS
    assert works.item(GATE)["probe_at"] == {"N": str(START_MS + 15_000)}
    assert works.noted("gate_closed") == 1


def test_a_closed_gate_lets_one_probe_through_per_its_time(works: Works) -> None:
    """Everybody else acknowledges the hint and leaves the row and its attempts alone."""
    close(works)
    before = [works.item("G-1"), works.item("G-2")]
    asked_at: list[int] = []
    works.core.during_ask += [lambda: asked_at.append(works.clock())] * 100
    for _ in range(61):
        assert reprocessor(works, "G-1") is Taken.WAITS
        assert reprocessor(works, "G-2") is Taken.WAITS
        works.clock.advance(1)
    assert asked_at == [START_MS + second * 1_000 for second in (15, 30, 45, 60)]
    assert [works.item("G-1"), works.item("G-2")] == before
    assert len(works.core.sent) == 2


def test_of_many_callers_at_once_one_alone_probes(works: Works) -> None:
    """The turn is taken by a conditional write."""
    close(works)
    works.clock.advance(15)
    barrier = Barrier(12)

    def call(_: int) -> Taken:
        barrier.wait()
        return reprocessor(works, "G-2")

    with ThreadPoolExecutor(12) as pool:
        taken = list(pool.map(call, range(12)))
    assert taken == [Taken.WAITS] * 12
    assert works.core.asked == ["G-2"]


def test_one_that_looks_between_anothers_look_and_turn_has_none(works: Works) -> None:
    """Both saw the same probe due; the write of the turn lets one of them ask."""
    close(works)
    works.clock.advance(15)
    works.dynamo.before["put_item"].append(lambda: reprocessor(works, "G-2"))
    assert reprocessor(works, "G-1") is Taken.WAITS
    assert works.core.asked == ["G-2"]


@pytest.mark.parametrize(
    ("finding", "is_open", "taken"),
    [
        (NOT_FOUND, True, "sent"),
        (processed(), True, "ended"),
        (PROCESSING, True, "waits"),
        (UNDECIDED, False, "waits"),
        (AWAY, False, "waits"),
    ],
    ids=["not_found", "processed", "processing", "undecided", "away"],
)
def test_a_probe_that_brings_a_verdict_opens_the_gate(
    works: Works, finding: Finding, taken: str, *, is_open: bool
) -> None:
    """And its own row goes on at once; anything else leaves it closed for another turn."""
    close(works)
    works.clock.advance(15)
    works.core.findings[:] = [finding]
    assert reprocessor(works) == taken
    assert (works.item(GATE) == {}) is is_open
    works.core.findings[:] = [NOT_FOUND]
    assert reprocessor(works, "G-2") == ("sent" if is_open else "waits")


def test_the_probe_spends_no_attempt_on_a_core_that_is_away(works: Works) -> None:
    """An hour of it: attempts, resends and claims are those of the beginning."""
    before = works.held()
    close(works)
    for _ in range(60):
        works.clock.advance(60)
        reprocessor(works)
    row = works.held()
    assert (row.attempt, row.resends, row.claim_id) == (1, 0, before.claim_id)
    assert (len(works.core.asked), len(works.core.sent)) == (60, 2)


def test_a_prober_that_dies_blocks_nobody_for_longer_than_one_turn(works: Works) -> None:
    """The next probe is due by time, whoever took the last."""
    close(works)
    works.clock.advance(15)

    def die() -> None:
        raise KilledError

    works.core.during_ask.append(die)
    with pytest.raises(KilledError):
        reprocessor(works)
    works.core.findings[:] = [NOT_FOUND]
    works.clock.advance(14.999)
    assert reprocessor(works) is Taken.WAITS
    works.clock.advance(0.001)
    assert reprocessor(works) is Taken.SENT


def test_a_gate_that_cannot_be_read_counts_as_closed(works: Works) -> None:
    """Nobody asks, nothing is spent."""
    works.core.findings[:] = [NOT_FOUND]
    throttled = [refused("ThrottlingException")] * 2
    # The first read is the row's; the faults are laid for those after it.
    works.dynamo.before["get_item"].append(
        lambda: works.dynamo.faults["get_item"].extend(throttled)
    )
    assert reprocessor(works) is Taken.WAITS
    assert (works.core.asked, len(works.core.sent)) == ([], 2)


def test_a_turn_whose_write_got_no_answer_is_not_had(works: Works) -> None:
    """One probe less, never one more."""
    close(works)
    works.clock.advance(15)
    works.dynamo.faults["put_item"] += [never_arrives] * 2
    assert reprocessor(works) is Taken.WAITS
    assert works.core.asked == []


def test_a_gate_that_cannot_be_opened_stops_nobody_who_has_asked(works: Works) -> None:
    """The row goes on; the next probe opens it."""
    close(works)
    works.clock.advance(15)
    works.core.findings[:] = [NOT_FOUND]
    works.dynamo.faults["delete_item"] += [refused("ThrottlingException")] * 2
    assert reprocessor(works) is Taken.SENT
    assert (works.noted("gate_unknown"), works.item(GATE) != {}) == (1, True)


def test_the_gates_key_is_nobodys_guid_and_no_job_takes_it_for_a_row(works: Works) -> None:
    """Sweep and purger pass it by."""
    with pytest.raises(MalformedError):
        check_guid(GATE)
    close(works)
    before = works.item(GATE)
    works.clock.advance(1_000)
    sweep(works)
    assert purger(works).scanned == 2
    assert works.item(GATE) == before


@pytest.mark.parametrize("reason", ["answer_timeout", "gateway_status"])
def test_a_core_that_answers_no_inquiry_is_not_asked_to_death(works: Works, reason: str) -> None:
    """Hung, or behind a gateway that says 503: it cannot be asked either; probes are rationed."""
    silent = Finding(UNDECIDED.verdict, None, reason)
    works.core.findings[:] = [silent] * 200
    for _ in range(60):
        reprocessor(works, "G-1")
        reprocessor(works, "G-2")
        works.clock.advance(1)
    assert len(works.core.asked) <= 5

"""The control row: each switch is set once, taken back once, and tells who did it."""

from __future__ import annotations

import pytest

from relayhub.controls import Controls, Job, Switch
from relayhub.upkeep import UpkeepError
from tests.emulated import FaultyClient, client, make_table, never_arrives, refused, reply_lost
from tests.world import TABLE

ALICE = Switch("operator alice", "maintenance", 1)
BOB = Switch("operator bob", "again", 2)


@pytest.fixture
def dynamo(aws: None) -> FaultyClient:
    """Return a client of an emulated table."""
    del aws
    make_table()
    return FaultyClient(client("dynamodb"))


@pytest.fixture
def controls(dynamo: FaultyClient) -> Controls:
    """Return the table's switches."""
    return Controls(dynamo, TABLE, now_ms=lambda: 1_000, pause=lambda _: None)


def test_a_core_that_a_person_closed_is_not_closed_by_another(controls: Controls) -> None:
    """The first one's word stands."""
    assert controls.close_core(ALICE)
    assert not controls.close_core(BOB)
    assert controls.read().core == ALICE


def test_a_person_closes_over_the_hub(controls: Controls) -> None:
    """Then only a person opens it."""
    assert controls.strike(1, 5_000, "one call")
    assert controls.close_core(ALICE)
    assert controls.read().core == ALICE


def test_an_open_core_is_not_opened(controls: Controls) -> None:
    """Whoever asks learns that it was open."""
    assert not controls.open_core()
    controls.close_core(ALICE)
    assert controls.open_core()
    assert not controls.open_core()


def test_opening_forgets_the_strikes(controls: Controls) -> None:
    """Else the next call without an answer would close it again."""
    controls.strike(9, 0, "why")
    controls.close_core(ALICE)
    controls.open_core()
    assert controls.read().strikes == 0


@pytest.mark.parametrize("job", list(Job))
def test_a_job_is_held_once_and_released_once(controls: Controls, job: Job) -> None:
    """And the other job is as it was."""
    assert not controls.release_job(job)
    assert controls.hold_job(job, ALICE)
    assert not controls.hold_job(job, BOB)
    assert controls.read().held == {job: ALICE}
    assert controls.release_job(job)
    assert not controls.release_job(job)
    assert controls.read().held == {}


def test_a_lost_reply_of_ones_own_switch_is_recognised(
    controls: Controls, dynamo: FaultyClient
) -> None:
    """The second try meets what the first one wrote."""
    dynamo.faults["update_item"].append(reply_lost)
    assert controls.close_core(ALICE)


def test_another_ones_switch_is_not_taken_for_ones_own(
    controls: Controls, dynamo: FaultyClient
) -> None:
    """Though the first try never arrived."""
    controls.close_core(BOB)
    dynamo.faults["update_item"].append(never_arrives)
    assert not controls.close_core(ALICE)


def test_a_switch_that_nobody_knows_to_be_written_is_an_error(
    controls: Controls, dynamo: FaultyClient
) -> None:
    """Not a "no": the person must look."""
    dynamo.faults["update_item"] += [never_arrives] * 2
    with pytest.raises(UpkeepError):
        controls.close_core(ALICE)
    dynamo.faults["update_item"] += [refused("AccessDeniedException")]
    with pytest.raises(UpkeepError, match="AccessDenied"):
        controls.open_core()


def test_the_first_scope_that_is_written_stands(controls: Controls, dynamo: FaultyClient) -> None:
    """Another function under another setting changes nothing."""
    controls.bind_scope("global")
    other = Controls(dynamo, TABLE, now_ms=lambda: 1_000, pause=lambda _: None)
    other.bind_scope("channel")
    assert controls.read().guid_scope == "global"


def test_what_was_just_switched_is_read_anew(controls: Controls) -> None:
    """One's own switch counts at once."""
    assert controls.switches().core is None
    controls.close_core(ALICE)
    assert controls.switches().core == ALICE

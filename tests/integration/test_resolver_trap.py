"""The trap: a core that executes late. Under the true bounds once; with them bypassed, twice."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.settings import SettingsError, load
from relayhub.states import State
from tests.maintenance import resolver
from tests.plant import Plant
from tests.world import ENVIRONMENT, START_MS

LATE_MS = 60_000  # As late as the core may be by CORE_LONGEST_S.


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank that begins what it takes as late as it may."""
    del aws
    plant = Plant(shards=1, read_shards=1)
    plant.bank.begins_after_ms = LATE_MS
    return plant


def live(plant: Plant, seconds: int) -> None:
    """Let time pass, with the resolver and the hints every second."""
    for _ in range(seconds):
        plant.clock.advance(1)
        resolver(plant)
        plant.deliver()
        plant.bank.settle()


def test_a_core_that_executes_late_executes_once_under_the_true_bounds(plant: Plant) -> None:
    """Every inquiry that says NOT_FOUND before then is too early to count."""
    assert plant.post().code == "E901"
    live(plant, 200)
    row = plant.held()
    assert (plant.bank.executed, row.state, row.code) == ({"G-1": 1}, State.DONE, "0000")
    assert plant.bank.sends == [("G-1", 1)]


@pytest.mark.parametrize(
    ("row", "settings"),
    [
        ({"ask_after": START_MS}, {}),
        ({}, {"min_age_s": 0}),
        ({"ended_at": START_MS}, {"min_age_s": 0, "not_found_apart_s": 0}),
        ({"ask_after": START_MS}, {"not_found_apart_s": 0}),
    ],
    ids=["row_only", "settings_only", "settings_and_apart", "row_and_apart"],
)
def test_either_bound_alone_is_enough(
    plant: Plant, row: dict[str, Any], settings: dict[str, Any]
) -> None:
    """What the row carries and what the resolver knows guard each by itself."""
    plant.post()
    plant.edit(**row, due_at=START_MS)
    plant.deploy(**settings)
    live(plant, 200)
    assert plant.bank.executed == {"G-1": 1}


def test_with_the_bounds_bypassed_the_customer_pays_twice(plant: Plant) -> None:
    """So the bounds are what keeps the tests above true: asked, absent twice, sent again."""
    plant.post()
    plant.edit(ask_after=START_MS, ended_at=START_MS, due_at=START_MS)
    plant.deploy(min_age_s=0, not_found_apart_s=1)
    live(plant, 40)
    assert plant.bank.sends == [("G-1", 1), ("G-1", 2)]
    plant.clock.advance(2 * LATE_MS / 1000)
    plant.bank.settle()
    assert plant.bank.executed == {"G-1": 2}


def test_a_killed_sender_whose_bytes_are_read_later_is_waited_for(plant: Plant) -> None:
    """Its end is dead_at, and the core may begin core_longest after that."""
    plant.bank.begins_after_ms = 25_000 + LATE_MS
    plant.post()
    plant.edit(
        state="SENT",
        ended_at=START_MS + 25_000,
        ask_after=START_MS + 90_000,
        due_at=START_MS + 30_000,
        open_shard="SENT#0",
    )
    live(plant, 250)
    assert (plant.bank.executed, plant.held().code) == ({"G-1": 1}, "0000")


def test_with_the_bounds_bypassed_bytes_that_are_read_later_are_paid_twice(plant: Plant) -> None:
    """A core that reads from its backlog after the hub gave up is what the bounds wait for."""
    plant.bank.begins_after_ms = 25_000 + LATE_MS
    plant.post()
    plant.edit(
        state="SENT", ended_at=START_MS, ask_after=START_MS, due_at=START_MS, open_shard="SENT#0"
    )
    plant.deploy(min_age_s=0, not_found_apart_s=1)
    live(plant, 60)
    assert plant.bank.sends == [("G-1", 1), ("G-1", 2)]
    plant.clock.advance(3 * LATE_MS / 1000)
    plant.bank.settle()
    assert plant.bank.executed == {"G-1": 2}


@pytest.mark.parametrize(
    ("name", "value"), [("MIN_AGE_S", "64"), ("CORE_LONGEST_S", "61")], ids=["min_age", "longest"]
)
def test_settings_that_would_bypass_the_bound_do_not_start(name: str, value: str) -> None:
    """The error names both variables and the smallest value that would do."""
    with pytest.raises(SettingsError, match=r"MIN_AGE_S=6[45] is too small with CORE_LONGEST_S"):
        load({**ENVIRONMENT, name: value})

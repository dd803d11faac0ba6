"""A small run of `make chaos`: real kills and lost replies, and the ledger is right in the end."""

from __future__ import annotations

from typing import Final

import pytest

from local.stack import Stack, StackConfig
from tests.chaos import report, weather
from tests.chaos.plan import draw
from tests.chaos.play import play
from tests.e2e.conftest import LOGS

pytestmark = pytest.mark.e2e

ACTS: Final = 200
SEED: Final = 20_261_129
CLIENTS: Final = 12  # Each is a process to start; more would cost the small run its time.
LIMIT_S: Final = 300.0  # Far above what it takes, for a machine that is busy with other things.


def test_a_small_chaos_ends_with_nothing_double_lost_or_open(built: None) -> None:
    """Functions were killed, some in mid call, and replies lost; every act ended once at most."""
    del built
    logs = LOGS / "chaos"
    config = StackConfig(logs=logs, parameters=weather.LIMITS, has_faults=True)
    with Stack.running(config) as stack:
        outcome = play(stack, draw(ACTS, SEED), clients=CLIENTS, limit_s=LIMIT_S)
        kept = report.keep_evidence(stack, outcome, logs)
    truth = outcome.truth
    assert (dict(truth.doubles), truth.lost, truth.open_count) == ({}, (), 0), kept
    assert truth.is_right, kept
    assert len(truth.executed) > ACTS * 0.8
    assert outcome.unsent == 0
    assert outcome.kills.count >= 5
    assert outcome.in_core
    assert outcome.dropped >= 3

"""What a sweep tells the alarms: that it ran, or was held, and how late the latest row is."""

from __future__ import annotations

import pytest

from relayhub import telemetry
from relayhub.controls import CACHE_MS, Job, Switch
from relayhub.flows import reprocess, resolve
from tests.maintenance import RUN_MS, sweep
from tests.plant import Works


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


def hold(works: Works, job: Job) -> None:
    """Let a person hold the job, and the functions see it."""
    works.hub.controls.hold_job(job, Switch("operator alice", "look", works.clock()))
    works.clock.ms += CACHE_MS + 1


def told(name: str) -> list[float]:
    """Take what was written of the metric."""
    values: list[float] = telemetry.metrics.metric_set.get(name, {}).get("Value", [])
    telemetry.metrics.clear_metrics()
    return values


def test_a_sweep_tells_how_late_the_latest_row_is(works: Works) -> None:
    """Rows that wait beyond their turn are an alarm while nothing else is."""
    works.fail()
    works.clock.ms = (works.held().due_at or 0) + 90_000
    swept = sweep(works)
    assert (swept.oldest_due_ms, swept.held) == ({"FAILED": 90_000}, False)
    telemetry.metrics.clear_metrics()
    telemetry.swept(swept)
    assert told("OldestDue.FAILED") == [90_000]


def test_a_sweep_with_nothing_to_do_has_run_and_nothing_is_late(works: Works) -> None:
    """So the alarm on late rows ends, and the one on missing sweeps stays quiet."""
    telemetry.metrics.clear_metrics()
    swept = sweep(works)
    telemetry.swept(swept)
    assert told("OldestDue.FAILED") == [0]
    telemetry.swept(swept)
    assert told("SweepRuns") == [1]


def test_a_held_sweep_counts_as_no_run(works: Works) -> None:
    """Whoever forgets to release it is reminded."""
    works.fail()
    hold(works, Job.REPROCESSOR)
    telemetry.metrics.clear_metrics()
    swept = reprocess.sweep(works.hub, works.clock() + RUN_MS)
    assert swept.held
    telemetry.swept(swept)
    assert told("SweepRuns") == [0]


def test_a_held_resolver_counts_as_no_run(works: Works) -> None:
    """As the sweep."""
    hold(works, Job.RESOLVER)
    telemetry.metrics.clear_metrics()
    telemetry.resolved(resolve.run(works.hub, works.clock() + RUN_MS))
    assert told("ResolverRuns") == [0]

"""What Powertools prints of metrics becomes what PutMetricData takes, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from local.emf import Datum, data_of
from relayhub import telemetry


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Return the lines that Powertools prints of two answers, a doubt and an age."""
    telemetry.metrics.clear_metrics()
    telemetry.note("answered", code="0000")
    telemetry.note("answered", code="E906")
    telemetry.note("clock_off")
    telemetry.metrics.add_metric(name="OldestAge.UNKNOWN", unit="Milliseconds", value=61_000)
    capsys.readouterr()
    telemetry.metrics.flush_metrics()
    yield capsys.readouterr().out.splitlines()
    telemetry.metrics.clear_metrics()


def by_name(lines: list[str]) -> dict[str, Datum]:
    """Return what the lines say, by the metric's name."""
    return {each.data["MetricName"]: each for line in lines for each in data_of(line)}


def test_each_metric_keeps_namespace_dimension_values_and_unit(written: list[str]) -> None:
    """As CloudWatch itself reads them out of the log."""
    found = by_name(written)
    assert set(found) == {
        *("Answer.0000", "Answer.E906", "HubRefused", "ClockOff", "OldestAge.UNKNOWN")
    }
    assert {each.namespace for each in found.values()} == {"relayhub"}
    own = [{"Name": "service", "Value": "relayhub"}]
    assert all(each.data["Dimensions"] == own for each in found.values())
    assert found["HubRefused"].data["Values"] == [0, 1]
    assert found["OldestAge.UNKNOWN"].data["Values"] == [61_000]
    assert found["OldestAge.UNKNOWN"].data["Unit"] == "Milliseconds"


def test_a_metric_keeps_the_time_at_which_it_was_written(written: list[str]) -> None:
    """Not the time at which it is forwarded."""
    (line,) = written
    said_ms = json.loads(line)["_aws"]["Timestamp"]
    at = by_name(written)["ClockOff"].data["Timestamp"]
    assert at == datetime.fromtimestamp(said_ms / 1000, UTC)


@pytest.mark.parametrize(
    "line",
    [
        "START RequestId: 1",
        '{"level":"INFO","message":"step","guid":"G-1"}',
        '{"_aws": {"Timestamp": 1}}',
        '{"_aws": broken',
        '["_aws"]',
    ],
    ids=["platform", "log", "no-directive", "cut", "list"],
)
def test_any_other_line_says_nothing(line: str) -> None:
    """A log holds more than metrics."""
    assert list(data_of(line)) == []


def test_many_values_are_split_as_a_request_takes_them() -> None:
    """PutMetricData takes 150 values of one metric."""
    metric = {"Namespace": "n", "Dimensions": [[]], "Metrics": [{"Name": "Step.claimed"}]}
    emf = {"_aws": {"Timestamp": 1_000, "CloudWatchMetrics": [metric]}}
    line = json.dumps(emf | {"Step.claimed": [1.0] * 301})
    found = list(data_of(line))
    assert [len(each.data["Values"]) for each in found] == [150, 150, 1]
    assert {each.data["Unit"] for each in found} == {"None"}

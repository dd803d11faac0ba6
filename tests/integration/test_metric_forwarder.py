"""What the functions log of metrics reaches CloudWatch once, with its time."""

from __future__ import annotations

import json
from typing import Any

from local.metric_forwarder import Forwarder
from relayhub.hub import epoch_ms
from tests.emulated import client

GROUP = "/aws/lambda/relayhub-relay"
START_MS = epoch_ms()  # CloudWatch Logs takes no line that is two weeks old.
REQUEST_MAX = 1_000


def emf(at_ms: int, value: float) -> str:
    """Return a line as a function prints it."""
    metric = {
        "Namespace": "relayhub",
        "Dimensions": [["service"]],
        "Metrics": [{"Name": "Contradiction", "Unit": "Count"}],
    }
    about = {"_aws": {"Timestamp": at_ms, "CloudWatchMetrics": [metric]}, "service": "relay"}
    return json.dumps(about | {"Contradiction": [value]})


class Recorder:
    """A CloudWatch that keeps what it is given."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.written: list[tuple[str, dict[str, Any]]] = []

    def put_metric_data(self, *, Namespace: str, MetricData: list[dict[str, Any]]) -> None:  # noqa: N803
        """Keep the data."""
        assert len(MetricData) <= REQUEST_MAX
        self.written += [(Namespace, each) for each in MetricData]

    def values(self) -> list[float]:
        """Return every value so far."""
        return [value for _, each in self.written for value in each["Values"]]


def log(*lines: tuple[int, str], process: str = "one") -> None:
    """Write lines into the function's log, as one of its processes."""
    events = [{"timestamp": at_ms, "message": message} for at_ms, message in lines]
    client("logs").put_log_events(logGroupName=GROUP, logStreamName=process, logEvents=events)


def forwarder(cloudwatch: Recorder) -> Forwarder:
    """Return one that begins with the world."""
    logs = client("logs")
    logs.create_log_group(logGroupName=GROUP)
    for process in ("one", "two"):
        logs.create_log_stream(logGroupName=GROUP, logStreamName=process)
    return Forwarder(logs, cloudwatch, [GROUP], START_MS)


def test_a_line_is_forwarded_once_and_later_ones_after_it(aws: None) -> None:
    """A second look writes only what is new; other lines and older ones write nothing."""
    del aws
    cloudwatch = Recorder()
    works = forwarder(cloudwatch)
    log((START_MS - 1, emf(START_MS - 1, 9)), (START_MS, "START"), (START_MS, emf(START_MS, 1)))
    assert works.forward_once() == 1
    assert works.forward_once() == 0
    log((START_MS + 5, emf(START_MS + 5, 2)))
    assert works.forward_once() == 1
    # Another process's line may come late, with an earlier time.
    log((START_MS + 1, emf(START_MS + 1, 3)), process="two")
    assert works.forward_once() == 1
    assert sorted(cloudwatch.values()) == [1, 2, 3]
    assert {namespace for namespace, _ in cloudwatch.written} == {"relayhub"}


def test_many_metrics_go_in_requests_that_cloudwatch_takes(aws: None) -> None:
    """A load's worth of lines is more than one request holds."""
    del aws
    cloudwatch = Recorder()
    works = forwarder(cloudwatch)
    log(*((START_MS + number, emf(START_MS + number, 1)) for number in range(REQUEST_MAX + 200)))
    assert works.forward_once() == REQUEST_MAX + 200
    assert len(cloudwatch.values()) == REQUEST_MAX + 200

"""Embedded metrics (EMF) of a log line, as PutMetricData takes them. No input, no output."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

_VALUES_MAX: Final = 150  # Of one metric in one request: PutMetricData.


@dataclass(frozen=True)
class Datum:
    """One metric's values at one time, and the namespace that they are written in."""

    namespace: str
    data: dict[str, Any]


def data_of(line: str) -> Iterator[Datum]:
    """Yield what the line says of metrics: nothing for any other line of a log."""
    found = _emf_of(line)
    if found is None:
        return
    at = datetime.fromtimestamp(found["_aws"]["Timestamp"] / 1000, UTC)
    for directive in found["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            about = [{"Name": name, "Value": str(found[name])} for name in names]
            for metric in directive["Metrics"]:
                for values in _values(found[metric["Name"]]):
                    data = {
                        "MetricName": metric["Name"],
                        "Dimensions": about,
                        "Timestamp": at,
                        "Values": values,
                        "Unit": metric.get("Unit", "None"),
                    }
                    yield Datum(directive["Namespace"], data)


def _emf_of(line: str) -> dict[str, Any] | None:
    if '"_aws"' not in line:
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    is_emf = isinstance(found, dict) and "CloudWatchMetrics" in found.get("_aws", {})
    return found if is_emf else None


def _values(value: float | list[float]) -> Iterator[list[float]]:
    values = value if isinstance(value, list) else [value]
    for first in range(0, len(values), _VALUES_MAX):
        yield values[first : first + _VALUES_MAX]

"""Numbers that must stand in no log line, straight to CloudWatch: the only code that uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_CONNECT_S: Final = 1
_READ_S: Final = 2
_BATCH: Final = 500  # Of the 1,000 metrics that one request takes.


@dataclass(frozen=True)
class Gauge:
    """One value of a metric as it is now, and what it is about."""

    name: str
    value: float
    about: dict[str, str] = field(default_factory=dict)


class Gauges:
    """The metrics of one namespace."""

    def __init__(self, client: Any, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def put(self, gauges: Sequence[Gauge]) -> str | None:
        """Write the values; return what failed, None if all are written."""
        for first in range(0, len(gauges), _BATCH):
            data = [
                {
                    "MetricName": each.name,
                    "Value": each.value,
                    "Dimensions": [{"Name": k, "Value": v} for k, v in each.about.items()],
                }
                for each in gauges[first : first + _BATCH]
            ]
            try:
                self._client.put_metric_data(Namespace=self._namespace, MetricData=data)
            except (BotoCoreError, ClientError) as error:
                return type(error).__name__
        return None


def make_client() -> Any:
    """Return a CloudWatch client with every option that matters stated."""
    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    return boto3.client("cloudwatch", config=config)

"""Turns the functions' EMF lines into metrics: AWS does it by itself, the emulator does not.

`python -m local.metric_forwarder` does it every few seconds until it is ended.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Self

import boto3
import typer
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.emf import data_of
from local.emulator import REGION

_PAUSE_S: Final = 5.0
_BATCH: Final = 500  # Of the 1,000 metrics that one request takes.
# A function's lines may be there later than others that bear a later time.
_OVERLAP_MS: Final = 120_000


class Forwarder:
    """Forwards each line of some log groups once; those before `since_ms` (epoch) not at all."""

    def __init__(self, logs: Any, cloudwatch: Any, groups: Iterable[str], since_ms: int) -> None:
        """Take the emulator's clients."""
        self._logs = logs
        self._cloudwatch = cloudwatch
        self._groups = tuple(groups)
        self._since_ms = since_ms
        self._newest_ms = since_ms
        self._seen: dict[tuple[str, ...], int] = {}  # When each event was written.

    @classmethod
    def at(cls, endpoint: str, groups: Iterable[str], since_ms: int) -> Self:
        """Return one that talks to an emulator with the credentials of the environment."""
        config = Config(proxies={}, retries={"mode": "standard", "total_max_attempts": 2})
        make: Any = boto3.Session(region_name=REGION).client
        logs, cloudwatch = (
            make(service, endpoint_url=endpoint, config=config)
            for service in ("logs", "cloudwatch")
        )
        return cls(logs, cloudwatch, groups, since_ms)

    def forward_once(self) -> int:
        """Forward what is new, and return how many metrics that was."""
        found = [datum for line in self._new_lines() for datum in data_of(line)]
        by_namespace: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in found:
            by_namespace[each.namespace].append(each.data)
        for namespace, data in by_namespace.items():
            for first in range(0, len(data), _BATCH):
                self._cloudwatch.put_metric_data(
                    Namespace=namespace, MetricData=data[first : first + _BATCH]
                )
        return len(found)

    def _new_lines(self) -> Iterator[str]:
        from_ms = max(self._since_ms, self._newest_ms - _OVERLAP_MS)
        self._seen = {key: at for key, at in self._seen.items() if at >= from_ms}
        for group in self._groups:
            pages = self._logs.get_paginator("filter_log_events").paginate(
                logGroupName=group, startTime=from_ms, filterPattern='"_aws"'
            )
            for event in (each for page in pages for each in page["events"]):
                # The emulator gives an event no id.
                key = (event["logStreamName"], str(event["timestamp"]), event["message"])
                if key not in self._seen:
                    self._seen[key] = event["timestamp"]
                    self._newest_ms = max(self._newest_ms, event["timestamp"])
                    yield event["message"]


def main(
    endpoint: Annotated[str, typer.Option(help="The emulator's address.")],
    group: Annotated[list[str], typer.Option(help="A log group; may repeat.")],
) -> None:
    """Forward until somebody ends the process."""
    forwarder = Forwarder.at(endpoint, group, int(time.time() * 1000))
    while True:
        try:
            forwarder.forward_once()
        except (BotoCoreError, ClientError) as error:
            # A busy emulator is no reason to end the stack: the next round has the next lines.
            typer.echo(f"not forwarded: {error}", err=True)
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    typer.run(main)

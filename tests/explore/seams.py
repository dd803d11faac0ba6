"""Where the explorer takes hold of the shipped code, for one schedule: outside of our own modules.

The boto3 clients are handed to the hub. The socket that `wire.py` opens, the threads of the purger
and the log of faults are put in place here, and taken away again: other tests use the real ones.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Self

from relayhub import telemetry, wire
from relayhub.flows import purge
from tests.explore.scheduler import ViolationError


@contextlib.contextmanager
def in_place(sockets: SimpleNamespace) -> Iterator[None]:
    """Let the hub use these sockets, no thread, and break the schedule with any fault it logs."""
    net: Any = wire
    jobs: Any = purge
    shipped = net.socket, jobs.ThreadPoolExecutor
    log = logging.getLogger(telemetry.logger.name)
    net.socket, jobs.ThreadPoolExecutor = sockets, InlinePool
    log.addFilter(_break)
    try:
        yield
    finally:
        log.removeFilter(_break)
        net.socket, jobs.ThreadPoolExecutor = shipped


def _break(record: logging.LogRecord) -> bool:
    """Refuse what a handler of the hub would only log: an error that nobody expected."""
    facts = vars(record)
    raise ViolationError(f"a function broke: {facts.get('error')} at {facts.get('places')}")


class InlinePool:
    """Stands for the purger's pool of threads: runs at once."""

    def __init__(self, _: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, run: Callable[..., Any], *args: Any, **more: Any) -> SimpleNamespace:
        """Run it."""
        value = run(*args, **more)
        return SimpleNamespace(result=lambda: value)

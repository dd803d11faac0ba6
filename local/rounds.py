"""Runs the maintenance functions of the local stack, as their schedules do, without the waiting."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from local.stack import Stack

RESOLVER: Final = "ResolverFunction"
REPROCESSOR: Final = "ReprocessorFunction"
_PAUSE_S: Final = 1.0


def until_settled(
    stack: Stack, *, within_s: float, on_round: Callable[[Counter[str]], None] = lambda _: None
) -> Counter[str]:
    """Run resolver and sweep until no row is open, or time is up; return the rows by state.

    A parked or held row counts as settled under that word: it waits for a person.
    """
    ends = time.monotonic() + within_s
    while True:
        stack.invoke(RESOLVER, {})
        stack.invoke(REPROCESSOR, {})
        states = Counter(map(_standing, stack.scan_rows()))
        on_round(states)
        if not set(states) - {"DONE", "PARKED", "HELD"} or time.monotonic() > ends:
            return states
        time.sleep(_PAUSE_S)


def _standing(row: dict[str, object]) -> str:
    if row.get("hold"):
        return "HELD"
    return "PARKED" if row.get("parked") else str(row["state"])

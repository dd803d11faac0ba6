"""All set-ups by name, and which of them a short run takes."""

from __future__ import annotations

from typing import Final

from tests.explore.setup import Setup
from tests.explore.setups import CUSTOMERS, MESSAGES, RELAY
from tests.explore.setups_bound import BOUND, PLANTED
from tests.explore.setups_jobs import PURGER, REPROCESSOR
from tests.explore.setups_persons import PERSONS
from tests.explore.setups_resolver import RESOLVER
from tests.explore.storms import COUNT, storm

BOUNDED: Final[tuple[Setup, ...]] = (
    *RELAY,
    *MESSAGES,
    *RESOLVER,
    *REPROCESSOR,
    *PURGER,
    *BOUND,
    *CUSTOMERS,
    *PERSONS,
)
STORMS: Final[tuple[Setup, ...]] = tuple(storm(number) for number in range(1, COUNT + 1))
_BY_NAME: Final = {each.name: each for each in (*BOUNDED, *STORMS, *PLANTED)}


def find(name: str) -> Setup:
    """Return the set-up of that name. Raises KeyError."""
    return _BY_NAME[name]


SHORT: Final = tuple(map(find, ("batch-again", "async", "hint-twice")))

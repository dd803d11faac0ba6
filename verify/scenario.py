"""What a scenario is: a name, what is right, and a run that waits by yielding.

A run talks to the relay and to the core, and raises FailedError as soon as something is not right.
Where it has to wait for the relay's own maintenance it yields an Until; others go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from verify.play import Play


class FailedError(Exception):
    """The relay did not do what is right; the message is the sentence that says why."""


class CannotError(FailedError):
    """The relay has no such thing, so the scenario cannot be played: that is a failure too."""


@dataclass(frozen=True)
class Until:
    """A wait: over when `holds` does, or after so many seconds; the run is sent which it was."""

    holds: Callable[[], bool]
    within_s: float


Steps = Generator[Until, bool, None]
Run = Callable[["Play"], Steps | None]


class Need(StrEnum):
    """What a scenario cannot be played without, beside the relay and the core."""

    NOTHING = "nothing"
    SECOND = "a second identity"  # Another channel.
    PROCESSES = "process control"  # The relay's processes, its ledger's replies, the core's.


@dataclass(frozen=True)
class Scenario:
    """One thing that a relay must do right."""

    id: str
    name: str
    expects: str
    run: Run
    case: int | None = None  # The number in CASES of a fault that others reported.
    need: Need = Need.NOTHING
    group: str = ""  # What it is about, together with others; the catalogue says.


# Where each kind of fault was reported in public.
CASES: Final = {
    1: "powertools-lambda-python#8049",
    2: "powertools-lambda-python#738",
    3: "powertools-lambda-java#2260",
    4: "aws-sdk-java#2667",
    5: "urllib3#1909",
    6: "gocardless-pro-python#12",
    8: "mojaloop/project#460",
    9: "juspay/hyperswitch#2772",
    10: "juspay/hyperswitch#1475",
    11: "FinanceFlow#83",
    12: "Brighter#4341",
    18: "aegra#547",
    19: "dbos-transact-py#544",
    20: "nestjs-fastify-nx#127",
    21: "powertools-lambda-typescript#2944",
    25: "powertools-lambda-python (an answer over 400 KB)",
    27: "stripe-terminal-android#470",
    28: "akash-network/console#3449",
    29: "Mambu payments release 1.44.91",
    30: "Zengin outage, October 2023",
    31: "a water utility's direct debits, February 2025",
    32: "kafka-python#1076",
}


def make(
    slug: str,
    name: str,
    run: Run,
    expects: str = "",
    *,
    case: int | None = None,
    need: Need = Need.NOTHING,
) -> Scenario:
    """Return the scenario; what it expects is the run's own docstring where nothing is given."""
    return Scenario(slug, name, expects or first_line(run), run, case, need)


def first_line(run: object) -> str:
    """Return the first line of a docstring."""
    return (getattr(run, "__doc__", None) or "").strip().partition("\n")[0]

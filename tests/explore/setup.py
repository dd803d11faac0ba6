"""A set-up: who takes part, what core and clocks do, and how far a schedule may go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from relayhub.settings import Settings
from tests.explore import moments
from tests.explore.bank import Habits
from tests.explore.scheduler import Bounds, Move

if TYPE_CHECKING:
    from tests.explore.world import World


@dataclass(frozen=True)
class Setup:
    """A set-up: who takes part, what core and clocks do, how far a schedule may go."""

    name: str
    about: str
    cast: Callable[[World], None]
    bounds: Bounds
    settings: Settings
    habits: Habits = field(default_factory=Habits)
    later: Settings | None = None  # Of the functions of the next deploy.
    moments: tuple[str, ...] = moments.DEFAULT  # To which of them time may pass.
    reads_index_at_points: bool = False  # Whether others may go on before a read of the index.
    late_ms: int = 0  # How long a holder may still write after its connection was closed.
    has_wrong_clock: bool = False  # Whether a clock is off by more than the settings allow.
    keeps_past: bool = False  # Whether the ledger can be restored.
    has_nets: bool = True  # Whether the nets under the bound of `ask_after` are as shipped.
    has_end: bool = True  # Whether time passes after the actors have ended, until all is settled.
    only_doubles: bool = False  # Whether the core breaks its contract, so that words may be wrong.


class Other(Protocol):
    """Somebody outside the hub who goes on after the actors have ended, until he is through."""

    def goes_on(self) -> bool:
        """Do what is to be done now; tell whether more is."""

    def state(self) -> object:
        """Return what decides how he goes on."""

    def moves(self) -> Iterator[Move]:
        """Return what he may do by himself."""

    def executed(self, guid: str) -> None:
        """Hear of an execution."""

    def check_end(self) -> None:
        """Raise ViolationError if what he was told does not agree with what is."""


class Bystander:
    """Somebody who does nothing by himself before the end, and has nothing to check at it."""

    def moves(self) -> Iterator[Move]:
        """Do nothing by himself."""
        return iter(())

    def executed(self, guid: str) -> None:
        """Hear of an execution."""

    def check_end(self) -> None:
        """Check nothing."""

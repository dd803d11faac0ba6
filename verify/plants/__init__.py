"""Relays on this machine whose processes, cores and ledgers the grader holds in its hand."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

from verify.wire import Caller


class LedgerFault(StrEnum):
    """What happens to the relay's own writes about a GUID."""

    CLAIM_REPLY_LOST_ONCE = "the first reply to the claim is lost"
    CLAIM_REPLIES_LOST = "every reply to the claim is lost"
    CLAIM_HELD = "the claim takes effect, and its reply is held back"
    CLAIM_REFUSED = "the claim is refused"
    OUTCOME_REPLY_LOST_ONCE = "the first reply to the outcome's write is lost"
    OUTCOME_HELD = "the outcome's write does not arrive"
    OUTCOME_REFUSED = "the outcome's write is refused"


class Job(StrEnum):
    """What a relay does later by itself."""

    ASKS = "asks the core what became of it"
    SENDS = "sends what was not sent"


class Plant(Protocol):
    """A running relay with its core; a method raises CannotError where it has no such thing."""

    name: str
    relay: Caller
    second: Caller
    control_url: str
    clients: int  # How many requests at once it can bear on this machine.

    def tick(self) -> None:
        """Let the relay's own maintenance do what is due, without the waiting."""

    def kill(self) -> None:
        """Kill (SIGKILL) the relay's processes; it comes back by itself."""

    def kill_job(self, job: Job) -> None:
        """Kill (SIGKILL) the processes that do this."""

    def held(self) -> AbstractContextManager[None]:
        """Hold the relay's processes (SIGSTOP) meanwhile."""

    def restart_core(self) -> None:
        """Kill (SIGKILL) the core and start it again with what it has on disk."""

    def spoil_ledger(self, fault: LedgerFault, guid: str) -> None:
        """Put the fault in force; it stays until `heal_ledger`."""

    def struck(self) -> int:
        """Return how often the ledger's fault has met a write so far."""

    def heal_ledger(self) -> None:
        """Take the ledger's faults away."""

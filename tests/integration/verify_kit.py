"""Plays scenarios on the hub in this process, with a plant whose ledger can fail."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.emulated import refused, reply_lost
from tests.integration.verify_server import HubServer
from verify.catalogue import ALL
from verify.core import Core
from verify.plants import Job, LedgerFault
from verify.play import Limits, Table
from verify.run import Outcome, Runner, make_pool
from verify.scenario import Need, Scenario
from verify.wire import Caller

CLIENTS: Final = 20
BLACK_BOX: Final = tuple(each for each in ALL if each.need is not Need.PROCESSES)
# Those of the rest that need no kill, only a ledger that fails; those that wait come last.
SPOILT: Final = (
    *("claim-reply-lost", "claim-refused", "outcome-reply-lost"),
    *("outcome-refused", "claim-replies-lost"),
)
_THROTTLED: Final = "ProvisionedThroughputExceededException"


@dataclass
class LedgerPlant:
    """A plant of the hub in this process: its ledger's calls can fail, nothing can be killed."""

    served: HubServer
    relay: Caller
    second: Caller
    name: str = "hub in this process"
    control_url: str = ""
    clients: int = CLIENTS
    _put: int = 0

    def tick(self) -> None:
        """Do nothing: the hub's upkeep goes on by itself."""

    def kill(self) -> None:
        """Kill nothing: the relay answers as if nothing had happened."""

    def kill_job(self, _job: Job) -> None:
        """Kill nothing."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold nothing."""
        yield

    def restart_core(self) -> None:
        """Kill the core and start it again."""
        self.served.core.kill()
        self.served.core.start()

    def spoil_ledger(self, fault: LedgerFault, _guid: str) -> None:
        """Let the next calls fail so."""
        operation = "put_item" if fault.name.startswith("CLAIM") else "update_item"
        make = refused(_THROTTLED) if fault.name.endswith("REFUSED") else reply_lost
        self._put = 1 if fault.name.endswith("ONCE") else 20
        self.served.dynamo.faults[operation][:] = [make] * self._put

    def struck(self) -> int:
        """Return how many calls have failed."""
        faults = self.served.dynamo.faults
        return self._put - len(faults["put_item"]) - len(faults["update_item"])

    def heal_ledger(self) -> None:
        """Let no call fail any more."""
        self.served.dynamo.faults.clear()


@contextmanager
def table(served: HubServer, *, settle_s: float) -> Iterator[Table]:
    """Return what scenarios are played with on this hub."""
    limits = Limits(settle_s=settle_s, clients=CLIENTS)
    relay, second = Caller(served.url), Caller(served.url, headers=[("X-Channel", "app")])
    plant = LedgerPlant(served, relay, second)
    with make_pool(limits) as pool:
        core = Core(served.core.control)
        yield Table(secrets.token_hex(4), relay, second, core, limits, pool, plant)
    relay.close()
    second.close()


def play(served: HubServer, *scenarios: Scenario, settle_s: float = 40.0) -> list[Outcome]:
    """Play the scenarios on this hub."""
    with table(served, settle_s=settle_s) as shared:
        return Runner(shared).run(scenarios)


def named(slug: str) -> Scenario:
    """Return the scenario of this name."""
    return next(each for each in ALL if each.id == slug)

"""The relay without a ledger, and what the plants of simple server processes share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from local.core_client import CoreProcess, NaiveRelayProcess, ServerProcess
from local.ports import free_ports
from verify.plants import Job, LedgerFault
from verify.scenario import CannotError
from verify.wire import Caller

CLIENTS: Final = 50
_DEADLINE_S: Final = 3.0  # As the local stack's hub waits for the core.
_OTHER: Final = (("X-Channel", "app"),)


class ServerPlant:
    """A relay that is one server process before a core of its own; nobody looks after its rows."""

    clients = CLIENTS

    def __init__(self, name: str, relay: ServerProcess, url: str, core: CoreProcess) -> None:
        """Keep both processes, which run."""
        self.name = name
        self._relay = relay
        self._core = core
        # It knows no channels: the second identity is another caller who says so.
        self.relay, self.second = Caller(url), Caller(url, headers=_OTHER)
        self.control_url = core.control.url

    def tick(self) -> None:
        """There is no maintenance."""

    def kill(self) -> None:
        """Kill the process and start it again on its port."""
        self._relay.kill()
        self._relay.start()

    def kill_job(self, job: Job) -> None:
        """Raise CannotError: it does nothing later."""
        raise CannotError(f"nothing of this relay {job}")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the process meanwhile."""
        os.kill(self._relay.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._relay.pid, signal.SIGCONT)

    def restart_core(self) -> None:
        """Kill the core and start it again on its ports and journal."""
        self._core.kill()
        self._core.start()

    def spoil_ledger(self, fault: LedgerFault, guid: str) -> None:
        """Raise CannotError: there is no ledger."""
        del guid
        raise CannotError(f"it keeps no ledger, so it cannot be that {fault}")

    def struck(self) -> int:
        """Return 0: there is no ledger."""
        return 0

    def heal_ledger(self) -> None:
        """There is nothing to heal."""


def core_process(folder: Path, name: str) -> CoreProcess:
    """Return a core with an empty journal in the folder, not started yet."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / f"{name}-core-journal.jsonl"
    journal.unlink(missing_ok=True)
    return CoreProcess(journal)


@contextmanager
def naive_plant(folder: Path, on_step: Callable[[str], None]) -> Iterator[ServerPlant]:
    """Start a core and the naive relay before it; both end with the context."""
    on_step("core and naive relay")
    with ExitStack() as owned:
        core = owned.enter_context(core_process(folder, "naive"))
        [port] = free_ports(1)  # Its own, so that it comes back on the same after a kill.
        relay = NaiveRelayProcess(core.url, port=port, deadline_s=_DEADLINE_S)
        owned.enter_context(relay)
        plant = ServerPlant("naive relay", relay, relay.url, core)
        owned.callback(plant.relay.close)
        owned.callback(plant.second.close)
        yield plant

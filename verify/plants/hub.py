"""The hub itself on the local stack, with a fault proxy between its functions and AWS."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from botocore.credentials import Credentials

from local.channels import Channel
from local.emulator import REGION
from local.fault_proxy import loses_reply, refuses
from local.ports import wait_until_listening
from local.rounds import REPROCESSOR, RESOLVER
from local.stack import RELAY, SHORT_LIMITS, Stack, StackConfig
from local.stack_process import Child
from local.stack_start import ROOT
from verify.plants import Job, LedgerFault
from verify.wire import Caller, SigV4

CLIENTS: Final = 20  # Warm processes of the relay; the emulator starves above about 48 calls.
_HELD_MS: Final = 60_000
_CORE_START_S: Final = 15.0
_JOBS: Final = {Job.ASKS: RESOLVER, Job.SENDS: REPROCESSOR}


class HubPlant:
    """The stack as `make up` starts it."""

    name = "relayhub"
    clients = CLIENTS

    def __init__(self, stack: Stack, owned: ExitStack) -> None:
        """Keep the stack; what is started beside it ends with `owned`."""
        self._stack = stack
        self._owned = owned
        self._core = stack.parts.core
        self.relay, self.second = _caller(stack.atm), _caller(stack.app)
        self.control_url = stack.control_url

    def tick(self) -> None:
        """Run the resolver and the sweep now, as their schedules do every minute."""
        for function in (RESOLVER, REPROCESSOR):
            try:
                self._stack.invoke(function, {})
            except RuntimeError:
                continue  # Killed on purpose, or at its limit: the next turn goes on.

    def kill(self) -> None:
        """Kill every process of the relay function; the platform starts new ones."""
        self._stack.kill_worker(RELAY)

    def kill_job(self, job: Job) -> None:
        """Kill every process of the resolver, or of the reprocessor."""
        self._stack.kill_worker(_JOBS[job])

    def held(self) -> AbstractContextManager[None]:
        """Hold every process of the relay function meanwhile."""
        return self._stack.emulator.held_workers(self._stack.name_of(RELAY))

    def restart_core(self) -> None:
        """Kill the core, and start it on the same ports and journal."""
        os.kill(self._core.pid, signal.SIGKILL)
        self._core.stop()  # It has ended; its ports are free once it is reaped.
        port, control_port = (url.rpartition(":")[2] for url in self._urls())
        command: list[str | Path] = [
            *(sys.executable, "-m", "local.core"),
            *("--port", port, "--control-port", control_port),
            *("--journal", self._stack.journal),
        ]
        env = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        log = self._stack.config.logs / "core-again.log"
        self._core = Child.start("core", command, log=log, env=env, cwd=ROOT)
        self._owned.callback(self._core.stop)
        for each in (port, control_port):
            wait_until_listening(int(each), alive=self._core.is_running, within_s=_CORE_START_S)

    def spoil_ledger(self, fault: LedgerFault, guid: str) -> None:
        """Put a rule into the proxy, for the rows of this GUID alone."""
        self._stack.faults.forget()
        self._stack.faults.set_rules([RULES[fault](guid)])

    def struck(self) -> int:
        """Return how often the proxy's rule has met a request."""
        return len(self._stack.faults.fired())

    def heal_ledger(self) -> None:
        """Take the proxy's rules away."""
        self._stack.faults.set_rules([])

    def _urls(self) -> tuple[str, str]:
        return self._stack.core_url, self._stack.control_url


def _of(operation: str, guid: str, **effect: Any) -> dict[str, Any]:
    """Return a rule of the proxy for the GUID's rows; by the stack's own filter."""
    plain = loses_reply(operation, guid)
    plain.pop("response")
    return plain | effect


# The claim of a new GUID is a put, every later write an update.
RULES: Final[dict[LedgerFault, Callable[[str], dict[str, Any]]]] = {
    LedgerFault.CLAIM_REPLY_LOST_ONCE: lambda guid: loses_reply("PutItem", guid, times=1),
    LedgerFault.CLAIM_REPLIES_LOST: lambda guid: loses_reply("PutItem", guid),
    LedgerFault.CLAIM_HELD: lambda guid: _of("PutItem", guid, response={"bandwidth_kbps": 0.001}),
    LedgerFault.CLAIM_REFUSED: lambda guid: refuses("PutItem", guid),
    LedgerFault.OUTCOME_REPLY_LOST_ONCE: lambda guid: loses_reply("UpdateItem", guid, times=1),
    LedgerFault.OUTCOME_HELD: lambda guid: _of("UpdateItem", guid, timeout_ms=_HELD_MS),
    LedgerFault.OUTCOME_REFUSED: lambda guid: refuses("UpdateItem", guid),
}


def _caller(channel: Channel) -> Caller:
    signing = SigV4(Credentials(channel.credentials.key, channel.credentials.secret), REGION)
    return Caller(f"http://{channel.host}", signing=signing)


@contextmanager
def hub_plant(folder: Path, on_step: Callable[[str], None]) -> Iterator[HubPlant]:
    """Start the local stack with short limits, and end it with the context."""
    config = StackConfig(logs=folder, parameters=SHORT_LIMITS, has_faults=True)
    with ExitStack() as owned:
        stack = owned.enter_context(Stack.running(config, on_step=on_step))
        on_step(f"{CLIENTS} warm clients")
        stack.warm(CLIENTS)
        plant = HubPlant(stack, owned)
        owned.callback(plant.relay.close)
        owned.callback(plant.second.close)
        yield plant

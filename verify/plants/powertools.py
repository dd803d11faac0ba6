"""The relay on Powertools' idempotency decorator; its table is in the emulator, behind a proxy."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from local.core_client import ServerProcess
from local.emulator import REGION, ROOT, Emulator
from local.fault_proxy import FaultProxy
from local.ports import LOOPBACK, free_ports
from local.stack import StackConfig
from verify.plants import LedgerFault
from verify.plants.naive import ServerPlant, core_process

TABLE: Final = "idempotency"
_DEADLINE_S: Final = 3.0  # For the core: as the local stack's hub.
_TIMEOUT_S: Final = 9.0  # The function's: the same.
_HELD_MS: Final = 60_000


class PowertoolsRelay(ServerProcess):
    """`benchmarks.powertools_relay` as a child process."""

    def __init__(self, core_url: str, endpoint_url: str, port: int) -> None:
        """Start later."""
        arguments = ["--core", core_url, "--table", TABLE, "--port", str(port)]
        arguments += ["--endpoint-url", endpoint_url]
        arguments += ["--deadline", str(_DEADLINE_S), "--timeout", str(_TIMEOUT_S)]
        super().__init__("benchmarks.powertools_relay", arguments)
        self.url = f"http://{LOOPBACK}:{port}"


class PowertoolsPlant(ServerPlant):
    """The decorator's relay, whose writes to its table can be spoilt."""

    clients = 20

    def __init__(self, relay: PowertoolsRelay, core: Any, proxy: FaultProxy) -> None:
        """Keep the processes, which run."""
        super().__init__("Powertools relay", relay, relay.url, core)
        self._proxy = proxy

    def spoil_ledger(self, fault: LedgerFault, guid: str) -> None:
        """Put a rule into the proxy; the table's keys are hashes, so it is for every GUID."""
        del guid
        self._proxy.forget()
        self._proxy.set_rules([RULES[fault]])

    def struck(self) -> int:
        """Return how often the proxy's rule has met a request."""
        return len(self._proxy.fired())

    def heal_ledger(self) -> None:
        """Take the proxy's rules away."""
        self._proxy.set_rules([])


def _on(operation: str, **effect: Any) -> dict[str, Any]:
    return {"service": "dynamodb", "operation": operation, **effect}


_LOST: Final = {"abort_bytes": 0}
_REFUSED: Final = {"code": "ProvisionedThroughputExceededException"}
# The decorator puts its record before the call, and updates it after.
RULES: Final[dict[LedgerFault, dict[str, Any]]] = {
    LedgerFault.CLAIM_REPLY_LOST_ONCE: _on("PutItem", response=_LOST, times=1),
    LedgerFault.CLAIM_REPLIES_LOST: _on("PutItem", response=_LOST),
    LedgerFault.CLAIM_HELD: _on("PutItem", response={"bandwidth_kbps": 0.001}),
    LedgerFault.CLAIM_REFUSED: _on("PutItem", error=_REFUSED),
    LedgerFault.OUTCOME_REPLY_LOST_ONCE: _on("UpdateItem", response=_LOST, times=1),
    LedgerFault.OUTCOME_HELD: _on("UpdateItem", timeout_ms=_HELD_MS),
    LedgerFault.OUTCOME_REFUSED: _on("UpdateItem", error=_REFUSED),
}


@contextmanager
def powertools_plant(folder: Path, on_step: Callable[[str], None]) -> Iterator[PowertoolsPlant]:
    """Start emulator, proxy, core and relay; all end with the context."""
    on_step("core, emulator and Powertools relay")
    config = StackConfig(logs=folder)
    with ExitStack() as owned:
        core = owned.enter_context(core_process(folder, "powertools"))
        proxy = _store(config, owned)
        [port] = free_ports(1)
        # ServerProcess hands its own environment on.
        os.environ.update({**ROOT.as_environment(), "AWS_DEFAULT_REGION": REGION})
        relay = owned.enter_context(PowertoolsRelay(core.url, proxy.endpoint, port))
        plant = PowertoolsPlant(relay, core, proxy)
        owned.callback(plant.relay.close)
        owned.callback(plant.second.close)
        yield plant


def _store(config: StackConfig, owned: ExitStack) -> FaultProxy:
    """Start the emulator and the proxy before it, and make the decorator's table."""
    state = Path(tempfile.mkdtemp(prefix="relayhub-powertools-"))
    owned.callback(shutil.rmtree, state, ignore_errors=True)
    emulator_port, proxy_port = free_ports(2)
    log = config.logs / "powertools-emulator.log"
    emulator = Emulator.start(config.ministack, port=emulator_port, state=state, log=log)
    owned.callback(emulator.child.stop)
    emulator.wait()
    proxy = FaultProxy.start(
        config.fault_proxy,
        port=proxy_port,
        upstream=emulator.endpoint,
        log=config.logs / "powertools-proxy.log",
    )
    owned.callback(proxy.child.stop)
    proxy.wait()
    emulator.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    proxy.warm()
    return proxy

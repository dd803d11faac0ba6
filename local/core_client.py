"""The local core and its negative control from a test or the demo: typed, started and stopped.

The rule it protects: a process is ended by its own id, and never outlives its `with`.
"""

import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from local.core_ledger import Execution, Receipt, execution_of

ROOT = Path(__file__).resolve().parent.parent
START_S = 20.0  # a cold start on a busy machine
STOP_S = 5.0
CONTROL_S = 10.0

Rule = Mapping[str, object]


class ServerError(RuntimeError):
    """A local server did not start, or its control refused; the text says why."""


@dataclass(frozen=True)
class Counts:
    """How often the core read a full request with a GUID, and how often it executed it."""

    received: int
    executed: int


class CoreControl:
    """Talks to the control port (or to the traffic port while that is open)."""

    def __init__(self, url: str) -> None:
        """Point at `http://127.0.0.1:<control port>`; nothing is sent yet."""
        self.url = url
        # No proxy from the environment: the core is always on this machine.
        self._http = httpx.Client(base_url=url, timeout=CONTROL_S, trust_env=False)

    def set_faults(
        self,
        rules: Iterable[Rule] = (),
        *,
        honour_not_after: bool = False,
        memory_s: float | None = None,
        knows_refusals: bool = True,
    ) -> None:
        """Replace all rules and switches; in force on return. Raises ServerError if refused."""
        self.put(
            {
                "rules": list(rules),
                "honour_not_after": honour_not_after,
                "memory_s": memory_s,
                "knows_refusals": knows_refusals,
            }
        )

    def put(self, faults: object) -> None:
        """Put the bare JSON, as a person with curl would."""
        self._ask("PUT", "faults", faults)

    def clear(self) -> None:
        """Take every fault away: the port opens, what hangs goes on hanging."""
        self.set_faults()

    def faults(self) -> dict[str, Any]:
        """Give the rules, each with how often it was `applied`, and the switches."""
        return self._ask("GET", "faults")

    def journal(self, guid: str = "") -> list[Execution]:
        """Give the executions in order, of one GUID or of all."""
        told = self._ask("GET", "journal", guid=guid)
        return [execution_of(record) for record in told["executions"]]

    def counts(self, guid: str = "") -> dict[str, Counts]:
        """Give per GUID how often it was received and executed."""
        told = self._ask("GET", "journal", guid=guid)["counts"]
        return {name: Counts(**counts) for name, counts in told.items()}

    def received(self, guid: str = "") -> list[Receipt]:
        """Give the full requests that were read, whether executed or not."""
        receipts = self._receipts(guid)
        return [receipt for receipt in receipts if receipt.kind == "received"]

    def refused(self, guid: str = "") -> list[Receipt]:
        """Give the requests that ended in a definite refusal."""
        return [receipt for receipt in self._receipts(guid) if receipt.kind == "refused"]

    def accounts(self) -> dict[str, int]:
        """Give every balance, in the minor unit."""
        balances: dict[str, int] = self._ask("GET", "accounts")["accounts"]
        return balances

    def reset(self) -> None:
        """Start anew: accounts, files, faults; what is in the works is thrown away."""
        self._ask("POST", "reset")

    def health(self) -> dict[str, Any]:
        """Give the ports, the door (open, paused, refused) and how much is in the works."""
        return self._ask("GET", "healthz")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _receipts(self, guid: str) -> list[Receipt]:
        return [Receipt(**record) for record in self._ask("GET", "received", guid=guid)["receipts"]]

    def _ask(
        self, method: str, name: str, data: object = None, *, guid: str = ""
    ) -> dict[str, Any]:
        params = {"guid": guid} if guid else None
        answer = self._http.request(method, f"/_core/{name}", json=data, params=params)
        told: dict[str, Any] = answer.json()
        if not answer.is_success:
            raise ServerError(f"{method} {name}: {answer.status_code} {told.get('error')}")
        return told


class ServerProcess:
    """A server of this folder as a child process, ready when it has printed its one line."""

    def __init__(self, module: str, arguments: list[str]) -> None:
        """Only remember what to start."""
        self._command = [sys.executable, "-m", module, *arguments]
        self._child: subprocess.Popen[str] | None = None
        self.first_line = ""

    @property
    def pid(self) -> int:
        """Give the process id; raises ServerError when it does not run."""
        if self._child is None:
            raise ServerError(f"{self._command[2]} does not run")
        return self._child.pid

    def start(self) -> None:
        """Start and wait for the line; raises ServerError with what it said instead."""
        child = subprocess.Popen(
            self._command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._child = child
        self.first_line = _first_line(child)
        if not self.first_line:
            child.kill()
            said = child.communicate()[1].strip()
            self._child = None
            raise ServerError(f"{self._command[2]} did not start: {said}")

    def stop(self) -> None:
        """End it by its id, with SIGTERM and then, if need be, SIGKILL."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._child = None

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class CoreProcess(ServerProcess):
    """`with CoreProcess(journal) as core`: `core.url` for traffic, `core.control` for faults."""

    def __init__(
        self,
        journal: Path,
        *,
        port: int = 0,
        control_port: int = 0,
        accounts: int = 10,
        balance: int = 1_000_000,
    ) -> None:
        """Start later; 0 takes a free port, kept when the same object is started again."""
        self.journal = journal
        self._sizes = ["--accounts", str(accounts), "--balance", str(balance)]
        self._journal = ["--journal", str(journal.absolute())]
        self._ports = (port, control_port)
        super().__init__("local.core", self._arguments())

    def start(self) -> None:
        """Start, learn the ports and make the control."""
        super().start()
        # core: listening on 127.0.0.1:P, control on 127.0.0.1:C
        port, control_port = (part.rpartition(":")[2] for part in self.first_line.split(", "))
        self._ports = (int(port), int(control_port))
        self._command = [*self._command[:3], *self._arguments()]
        self.port = int(port)
        self.url = f"http://127.0.0.1:{port.strip()}"
        self.control = CoreControl(f"http://127.0.0.1:{control_port.strip()}")

    def stop(self) -> None:
        """Close the control's connections and end the process."""
        if self._child is not None:
            self.control.close()
        super().stop()

    def _arguments(self) -> list[str]:
        port, control_port = map(str, self._ports)
        return ["--port", port, "--control-port", control_port, *self._journal, *self._sizes]


class NaiveRelayProcess(ServerProcess):
    """`with NaiveRelayProcess(core.url) as relay`: `relay.url` takes `POST /transactions`."""

    def __init__(self, core_url: str, *, port: int = 0, deadline_s: float = 5.0) -> None:
        """Start later, in front of that core."""
        arguments = ["--port", str(port), "--core", core_url, "--deadline", str(deadline_s)]
        super().__init__("local.naive_relay", arguments)
        self.url = ""

    def start(self) -> None:
        """Start and learn the port."""
        super().start()
        self.url = f"http://127.0.0.1:{self.first_line.rpartition(':')[2].strip()}"


def _first_line(child: subprocess.Popen[str]) -> str:
    """Wait for the line; empty when the process ended or took too long."""
    if child.stdout is None:
        return ""
    ends_s = time.monotonic() + START_S
    while time.monotonic() < ends_s:
        if select.select([child.stdout], [], [], 0.2)[0]:
            return child.stdout.readline()
    return ""

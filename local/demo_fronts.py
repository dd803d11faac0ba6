"""The two relays that the demo's story is played through: the deployed hub, and one without ledger.

Both take the same requests; the story knows only `Front`.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import httpx

from local.channels import Reply
from local.core_client import CoreControl, CoreProcess, NaiveRelayProcess
from local.rounds import until_settled
from local.stack import Stack

CLIENTS = 20  # Warm processes of the relay; ministack starves above about 48 calls at once.
SETTLED_S = 60.0  # Under the local stack's short limits a doubt is settled in about 15 s.
_NAIVE_S = 30.0

Headers = Iterable[tuple[str, str]]


class Front(Protocol):
    """A relay that a channel sends to, and the core behind it."""

    name: str
    core: CoreControl
    journal: Path

    def post(self, guid: str, body: bytes, headers: Headers = ()) -> Reply | None:
        """Send a transaction; None if the relay gave no answer at all."""

    def cancel(self, guid: str) -> Reply | None:
        """Cancel a transaction; None where the relay knows no such thing."""

    def settle(self) -> str:
        """Let the maintenance functions do their work; return what they came to."""

    def state(self, guid: str) -> str:
        """Return what the relay's ledger says; "-" where it has none."""

    def kill(self) -> None:
        """End the relay's processes with SIGKILL, and let it come back."""


class HubFront:
    """The hub as deployed on the local stack; channel `atm` signs."""

    name = "hub"

    def __init__(self, stack: Stack, core: CoreControl) -> None:
        """Keep the stack; the core's control is closed by whoever made it."""
        self.core = core
        self.journal = stack.journal
        self._stack = stack

    def post(self, guid: str, body: bytes, headers: Headers = ()) -> Reply | None:
        """Send a signed transaction."""
        try:
            return self._stack.atm.post(guid, body, headers=dict(headers))
        except OSError:
            return None

    def cancel(self, guid: str) -> Reply | None:
        """Send a signed cancel."""
        return self._stack.atm.cancel(guid)

    def settle(self) -> str:
        """Run resolver and reprocessor until nothing is open, then the purger."""
        states = until_settled(self._stack, within_s=SETTLED_S)
        purged = self._stack.invoke("PurgerFunction", {})
        rows = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        return (
            f"{rows}; the purger looked at {purged['scanned']} rows, deleted {purged['deleted']},"
            f" repaired {purged['repaired']}"
        )

    def state(self, guid: str) -> str:
        """Return the row's state, read by the operator's identity."""
        row = self._stack.ledger_row(guid)
        return "no row" if row is None else str(row["state"])

    def kill(self) -> None:
        """Kill every process of the relay function; the platform starts new ones."""
        self._stack.kill_worker()


class NaiveFront:
    """The relay without a ledger, which resends by itself."""

    name = "naive"

    def __init__(self, core: CoreProcess, relay: NaiveRelayProcess) -> None:
        """Keep both processes."""
        self.core = core.control
        self.journal = core.journal
        self._relay = relay
        self._lock = threading.Lock()

    def cancel(self, guid: str) -> Reply | None:
        """Answer nothing: it knows no cancel."""
        del guid
        return None

    def settle(self) -> str:
        """Say that nobody looks after what it left."""
        return "nobody looks after what is left"

    def post(self, guid: str, body: bytes, headers: Headers = ()) -> Reply | None:
        """Send a transaction."""
        own = {"Idempotency-Key": guid, "Content-Type": "application/json"}
        url = f"{self._relay.url}/transactions"
        try:
            with httpx.Client(timeout=_NAIVE_S, trust_env=False) as http:
                answer = http.post(url, content=body, headers=own | dict(headers))
        except httpx.HTTPError:
            return None
        return Reply(answer.status_code, dict(answer.headers.items()), answer.content)

    def state(self, guid: str) -> str:
        """Say that it keeps no ledger."""
        del guid
        return "-"

    def kill(self) -> None:
        """Kill the process and start it again."""
        with self._lock:
            self._relay.kill()
            self._relay.start()


@contextmanager
def naive_front(folder: Path) -> Iterator[NaiveFront]:
    """Start a core of its own and the naive relay before it; both end with the context."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "naive-core-journal.jsonl"
    journal.unlink(missing_ok=True)
    with (
        CoreProcess(journal) as core,
        NaiveRelayProcess(core.url, deadline_s=1.0) as relay,
    ):
        yield NaiveFront(core, relay)

"""The stack on one machine, as a context manager; `python -m local.stack` starts it and keeps it.

What runs is template.yaml and the zips of `make build`, deployed by the SAM CLI to an emulator on
loopback, beside a core that is not idempotent. Everything it started ends when the context does.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from local.channels import Channel, Identity, channel_for, create_identity
from local.emulator import Emulator
from local.fault_proxy import FaultProxy
from local.metric_forwarder import Forwarder
from local.stack_operator import Operator
from local.stack_start import (
    API,
    OPERATOR,
    SHORT_LIMITS,
    Parts,
    StackConfig,
    StackError,
    started,
)

__all__ = ["RELAY", "SHORT_LIMITS", "Stack", "StackConfig", "StackError"]

RELAY: Final = "RelayFunction"
DEAD_LETTER_QUEUE: Final = "DeadLetterQueue"
_TABLE: Final = "AWS::DynamoDB::Table"
_FUNCTION: Final = "AWS::Lambda::Function"
_WARM_ROUNDS_MAX: Final = 3
# Enough for all calls to be given a process each, and below any timeout that the relay may have.
_WARM_HOLD_S: Final = 3.0
_WARM_POLL_S: Final = 0.2


def _silent(_step: str) -> None:
    return None


@dataclass(frozen=True)
class Stack:
    """A running stack; functions are named by their logical ids in the template."""

    config: StackConfig
    parts: Parts
    atm: Channel
    app: Channel
    operator: Operator

    @classmethod
    @contextmanager
    def running(
        cls, config: StackConfig | None = None, *, on_step: Callable[[str], None] = _silent
    ) -> Iterator[Self]:
        """Start everything, yield it, and stop everything, also on errors; raises StackError."""
        config = config or StackConfig()
        with started(config, on_step) as parts:
            yield cls._of(config, parts)

    @classmethod
    def _of(cls, config: StackConfig, parts: Parts) -> Self:
        emulator, deployed = parts.emulator, parts.deployed
        channel = partial(channel_for, api_id=deployed.only(API), port=emulator.port)
        credentials = parts.identities[OPERATOR].credentials
        return cls(
            config=config,
            parts=parts,
            atm=channel(parts.identities["atm"]),
            app=channel(parts.identities["app"]),
            operator=Operator(emulator, credentials, deployed.only(_TABLE)),
        )

    @property
    def emulator(self) -> Emulator:
        """The AWS emulator."""
        return self.parts.emulator

    @property
    def faults(self) -> FaultProxy:
        """The fault proxy; raises StackError on a stack that was started without one."""
        if self.parts.faults is None:
            raise StackError("this stack was started without a fault proxy")
        return self.parts.faults

    @property
    def api_url(self) -> str:
        """The HTTP API's address; names under .localhost are this machine."""
        return f"http://{self.atm.host}"

    @property
    def core_url(self) -> str:
        """Where the core takes transactions."""
        return self.parts.core_url

    @property
    def control_url(self) -> str:
        """Where the core takes faults and shows its journal, under /_core/."""
        return self.parts.control_url

    @property
    def journal(self) -> Path:
        """The core's journal file: the truth about what was executed."""
        return self.parts.journal

    @property
    def adjusted(self) -> tuple[str, ...]:
        """What was set through the API since the emulator leaves it out of the template."""
        return self.parts.deployed.adjusted

    @property
    def timings_s(self) -> Mapping[str, float]:
        """How long each step of the start took; seconds."""
        return self.parts.timings_s

    def name_of(self, logical: str) -> str:
        """Return the physical name of a resource of the template."""
        return self.parts.deployed.names[logical]

    def channel(self, identity: Identity) -> Channel:
        """Return a client of another identity of the local account."""
        return channel_for(identity, self.parts.deployed.only(API), self.emulator.port)

    def stranger(self, name: str) -> Channel:
        """Return a client of a new identity that may do nothing."""
        return self.channel(create_identity(self.emulator, name))

    def ledger_row(self, guid: str) -> dict[str, Any] | None:
        """Return the GUID's row as it is now, or None."""
        return self.operator.row(guid)

    def scan_rows(self) -> list[dict[str, Any]]:
        """Return every row of the ledger."""
        return self.operator.rows()

    def queue_depth(self, logical: str = DEAD_LETTER_QUEUE) -> int:
        """Return how many messages the queue holds."""
        return self.operator.depth(self.name_of(logical))

    def invoke(self, function: str, event: object) -> Any:
        """Invoke the function, wait, and return its result; raises RuntimeError when it failed."""
        client = self.emulator.client("lambda")
        payload = json.dumps(event).encode()
        answer = client.invoke(FunctionName=self.name_of(function), Payload=payload)
        result = json.loads(answer["Payload"].read() or b"null")
        if "FunctionError" in answer:
            raise RuntimeError(f"{function} failed: {result}")
        return result

    def function_logs(self, function: str = RELAY) -> list[str]:
        """Return what the function has printed so far, metrics (EMF) included."""
        return self.operator.log_lines(self.name_of(function))

    def log_groups(self) -> tuple[str, ...]:
        """Return the names of the functions' log groups."""
        functions = self.parts.deployed.all_of(_FUNCTION).values()
        return tuple(f"/aws/lambda/{name}" for name in functions)

    def forwarder(self, since_ms: int) -> Forwarder:
        """Return what turns the functions' lines since then (epoch ms) into metrics, on call."""
        logs, cloudwatch = self.emulator.client("logs"), self.emulator.client("cloudwatch")
        return Forwarder(logs, cloudwatch, self.log_groups(), since_ms)

    def workers(self, function: str = RELAY) -> tuple[int, ...]:
        """Return the ids of the function's processes."""
        return self.emulator.workers(self.name_of(function))

    def kill_worker(self, function: str = RELAY) -> tuple[int, ...]:
        """Kill (SIGKILL) every process of the function, busy or idle, and return their ids."""
        return self.emulator.kill_workers(self.name_of(function))

    def warm(self, count: int) -> int:
        """Start processes of the relay until `count` are there; return how many there are."""
        for _ in range(_WARM_ROUNDS_MAX):
            if len(self.workers()) >= count:
                break
            self._warm_once(count)
        return len(self.workers())

    def _warm_once(self, count: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            # Those that are there already are held, or they would answer all the calls themselves.
            with self.emulator.held_workers(self.name_of(RELAY)):
                calls = [pool.submit(self.atm.status, f"warm-{each}") for each in range(count)]
                deadline = time.monotonic() + _WARM_HOLD_S
                while len(self.workers()) < count and time.monotonic() < deadline:
                    if wait(calls, _WARM_POLL_S).not_done == set():
                        break
            wait(calls)


if __name__ == "__main__":
    from local.stack_cli import main

    main()

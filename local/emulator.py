"""The AWS emulator (ministack) as a child process: loopback only, signatures and roles enforced.

It runs every function as a process of its own, under the role that the template gives it and with
the template's timeout. Its state lives in memory and in one temporary folder, and ends with it.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import boto3
from botocore.config import Config

from local.ports import LOOPBACK, wait_until_listening
from local.stack_process import Child, children_of

REGION: Final = "eu-west-1"
ACCOUNT: Final = "000000000000"
_START_S: Final = 30.0
_READ_S: Final = 60
_KILLED_S: Final = 5.0
_POLL_S: Final = 0.05

# No proxy of the developer's, no long retries: everything is on this machine.
_CLIENT_CONFIG: Final = Config(
    region_name=REGION,
    proxies={},
    connect_timeout=5,
    read_timeout=_READ_S,
    max_pool_connections=32,
    retries={"mode": "standard", "total_max_attempts": 2},
)


@dataclass(frozen=True)
class Credentials:
    """An access key and its secret, and the token that a role's session has beside them."""

    key: str
    secret: str
    token: str | None = None

    def as_environment(self) -> dict[str, str]:
        """Return the variables by which AWS tools take the key."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}


# The emulator's administrator. It does not check this key's signature, only everybody else's.
ROOT: Final = Credentials("relayhub-local-root", "relayhub-local-root")


class Emulator:
    """A running emulator."""

    def __init__(self, child: Child, port: int) -> None:
        """Take over a child that listens on the port."""
        self.child = child
        self.port = port
        self.endpoint = f"http://{LOOPBACK}:{port}"
        self._clients: dict[tuple[str, Credentials], Any] = {}
        self._making = threading.Lock()

    @classmethod
    def start(
        cls, program: Path, *, port: int, state: Path, log: Path, for_functions: str = ""
    ) -> Self:
        """Start it without waiting; `state` is a folder that its owner deletes afterwards.

        `for_functions` is another address under which the functions find AWS.
        """
        env = _environment(port, state)
        if for_functions:
            env["AWS_ENDPOINT_URL"] = for_functions
        child = Child.start("emulator", [program], log=log, env=env, cwd=state)
        return cls(child, port)

    def wait(self) -> None:
        """Return when it accepts requests; raises PortError."""
        wait_until_listening(self.port, alive=self.child.is_running, within_s=_START_S)

    def client(self, service: str, credentials: Credentials = ROOT) -> Any:
        """Return a boto3 client that talks to this emulator; any thread may use it."""
        with self._making:
            if (service, credentials) not in self._clients:
                session = boto3.Session(
                    credentials.key, credentials.secret, credentials.token, region_name=REGION
                )
                make: Any = session.client
                made = make(service, endpoint_url=self.endpoint, config=_CLIENT_CONFIG)
                self._clients[service, credentials] = made
            return self._clients[service, credentials]

    def workers(self, function: str) -> tuple[int, ...]:
        """Return the ids of the processes that the function has at this moment."""
        mark = re.compile(rf"ministack-lambda-{re.escape(function)}-[^/]*/_worker")
        return tuple(each.pid for each in children_of(self.child.pid) if mark.search(each.command))

    def kill_workers(self, function: str) -> tuple[int, ...]:
        """Kill (SIGKILL) every process of the function, wait for their end, return their ids."""
        pids = self.workers(function)
        _signal(pids, signal.SIGKILL)
        deadline = time.monotonic() + _KILLED_S
        while set(pids) & set(self.workers(function)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return pids

    @contextmanager
    def held_workers(self, function: str) -> Iterator[None]:
        """Hold the function's processes (SIGSTOP) meanwhile; calls that meet one wait."""
        pids = self.workers(function)
        _signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(pids, signal.SIGCONT)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _environment(port: int, state: Path) -> dict[str, str]:
    """Return the whole environment: functions inherit it, so it has nothing of the developer's."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(state),
        "TMPDIR": str(state),
        "STATE_DIR": str(state / "emulator"),
        "S3_DATA_DIR": str(state / "s3"),
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "AUTH": "true",
        **ROOT.as_environment(),
    }

"""Child processes that never outlive us: each in a group of its own, logged, ended by its id.

A child starts in its own session, so that Ctrl-C in a terminal reaches us only and the stack is
taken down in order. Whatever a child has started itself belongs to its group and ends with it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, Self

# The emulator takes about 2 s to end its workers in order.
_GRACE_S: Final = 8.0
_POLL_S: Final = 0.02
_TAIL_LINES: Final = 25


class Child:
    """A running child process and its log file."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        """Take over a process that leads its own group."""
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path,
    ) -> Self:
        """Start the command with this environment only; both its outputs go to the log file."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """The process id, which is the id of its group as well."""
        return self._process.pid

    def is_running(self) -> bool:
        """Say whether the process has not ended yet."""
        return self._process.poll() is None

    def wait(self, within_s: float) -> int:
        """Return the exit code; raise subprocess.TimeoutExpired if it still runs then."""
        return self._process.wait(within_s)

    def stop(self, grace_s: float = _GRACE_S) -> None:
        """End the process (TERM, then KILL) and everything that is left of its group."""
        if self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        # The leader is not reaped yet, so its id cannot have become anybody else's group.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _has_ended(self) -> bool:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self.pid, flags) is not None
        except ChildProcessError:
            return True

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@dataclass(frozen=True)
class Found:
    """A process of this machine."""

    pid: int
    parent: int
    command: str


def children_of(parent: int) -> tuple[Found, ...]:
    """Return the living processes that the given one has started."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = (line.split(None, 3) for line in listing.splitlines())
    return tuple(
        Found(int(pid), int(ppid), command[0])
        for pid, ppid, stat, *command in rows
        if int(ppid) == parent and command and not stat.startswith("Z")
    )


class TerminatedError(KeyboardInterrupt):
    """TERM came. It is a KeyboardInterrupt, since what Ctrl-C stops in order TERM must stop too."""


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Turn TERM and Ctrl-C into exceptions once, and ignore them while things are being stopped."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt

    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Ends function processes with SIGKILL, at random and while the core has their request.

Which process has a connection to what is read from /proc, so this is for Linux. A process that is
still starting is left alone: when one of those ends, the emulator ends every other process of the
function too, those that start meanwhile among them, and so it goes on for many seconds.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from local.core_ledger import Receipt, received_path
from local.stack import RELAY, Stack
from tests.chaos import weather
from tests.chaos.book import Told, now_ms
from tests.chaos.plan import Does

_LOOK_S: Final = 0.15
_HELD_MS: Final = 1_000  # Afterwards its connection is no young one any more.
# A caller learns of the end of its function's process within milliseconds; the machine is busy.
_NOTICED_MS: Final = 1_200


@dataclass(frozen=True)
class Kill:
    """Processes of a function that were killed at once; epoch milliseconds."""

    at_ms: int
    function: str
    pids: tuple[int, ...]
    in_core: bool


@dataclass
class KillList:
    """The kills so far."""

    kills: list[Kill] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many processes were killed."""
        return self.by_function().total()

    def by_function(self) -> Counter[str]:
        """Return how many processes of each function were killed."""
        found: Counter[str] = Counter()
        for each in self.kills:
            found[each.function] += len(each.pids)
        return found

    def in_core_ms(self) -> list[int]:
        """Return when processes that had a connection to the core were killed."""
        return [each.at_ms for each in self.kills if each.in_core]

    def kill(self, function: str, pids: Iterable[int], *, in_core: bool = False) -> None:
        """Kill the processes, and write down those that were there to kill."""
        at_ms = now_ms()
        if killed := tuple(filter(_killed, pids)):
            self.kills.append(Kill(at_ms, function, killed, in_core))


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True)
class CoreKiller:
    """Kills the relay's process whose request the core has whole and holds.

    It looks at the connections to the core every moment. When the core has written down that it
    received a held request, those connections that have come since the look before last, and are
    still there, are that request's and its contemporaries': their processes are killed.
    """

    stack: Stack
    kills: KillList
    stopped: threading.Event

    def run(self) -> None:
        """Look and kill until stopped."""
        older: set[str] = set()
        last: set[str] = set()
        held: dict[str, int] = {}
        receipts = _new_held(received_path(self.stack.journal))
        port = int(self.stack.core_url.rpartition(":")[2])
        while not self.stopped.wait(_LOOK_S):
            seen = connections(port)
            held |= {guid: now_ms() for guid in next(receipts)}
            held = {guid: at for guid, at in held.items() if now_ms() - at < _HELD_MS}
            young = (seen & last) - older
            if held and young:
                pids = owners(young, self.stack.workers(RELAY))
                self.kills.kill(RELAY, pids, in_core=True)
            older, last = last, seen


def _new_held(path: Path) -> Iterator[list[str]]:
    """Yield, each time, the held GUIDs that the core has received since the last time."""
    mark = re.compile(rb'"guid": "(' + weather.HELD_MARK.encode() + rb'[^"]*)", "attempt": 1,')
    with path.open("rb") as lines:
        rest = b""
        while True:
            *whole, rest = (rest + lines.read()).split(b"\n")
            yield [found[1].decode() for line in whole if (found := mark.search(line))]


def started(stack: Stack, function: str) -> list[int]:
    """Return the function's processes that have been called: they have reached AWS, or tried."""
    return owners(connections(stack.faults.port), stack.workers(function))


def connections(port: int) -> set[str]:
    """Return the inodes of the established connections to the port on loopback."""
    # sl, local, remote, st, tx:rx, tr:tm, retrnsmt, uid, timeout, inode
    row = rf"^ *\d+: \S+ 0100007F:{port:04X} 01 \S+ \S+ \S+ +\d+ +\d+ (\d+)"
    return set(re.findall(row, Path("/proc/net/tcp").read_text(), re.MULTILINE))


def owners(inodes: set[str], pids: Iterable[int]) -> list[int]:
    """Return those of the processes that hold one of the sockets."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return [pid for pid in pids if wanted & set(_links(pid))]


def _links(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(link.readlink())


def confirmed(
    told: Iterable[Told], receipts: Iterable[Receipt], kills_ms: Iterable[int]
) -> list[str]:
    """Return the held GUIDs whose sender was certainly killed while the core had the request.

    The core had received it whole, then processes were killed, and right afterwards the call ended
    without a code, before the core would have answered.
    """
    received = {
        each.guid: each.time_ms
        for each in receipts
        if each.kind == "received" and each.attempt == 1 and each.guid.startswith(weather.HELD_MARK)
    }
    return [
        guid
        for guid, call in _first_posts(told).items()
        if guid in received
        and call.code is None
        and call.told_ms < received[guid] + _held_ms(guid)
        and any(
            received[guid] <= at <= call.told_ms and call.told_ms - at < _NOTICED_MS
            for at in kills_ms
        )
    ]


def _first_posts(told: Iterable[Told]) -> Mapping[str, Told]:
    found: dict[str, Told] = {}
    for each in sorted(told, key=lambda call: call.sent_ms):
        if each.does == Does.POST:
            found.setdefault(each.guid, each)
    return found


def _held_ms(guid: str) -> int:
    """Return how long the core keeps the GUID's sender waiting."""
    held = next(each for each in weather.HELD if guid.startswith(each.prefix))
    return int(held.seconds * 1000)

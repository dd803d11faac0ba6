"""The network between hub and core, at the socket: it stands for the module within `wire.py`.

Above it runs the hub's own code down to http.client; its other end is the bank.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from tests.explore.bank import Bank, Line, http
from tests.explore.scheduler import KILLED, KILLED_AFTER, Scheduler

CORE_FAULTS: Final = (KILLED, KILLED_AFTER, "refused", "lost", "cut", "away", "cached")
_HEADER: Final = re.compile(rb"\r\n([^:\r\n]+): ([^\r\n]*)")
_LENGTH: Final = re.compile(rb"Content-Length: (\d+)")
_PLACE: Final = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9))
_CONSTANTS: Final = {
    name: getattr(socket, name)
    for name in ("SOCK_STREAM", "SOL_SOCKET", "SO_LINGER", "IPPROTO_TCP", "TCP_NODELAY")
}


@dataclass
class Net:
    """The network of one world; the callables hear of what went over it."""

    scheduler: Scheduler
    bank: Bank
    now_ms: Callable[[], int]
    advance_to: Callable[[int], None]
    on_sent: Callable[[str], None]
    on_heard: Callable[[bytes], None]
    on_close: Callable[[str], None]

    def as_module(self) -> SimpleNamespace:
        """Return what `wire.py` uses of the module."""
        return SimpleNamespace(
            **_CONSTANTS,
            getaddrinfo=lambda *_, **__: [_PLACE],
            socket=lambda *_: FakeSocket(self),
        )


class FakeSocket:
    """What `wire.py` takes for a socket."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._line = Line()
        self._until_ms = 0
        self._word = ""  # What this connection is for, once the request was sent.
        self._is_cut = False

    def settimeout(self, seconds: float) -> None:
        """Let the next operation end by then."""
        self._until_ms = self._net.now_ms() + int(seconds * 1000)

    def connect(self, address: object) -> None:
        """Connect, or be refused."""
        del address
        if self._net.scheduler.point("core connect", (KILLED, "refused")) == "refused":
            raise ConnectionRefusedError

    def setsockopt(self, *_: object) -> None:
        """Take any option."""

    def getsockopt(self, *_: object) -> bytes:
        """Tell that closing is abortive."""
        return struct.pack("ii", 1, 0)

    def send(self, data: Any) -> int:
        """Take the bytes; with the last of them the request arrives, unless its way is lost."""
        self._line.came += bytes(data)
        head, mark, body = self._line.came.partition(b"\r\n\r\n")
        if mark:
            length = _LENGTH.search(head)
            if len(body) >= (int(length[1]) if length else 0):
                self._arrive(head)
        return len(data)

    def recv_into(self, buffer: Any) -> int:
        """Give what the bank answers; without an answer the time passes."""
        if self._is_cut:
            return 0
        how = self._net.scheduler.point(f"core {self._word}", (KILLED, "lost", "cut"))
        if self._net.now_ms() >= self._until_ms:
            raise TimeoutError
        if how == "lost":
            raise ConnectionResetError
        if not self._line.goes:
            self._net.advance_to(self._until_ms)
            raise TimeoutError
        if how == "cut":
            self._is_cut = True
            self._line.goes = self._line.goes[: len(self._line.goes) // 2]
        else:
            self._net.on_heard(self._line.goes.partition(b"\r\n\r\n")[2])
        count = min(len(buffer), len(self._line.goes))
        buffer[:count] = self._line.goes[:count]
        self._line.goes = self._line.goes[count:]
        return count

    def close(self) -> None:
        """Close."""
        self._net.on_close(self._word)

    def _arrive(self, head: bytes) -> None:
        found = {name.decode(): value.decode() for name, value in _HEADER.findall(head)}
        if head.startswith(b"POST"):
            self._request(found["X-GUID"], int(found["X-Attempt"]))
        else:
            guid = head.split(b" ", 2)[1].rpartition(b"/")[2].decode()
            self._inquiry(guid, found["X-Inquiry-Id"])

    def _request(self, guid: str, number: int) -> None:
        faults = (KILLED, KILLED_AFTER, "lost")
        how = self._net.scheduler.point("core send", faults, about=guid)
        self._word = "answer"
        self._net.on_sent(guid)
        if how == "lost":
            raise ConnectionResetError
        self._net.bank.receive(self._line, guid, number)
        if how == KILLED_AFTER:
            self._net.scheduler.stop_current()

    def _inquiry(self, guid: str, inquiry_id: str) -> None:
        has_cached = guid in self._net.bank.verdicts
        faults = (KILLED, "away", "cached") if has_cached else (KILLED, "away")
        how = self._net.scheduler.point("core ask", faults, about=guid)
        self._word = "verdict"
        if how == "away":
            self._line.goes = http(503, b"{}")
        else:
            self._net.bank.ask(self._line, guid, inquiry_id, is_cached=how == "cached")

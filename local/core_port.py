"""A listening port that can be closed, or stop accepting, and come back.

The rule it protects: a refused port stays bound without listening, so that nobody else can take
its number meanwhile, and a paused one keeps listening, so that its backlog takes the bytes.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from enum import StrEnum

BACKLOG = 512  # more connections than any test opens at once; more would be dropped silently


class Door(StrEnum):
    """What the port does with a new connection."""

    OPEN = "open"
    PAUSED = "paused"
    REFUSED = "refused"


class Port:
    """One TCP port on the loopback address."""

    def __init__(self, number: int, accepted: Callable[[socket.socket], None]) -> None:
        """Bind (0: any free port) and listen; raises OSError when the number is taken."""
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._sock = _bound(number)
        self.number: int = self._sock.getsockname()[1]
        self.door = Door.REFUSED
        self.turn(Door.OPEN)

    def turn(self, door: Door) -> None:
        """Open, pause or refuse, at once."""
        if door is self.door:
            return
        if self.door is Door.OPEN:
            # What the kernel has already taken belongs to the time before.
            self._accept()
            self._loop.remove_reader(self._sock)
        if door is Door.REFUSED:
            self._sock.close()
            self._sock = _bound(self.number)
        elif self.door is Door.REFUSED:
            self._sock.listen(BACKLOG)
        if door is Door.OPEN:
            self._loop.add_reader(self._sock, self._accept)
        self.door = door

    def close(self) -> None:
        """Give the port back."""
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            for _ in range(BACKLOG):
                self._accepted(self._sock.accept()[0])


def _bound(number: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", number))
    except OSError:
        sock.close()
        raise
    return sock

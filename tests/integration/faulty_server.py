"""A raw-socket server for one fault at a time, plain or TLS.

A behaviour is a function over one accepted connection. The server counts what the truth depends
on: connections, bytes of requests, requests that it read in full, and how the client ended.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

# No behaviour may outlast this, so that a test which goes wrong still ends.
LONGEST_S: Final = 5.0
RESET: Final = "reset"
END: Final = "end"


@dataclass(frozen=True)
class Request:
    """A request that was read in full."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def values(self, name: str) -> list[str]:
        """Return every value of the header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class Seen:
    """What the server saw; complete once the server has stopped."""

    connections: int = 0
    handshakes: int = 0
    bytes_read: int = 0
    requests: list[Request] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)


class Connection:
    """One accepted connection, as a behaviour sees it."""

    def __init__(self, sock: socket.socket, server: FaultyServer) -> None:
        self.sock = sock
        self.raw = sock
        self.server = server
        sock.settimeout(LONGEST_S)

    def secure(self) -> None:
        """Do the server's half of the TLS handshake, where the server has TLS."""
        if self.server.tls is not None:
            self.sock = self.server.tls.wrap_socket(self.sock, server_side=True)
            self.server.seen.handshakes += 1

    def read(self, bytes_max: int = 65536) -> bytes:
        """Read some bytes; notes how the client ended when it did."""
        try:
            data = self.sock.recv(bytes_max)
        except ConnectionResetError:
            self.server.seen.endings.append(RESET)
            raise
        if not data:
            self.server.seen.endings.append(RESET if self._is_hung_up() else END)
        self.server.seen.bytes_read += len(data)
        return data

    def _is_hung_up(self) -> bool:
        """Tell whether both directions are gone: the mark of a reset, which TLS shows as an end."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return any(events & select.POLLHUP for _, events in poll.poll(0))

    def read_request(self) -> Request:
        """Read one request to its last byte and count it; raises EOFError at an early end."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        pairs = [text.split(": ", 1) for text in fields]
        headers = tuple((name, value) for name, value in pairs)
        length = sum(int(value) for name, value in headers if name == "Content-Length")
        while len(body) < length:
            body += self._more()
        request = Request(line, headers, body)
        self.server.seen.requests.append(request)
        return request

    def _more(self) -> bytes:
        data = self.read()
        if not data:
            raise EOFError
        return data

    def send(self, data: bytes) -> None:
        """Send everything."""
        self.sock.sendall(data)

    def raw_send(self, data: bytes) -> None:
        """Send beneath TLS."""
        with socket.socket(fileno=os.dup(self.sock.fileno())) as bare:
            bare.sendall(data)

    def drip(self, data: bytes, *, every_s: float) -> None:
        """Send byte by byte, until done or the server stops."""
        for byte in data:
            self.sock.sendall(bytes([byte]))
            if self.server.stopping.wait(every_s):
                return

    def wait_for_bytes(self) -> None:
        """Wait until bytes have arrived, without reading any."""
        select.select([self.sock], [], [], LONGEST_S)

    def wait(self) -> None:
        """Do nothing until the test lets go of the server."""
        self.server.stopping.wait(LONGEST_S)

    def reset(self) -> None:
        """Close with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class FaultyServer:
    """The server; use it as a context manager, and read `seen` after it."""

    def __init__(
        self,
        behaviour: Callable[[Connection], object],
        *,
        tls: ssl.SSLContext | None = None,
        secures: bool = True,
        receive_bytes: int | None = None,
    ) -> None:
        self.seen = Seen()
        self.tls = tls
        self.stopping = threading.Event()
        self._behaviour = behaviour
        self._secures = secures
        self._threads: list[threading.Thread] = []
        self._last_peer: tuple[str, int] | None = None
        self._listener = socket.socket()
        if receive_bytes is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(16)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        """Return the server's address as the core's URL."""
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self.join()

    def join(self) -> None:
        """Take no more connections and let all that were made come to their end.

        The last connection is our own: the backlog is served in order, so that none made before
        it is missed.
        """
        if self._acceptor.is_alive():
            with socket.socket() as last:
                last.bind(("127.0.0.1", 0))
                self._last_peer = last.getsockname()
                last.connect(self._listener.getsockname())
                self._acceptor.join(LONGEST_S)
        self._listener.close()
        for thread in self._threads:
            thread.join(LONGEST_S)

    def _accept(self) -> None:
        while True:
            sock, peer = self._listener.accept()
            if peer == self._last_peer:
                sock.close()
                return
            self.seen.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        connection = Connection(sock, self)
        try:
            if self._secures:
                connection.secure()
            self._behaviour(connection)
        except (OSError, EOFError):
            pass  # The client went away: what it did is in `seen`.
        finally:
            connection.sock.close()
            connection.raw.close()

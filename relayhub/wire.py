"""One fresh connection to the core, under one deadline.

Job: the connection phase (look-up, every address, TLS), and a socket whose every send and receive
gets what is left of one overall deadline.
May import: judgement (for the reasons).
Protects: whatever fails in here before `connect` returns has sent nothing of the request; no peer,
however slowly it drips, keeps the caller past the deadline; and a closed connection is closed
abortively, so that what the kernel still holds is thrown away instead of delivered later.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import struct
from typing import TYPE_CHECKING, Final

from relayhub.judgement import DoubtError, Reason, Reply, declared_length, refuse_status

if TYPE_CHECKING:
    import http.client
    from collections.abc import Callable

    from _typeshed import ReadableBuffer, WriteableBuffer

    from relayhub.place import Place

HTTP_11: Final = 11  # As http.client spells HTTP/1.1.
LINGER_ZERO: Final = struct.pack("ii", 1, 0)


class UnsentError(Exception):
    """The connection could not be made ready; nothing of the request left."""

    def __init__(self, reason: Reason) -> None:
        """Keep the reason."""
        super().__init__(reason.value)
        self.reason = reason


class EndedEarlyError(Exception):
    """The peer ended the stream where more of the answer was due."""


class Deadline:
    """One moment on a monotonic clock that bounds everything done under it."""

    def __init__(self, within_s: float, monotonic: Callable[[], float]) -> None:
        """Start now; `within_s` seconds are left."""
        self._monotonic = monotonic
        self._ends_at_s = monotonic() + within_s

    def left_s(self) -> float:
        """Return the seconds left; zero or less once it has passed."""
        return self._ends_at_s - self._monotonic()

    def arm(self, sock: socket.socket) -> None:
        """Let the socket's next operation last what is left; raises TimeoutError at none."""
        left_s = self.left_s()
        if left_s <= 0:
            raise TimeoutError
        sock.settimeout(left_s)


class AnswerStream(io.RawIOBase):
    """The bytes of the answer; the end of the stream is an error.

    http.client asks for more only while the answer is not complete, and takes an end of the stream
    within the headers, a chunk's size or the trailer for their end. Here it never is one.
    """

    def __init__(self, receive: Callable[[WriteableBuffer], int]) -> None:
        """Read by `receive`, which fills a buffer and returns 0 at the end."""
        super().__init__()
        self._receive = receive

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the buffer; raises EndedEarlyError at the end of the stream."""
        count = self._receive(buffer)
        if count == 0:
            raise EndedEarlyError
        return count


class Wire:
    """An established connection as http.client wants it: every operation under the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        """Take over the socket."""
        self._sock = sock
        self._deadline = deadline
        self.has_written = False
        self.has_received = False

    def sendall(self, data: ReadableBuffer) -> None:
        """Send everything, or raise when the deadline passes or the connection breaks."""
        rest = memoryview(data)
        while rest:
            self._deadline.arm(self._sock)
            rest = rest[self._sock.send(rest) :]

    def receive(self, buffer: WriteableBuffer) -> int:
        """Receive what there is into the buffer; 0 at the end of the stream."""
        self._deadline.arm(self._sock)
        count = self._sock.recv_into(buffer)
        self.has_received = self.has_received or count > 0
        return count

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the reader that http.client asks for."""
        del mode  # http.client asks for "rb" only.
        return io.BufferedReader(AnswerStream(self.receive))

    def close(self) -> None:
        """Do nothing: http.client closes when it pleases, the owner ends the connection."""

    def abort(self) -> bool:
        """Close at once, throw away what is unsent; tell whether that was really so."""
        return abort(self._sock)


def abort(sock: socket.socket) -> bool:
    """Close the socket; True if SO_LINGER 0 stood, so that a reset went out and no byte follows."""
    try:
        found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(LINGER_ZERO))
        sock.close()
    except OSError:
        sock.close()  # Closed it is, whatever close said; how the kernel did it is not known.
        return False
    is_on, wait_s = struct.unpack("ii", found)
    return bool(is_on) and wait_s == 0


def connect(place: Place, tls: ssl.SSLContext, *, connect_s: float, deadline: Deadline) -> Wire:
    """Return an established connection, TLS included; raises UnsentError, and never anything else.

    The look-up cannot be interrupted: RES_OPTIONS in the environment bounds it.
    """
    _expect_time(deadline)
    addresses = _look_up(place)
    last = Reason.DNS_FAILED
    for family, address in addresses:
        _expect_time(deadline)
        try:
            sock = _connected(family, address, min(connect_s, deadline.left_s()), deadline)
        except OSError as error:
            last = _connect_reason(error)
            continue
        return Wire(_secured(sock, place, tls, deadline) if place.is_tls else sock, deadline)
    raise UnsentError(last)


def _expect_time(deadline: Deadline) -> None:
    if deadline.left_s() <= 0:
        raise UnsentError(Reason.OUT_OF_TIME)


def _look_up(place: Place) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UnsentError(Reason.DNS_FAILED) from None
    return [(family, address) for family, _, _, _, address in found]


def _connected(
    family: int, address: tuple[object, ...], wait_s: float, deadline: Deadline
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(wait_s, 0.001))  # 0 would mean: do not wait at all.
        sock.connect(address)
        _prepare_socket(sock, deadline)
    except OSError:
        sock.close()
        raise
    return sock


def _prepare_socket(sock: socket.socket, deadline: Deadline) -> None:
    """Set what makes the end of sending a known moment; `abort` tells whether it took effect."""
    options: list[tuple[int, int, int | bytes]] = [
        (socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ]
    user_timeout = getattr(socket, "TCP_USER_TIMEOUT", None)  # macOS has none.
    if user_timeout is not None:
        # The kernel gives up on unacknowledged bytes by then, even if this process is frozen.
        left_ms = max(int(deadline.left_s() * 1000), 1)
        options.append((socket.IPPROTO_TCP, user_timeout, left_ms))
    for level, option, value in options:
        with contextlib.suppress(OSError):
            sock.setsockopt(level, option, value)


def _connect_reason(error: OSError) -> Reason:
    if isinstance(error, ConnectionRefusedError):
        return Reason.CONNECT_REFUSED
    return Reason.CONNECT_TIMEOUT if isinstance(error, TimeoutError) else Reason.CONNECT_FAILED


def _secured(
    sock: socket.socket, place: Place, tls: ssl.SSLContext, deadline: Deadline
) -> socket.socket:
    """Return the socket in TLS; the handshake as a whole lasts what is left, however it drips."""
    try:
        deadline.arm(sock)
        return tls.wrap_socket(sock, server_hostname=place.host)
    except ssl.SSLCertVerificationError:
        reason = Reason.TLS_CERTIFICATE
    except TimeoutError:
        reason = Reason.TLS_TIMEOUT
    except (OSError, ValueError):
        reason = Reason.TLS_FAILED
    sock.close()
    raise UnsentError(reason)


def read_reply(response: http.client.HTTPResponse, *, bytes_max: int) -> Reply:
    """Return the complete reply; raises DoubtError, or whatever reading raises."""
    refuse_status(response.status)
    message = response.headers
    if message.defects or message.get_payload():
        # The parser stops at a line that is no header and hides those that follow it.
        raise DoubtError(Reason.GARBLED)
    headers = tuple(message.items())
    length = declared_length(headers, is_http11=response.version >= HTTP_11)
    if length is not None and length > bytes_max:
        raise DoubtError(Reason.OVERSIZED)
    body = response.read(bytes_max + 1)
    if len(body) > bytes_max:
        raise DoubtError(Reason.OVERSIZED)
    if length is not None and len(body) != length:
        raise DoubtError(Reason.TRUNCATED)
    return Reply(response.status, headers, body)


def why_in_doubt(error: Exception, wire: Wire) -> Reason:
    """Return the reason for an error after the first byte may have left."""
    match error:
        case DoubtError():
            return error.reason
        case EndedEarlyError():
            return Reason.TRUNCATED if wire.has_received else Reason.CLOSED_UNANSWERED
        case TimeoutError() if not wire.has_written:
            return Reason.WRITE_TIMEOUT
        case TimeoutError():
            return Reason.ANSWER_TIMEOUT if wire.has_received else Reason.NO_ANSWER
        case OSError():
            return Reason.CONNECTION_LOST if wire.has_written else Reason.WRITE_FAILED
        case _:
            return Reason.GARBLED

"""One connection's bytes: a request read, an answer written, and every rude way to end it.

HTTP is parsed by h11; the socket stays in our own hands, since the faults live there. The rule it
protects: a request counts as received only when its last byte was read.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

import h11

BODY_BYTES_MAX = 1024 * 1024  # four times what the hub lets through
READ_TIMEOUT_S = 120.0  # a stalled sender does not hold a task for ever
CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True)
class Request:
    """A request that was read to its last byte; header names in lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """An answer to be framed."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class BadRequestError(ValueError):
    """The bytes are not a request that we read; `status` says which answer they get."""

    def __init__(self, status: int, text: str) -> None:
        """Keep the status beside the text."""
        super().__init__(text)
        self.status = status


class Peer:
    """The other end of one accepted connection; nothing that it does raises here."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over an accepted socket."""
        sock.settimeout(0)
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER)

    async def read_request(self) -> Request | None:
        """Read one whole request; None when the peer left or stalled before its end.

        Raises BadRequestError for bytes that are no request.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return await self._read()
        except (OSError, TimeoutError):
            return None
        except h11.RemoteProtocolError as error:
            raise BadRequestError(error.error_status_hint, str(error)) from error

    async def _read(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                await self._feed()
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_BYTES_MAX:
                    raise BadRequestError(413, f"the body is over {BODY_BYTES_MAX} bytes")
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _request(head, bytes(body))
            else:
                return None

    async def _feed(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            interim = h11.InformationalResponse(status_code=100, headers=[])
            await self._loop.sock_sendall(self._sock, self._http.send(interim))
        self._http.receive_data(await self._loop.sock_recv(self._sock, CHUNK_BYTES))

    async def answer(self, response: Response) -> None:
        """Send a whole answer and close."""
        length = ("Content-Length", str(len(response.body)))
        await self.send(self.framed(response, (length,)))
        self.close()

    def framed(self, response: Response, framing: tuple[tuple[str, str], ...] = ()) -> bytes:
        """Give the bytes of an answer; without a length in `framing` they come in chunks."""
        headers = [("Content-Type", response.content_type), *response.headers, *framing]
        head = h11.Response(
            status_code=response.status, headers=[*headers, ("Connection", "close")]
        )
        parts = [self._http.send(head), self._http.send(h11.Data(data=response.body))]
        parts.append(self._http.send(h11.EndOfMessage()))
        return b"".join(part for part in parts if part)

    async def send(self, data: bytes) -> bool:
        """Send bytes as they are; False when the peer is gone."""
        try:
            await self._loop.sock_sendall(self._sock, data)
        except OSError:
            return False
        return True

    async def left(self) -> None:
        """Return when the peer closed or reset its side."""
        with contextlib.suppress(OSError):
            while await self._loop.sock_recv(self._sock, CHUNK_BYTES):
                pass

    async def hold(self, seconds: float | None) -> None:
        """Keep the connection open and silent for so long, or until the peer leaves."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.left()

    def close(self) -> None:
        """Close in the orderly way (FIN)."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        self._sock.close()

    def reset(self) -> None:
        """Close with a reset (RST)."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()


def _request(head: h11.Request, body: bytes) -> Request:
    """Put what h11 read into our own words."""
    target = urlsplit(head.target.decode("ascii", "replace"))
    return Request(
        method=head.method.decode("ascii"),
        path=unquote(target.path),
        query=parse_qs(target.query),
        headers={name.decode(): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )

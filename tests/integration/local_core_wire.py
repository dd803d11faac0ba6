"""What a bare socket sees of the local core; no HTTP client smooths anything over."""

import json
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

HOST = "127.0.0.1"
TRANSFER = {"from": "A001", "to": "A002", "amount": 3000, "currency": "JPY"}


class How(StrEnum):
    """How a connection ended for the one who opened it."""

    REFUSED = "refused"
    CLOSED = "closed"
    RESET = "reset"
    SILENT = "silent"


@dataclass(frozen=True)
class Seen:
    """The bytes that came, and how it ended."""

    how: How
    raw: bytes = b""

    @property
    def status(self) -> int:
        """Give the status, 0 when nothing that looks like HTTP came."""
        line = self.raw.split(b"\r\n", 1)[0].split(b" ")
        return int(line[1]) if line[0] == b"HTTP/1.1" else 0

    @property
    def headers(self) -> dict[str, str]:
        """Give the headers, names in lower case."""
        head = self.raw.split(b"\r\n\r\n", 1)[0].decode("latin-1")
        pairs = [line.split(": ", 1) for line in head.split("\r\n")[1:]]
        return {pair[0].lower(): pair[1] for pair in pairs}

    @property
    def body(self) -> bytes:
        """Give what came after the headers."""
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def code(self) -> str:
        """Give the code of a JSON body, empty when it is none."""
        try:
            return str(json.loads(self.body).get("code", ""))
        except ValueError:
            return ""

    @property
    def is_whole(self) -> bool:
        """Tell whether as many bytes came as were promised."""
        return self.headers.get("content-length") == str(len(self.body))


def post_bytes(guid: str, *headers: str, body: bytes | None = None) -> bytes:
    """Give the bytes of one transfer; headers as `Name: value`."""
    sent = json.dumps(TRANSFER).encode() if body is None else body
    lines = ["POST /transactions HTTP/1.1", "Host: core", f"X-GUID: {guid}", *headers]
    lines += ["Content-Type: application/json", f"Content-Length: {len(sent)}"]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + sent


def get_bytes(path: str, *headers: str) -> bytes:
    """Give the bytes of one GET."""
    lines = [f"GET {path} HTTP/1.1", "Host: core", *headers, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def talk(port: int, data: bytes, *, within_s: float = 3.0) -> Seen:
    """Open a connection, send, and read to its end or for so long."""
    try:
        sock = socket.create_connection((HOST, port), timeout=within_s)
    except ConnectionRefusedError:
        return Seen(How.REFUSED)
    except ConnectionResetError:
        # A reset that comes right after the handshake may be seen by connect() already.
        return Seen(How.RESET)
    with sock:
        return _read(sock, data, time.monotonic() + within_s)


def _read(sock: socket.socket, data: bytes, ends_s: float) -> Seen:
    """Read to one deadline over everything, so that a dripping answer is silent too."""
    raw = b""
    try:
        sock.sendall(data)
        while part := sock.recv(65536):
            raw += part
            sock.settimeout(max(0.001, ends_s - time.monotonic()))
    except TimeoutError:
        return Seen(How.SILENT, raw)
    except (ConnectionResetError, BrokenPipeError):
        return Seen(How.RESET, raw)
    return Seen(How.CLOSED, raw)


def post(port: int, guid: str, *headers: str, within_s: float = 3.0) -> Seen:
    """Ask for the usual transfer."""
    return talk(port, post_bytes(guid, *headers), within_s=within_s)


def inquire(port: int, guid: str, inquiry_id: str = "q-1", *, within_s: float = 3.0) -> Seen:
    """Ask what became of a GUID."""
    data = get_bytes(f"/transactions/{guid}", f"X-Inquiry-Id: {inquiry_id}")
    return talk(port, data, within_s=within_s)


def send_and_reset(port: int, data: bytes) -> None:
    """Send everything, then take the connection away with a reset."""
    sock = socket.create_connection((HOST, port), timeout=3)
    sock.sendall(data)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def until(is_so: Callable[[], bool], *, within_s: float = 5.0) -> bool:
    """Wait until something is so; False when it never was."""
    ends_s = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > ends_s:
            return False
        time.sleep(0.02)
    return True

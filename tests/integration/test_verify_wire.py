"""What the grader sends is what it was told to send, once, over real sockets."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from botocore.credentials import Credentials

from verify.wire import NO_ANSWER, Caller, SigV4

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n\x8c\x00"


@dataclass
class Listener:
    """A server that keeps what it was sent and gives one answer to all; b"" closes at once."""

    answer: bytes = OK
    heard: list[bytes] = field(default_factory=list)
    port: int = 0

    def serve(self, server: socket.socket) -> None:
        """Answer each connection."""
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with peer:
                self.heard.append(_request(peer))
                peer.sendall(self.answer)


def _request(peer: socket.socket) -> bytes:
    """Read one request to its end."""
    read = b""
    while True:
        head, end, body = read.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if end and len(body) >= (int(length[1]) if length else 0):
            return read
        read += peer.recv(65_536)


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Run one server."""
    heard = Listener()
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard.port = server.getsockname()[1]
        thread = threading.Thread(target=heard.serve, args=(server,), daemon=True)
        thread.start()
        yield heard
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def lines(heard: bytes) -> list[bytes]:
    """Return the request line and the header lines, names in lower case."""
    first, *rest = heard.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return [first, *(b": ".join([name.lower(), value]) for name, value in _pairs(rest))]


def _pairs(rest: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for line in rest:
        name, _, value = line.partition(b": ")
        yield name, value


def test_header_lines_go_as_they_are(listener: Listener) -> None:
    """Two of one name, bytes beyond ASCII, the caller's own; the answer comes back whole."""
    caller = Caller(f"http://127.0.0.1:{listener.port}", headers=[("X-Channel", "app")])
    keys = [("Idempotency-Key", "a"), ("Idempotency-Key", "\u00fc")]
    answer = caller.send("POST", "/transactions", body=b"{}", content_type="text/x", lines=keys)
    caller.close()
    assert (answer.status, answer.content_type, answer.body) == (200, "text/plain", b"\x8c\x00")
    sent = lines(listener.heard[0])
    assert sent[0] == b"POST /transactions HTTP/1.1"
    for line in (
        b"idempotency-key: a",
        b"idempotency-key: \xc3\xbc",
        b"x-channel: app",
        b"content-type: text/x",
        b"accept-encoding: identity",
    ):
        assert sent.count(line) == 1
    assert listener.heard[0].endswith(b"\r\n\r\n{}")


def test_each_request_is_sent_once_over_its_own_connection(listener: Listener) -> None:
    """A connection that is closed without an answer is told as none, and not tried again."""
    listener.answer = b""
    caller = Caller(f"http://127.0.0.1:{listener.port}")
    assert caller.send("GET", "/transactions/g") == NO_ANSWER
    listener.answer = OK
    assert caller.send("GET", "/transactions/g").status == 200
    caller.close()
    assert len(listener.heard) == 2


def test_nobody_at_the_port_is_no_answer(listener: Listener) -> None:
    """So that a dead relay is judged like any lost answer."""
    [free] = [listener.port]
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    caller = Caller(f"http://127.0.0.1:{free}")
    assert caller.send("GET", "/") == NO_ANSWER
    caller.close()


def test_a_compressed_answer_is_compared_as_it_came(listener: Listener) -> None:
    """Nothing is taken off: the bytes are those on the wire."""
    listener.answer = OK.replace(b"text/plain", b"text/plain\r\nContent-Encoding: gzip")
    caller = Caller(f"http://127.0.0.1:{listener.port}")
    assert caller.send("GET", "/").body == b"\x8c\x00"
    caller.close()


def test_a_name_under_localhost_is_this_machine_and_is_still_named(listener: Listener) -> None:
    """The emulator tells its APIs apart by the host's name."""
    host = f"api.execute-api.localhost:{listener.port}"
    caller = Caller(f"http://{host}/")
    assert caller.send("GET", "/transactions/g").status == 200
    caller.close()
    assert f"host: {host}".encode() in lines(listener.heard[0])


def test_a_signature_covers_host_date_and_type_alone(listener: Listener) -> None:
    """So that header lines that no signer could take may stand beside it."""
    signing = SigV4(Credentials("key", "secret", "token"), "eu-west-1")
    caller = Caller(f"http://127.0.0.1:{listener.port}", signing=signing)
    keys = [("Idempotency-Key", "a")] * 2
    caller.send("POST", "/transactions", body=b"{}", content_type="text/x", lines=keys)
    caller.close()
    [signature] = [line for line in lines(listener.heard[0]) if line.startswith(b"authorization")]
    assert b"/eu-west-1/execute-api/aws4_request" in signature
    assert b"SignedHeaders=content-type;host;x-amz-date;x-amz-security-token," in signature
    assert sum(line.startswith(b"host:") for line in lines(listener.heard[0])) == 1


def test_a_secret_is_not_shown() -> None:
    """Neither in a traceback nor in a log."""
    assert "secret" not in repr(SigV4(Credentials("key", "secret"), "eu-west-1"))

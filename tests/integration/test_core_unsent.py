"""Up to the line nothing of the request leaves: every failure there is NotSent, and truly so."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest
import trustme

from relayhub.core import Answered, CoreRequest, HttpCore, NotSent, Reason
from tests.integration.core_kit import (
    answer,
    answering,
    core_at,
    request_of,
    server_tls,
    serving,
    trusting_secret,
)
from tests.integration.faulty_server import Connection, FaultyServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The ssl module itself leaves a socket to the collector when the peer is gone before the handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

DEADLINE_S: Final = 0.4
ALLOWANCE_S: Final = 0.6


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def full_port() -> Iterator[int]:
    """Give a port whose backlog is full, so that connecting to it gets no answer at all."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)  # noqa: FBT003 (the standard library's own signature)
            filler.connect_ex(address)
        yield int(address[1])


def sent(core: HttpCore, request: CoreRequest | None = None) -> tuple[object, float]:
    """Return the outcome of a send and how long it took, in seconds."""
    begun_s = time.monotonic()
    outcome = core.send(request or request_of(), within_s=DEADLINE_S)
    return outcome, time.monotonic() - begun_s


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_name_that_does_not_resolve_is_not_sent(scheme: str) -> None:
    """A DNS failure happens before any connection."""
    outcome, _ = sent(core_at(f"{scheme}://core.invalid:9"))
    assert outcome == NotSent(Reason.DNS_FAILED)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refused_connection_is_not_sent(scheme: str) -> None:
    """Nobody listens, so nobody got anything."""
    outcome, took_s = sent(core_at(f"{scheme}://127.0.0.1:{free_port()}"))
    assert outcome == NotSent(Reason.CONNECT_REFUSED)
    assert took_s < DEADLINE_S


@pytest.mark.parametrize(
    ("connect_s", "within_s"), [(0.2, 5.0), (30.0, 0.2)], ids=["its_own_limit", "the_deadline"]
)
def test_a_connect_timeout_is_not_sent(full_port: int, connect_s: float, within_s: float) -> None:
    """Neither an address's own limit nor the deadline, whichever is less, is outlived."""
    core = core_at(f"http://127.0.0.1:{full_port}", connect_s=connect_s)
    begun_s = time.monotonic()
    outcome = core.send(request_of(), within_s=within_s)
    took_s = time.monotonic() - begun_s
    assert outcome == NotSent(Reason.CONNECT_TIMEOUT)
    assert took_s < 0.2 + ALLOWANCE_S


def handshake_silent(connection: Connection) -> None:
    """Accept, and never say a word of TLS."""
    connection.wait()


def handshake_closed(connection: Connection) -> None:
    """Take the client's hello and close."""
    connection.read()


def handshake_reset(connection: Connection) -> None:
    """Take the client's hello and reset."""
    connection.read()
    connection.reset()


def handshake_garbage(connection: Connection) -> None:
    """Answer the client's hello in plain HTTP."""
    connection.read()
    connection.send(answer())


def handshake_drips(connection: Connection) -> None:
    """Send a record of the handshake byte by byte, without ever coming to its end."""
    connection.read()
    connection.drip(b"\x16\x03\x03\x3f\xff\x02" + b"\x00" * 200, every_s=0.02)


@pytest.mark.parametrize(
    ("behaviour", "reasons"),
    [
        pytest.param(handshake_silent, {Reason.TLS_TIMEOUT}, id="silent"),
        pytest.param(handshake_drips, {Reason.TLS_TIMEOUT}, id="drips"),
        pytest.param(handshake_closed, {Reason.TLS_FAILED}, id="closed"),
        pytest.param(handshake_reset, {Reason.TLS_FAILED}, id="reset"),
        pytest.param(handshake_garbage, {Reason.TLS_FAILED}, id="plain_http"),
    ],
)
def test_a_handshake_that_fails_is_not_sent(
    behaviour: Callable[[Connection], None], reasons: set[Reason]
) -> None:
    """No byte of the request is in a handshake, and the deadline bounds it as a whole."""
    with FaultyServer(behaviour, tls=server_tls(), secures=False) as server:
        outcome, took_s = sent(core_at(server.url, secret=trusting_secret()))
    assert isinstance(outcome, NotSent)
    assert outcome.reason in reasons
    assert took_s < DEADLINE_S + ALLOWANCE_S
    assert server.seen.connections == 1
    assert server.seen.requests == []


@pytest.mark.parametrize(
    ("name", "issuer"),
    [
        pytest.param("other.example", None, id="wrong_name"),
        pytest.param("127.0.0.1", trustme.CA(), id="untrusted"),
    ],
)
def test_a_certificate_that_does_not_hold_is_not_sent(name: str, issuer: trustme.CA | None) -> None:
    """A stranger's certificate ends the call before the request."""
    with FaultyServer(answering(answer()), tls=server_tls(name, issuer)) as server:
        outcome, _ = sent(core_at(server.url, secret=trusting_secret()))
    assert outcome == NotSent(Reason.TLS_CERTIFICATE)
    assert server.seen.bytes_read == 0


def test_the_certificate_must_be_of_the_name_in_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is the URL's, whatever address it was found at."""
    found = socket.getaddrinfo
    outcomes = []
    with FaultyServer(answering(answer()), tls=server_tls("core.example")) as server:
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda _host, port, **kinds: found("127.0.0.1", port, **kinds)
        )
        for name in ("core.example", "other.example"):
            core = core_at(f"https://{name}:{server.port}", secret=trusting_secret())
            outcomes.append(core.send(request_of(), within_s=2))
    assert isinstance(outcomes[0], Answered)
    assert outcomes[1] == NotSent(Reason.TLS_CERTIFICATE)


def test_the_secrets_own_authority_stands_alone() -> None:
    """Without it the same server is not trusted: the secret replaces the platform's authorities."""
    with FaultyServer(answering(answer()), tls=server_tls()) as server:
        outcome, _ = sent(core_at(server.url))
    assert outcome == NotSent(Reason.TLS_CERTIFICATE)


def test_every_address_of_the_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first address refuses, the second answers: one request, to the second."""
    found = socket.getaddrinfo
    with serving("plain", answering(answer())) as server:
        ports = [free_port(), server.port]
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda _host, _port, **kinds: [
                entry for port in ports for entry in found("127.0.0.1", port, **kinds)
            ],
        )
        outcome = core_at("http://core.example").send(request_of(), within_s=2)
    assert isinstance(outcome, Answered)
    assert len(server.seen.requests) == 1


def test_the_deadline_is_over_all_addresses(
    full_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five addresses that do not answer take no longer than the one deadline."""
    found = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, _port, **kinds: found("127.0.0.1", full_port, **kinds) * 5,
    )
    outcome, took_s = sent(core_at("http://core.example", connect_s=0.3))
    assert isinstance(outcome, NotSent)
    assert took_s < DEADLINE_S + ALLOWANCE_S

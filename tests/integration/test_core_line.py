"""The line itself: the last look at the clocks, right before the first byte of the request."""

from __future__ import annotations

import socket

import pytest

from relayhub.core import Answered, Doubt, NotSent, Reason
from tests.integration.core_kit import (
    NOT_AFTER_MS,
    SCHEMES,
    answer,
    answering,
    core_at,
    request_of,
    secret_for,
    serving,
)
from tests.integration.faulty_server import Connection

# The ssl module itself leaves a socket to the collector when the peer is gone before the handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("late_ms", [0, 1], ids=["exactly_then", "after_it"])
def test_past_its_time_not_a_byte_leaves(scheme: str, late_ms: int) -> None:
    """At X-Not-After the connection is closed before the first byte, whatever was connected."""
    with serving(scheme, Connection.read_request) as server:
        core = core_at(server.url, secret=secret_for(scheme), now_ms=lambda: NOT_AFTER_MS + late_ms)
        outcome = core.send(request_of(), within_s=2)
    assert outcome == NotSent(Reason.NOT_AFTER_PASSED)
    assert server.seen.connections == 1
    assert server.seen.bytes_read == 0


class JumpingClock:
    """A monotonic clock that jumps far past every deadline after some looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> float:
        """Return the time in seconds."""
        self.looks -= 1
        return 0.0 if self.looks >= 0 else 1e6


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("looks", range(1, 14))
def test_wherever_the_deadline_passes_the_outcome_is_true(scheme: str, looks: int) -> None:
    """NotSent is never said once a byte left, at every point where time can run out.

    Time that runs out between the line and the first byte is a doubt: the safe side.
    """
    with serving(scheme, answering(answer())) as server:
        core = core_at(server.url, secret=secret_for(scheme), monotonic=JumpingClock(looks))
        outcome = core.send(request_of(), within_s=20)
        server.join()
    if isinstance(outcome, NotSent):
        assert server.seen.bytes_read == 0
    else:
        assert outcome == Doubt(Reason.WRITE_TIMEOUT, aborted=True) or server.seen.requests


def test_the_jumping_clock_reaches_both_sides_of_the_line() -> None:
    """The test above is empty unless its range ends in an answer and begins before the line."""
    outcomes = []
    for looks in (1, 40):
        with serving("plain", answering(answer())) as server:
            core = core_at(server.url, monotonic=JumpingClock(looks))
            outcomes.append(type(core.send(request_of(), within_s=20)))
    assert outcomes == [NotSent, Answered]


def test_the_line_is_the_last_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that ran out while connecting is found right before the first byte."""
    now_s = [0.0]
    connect = socket.socket.connect

    def slow_connect(sock: socket.socket, address: tuple[str, int]) -> None:
        connect(sock, address)
        now_s[0] = 100.0

    monkeypatch.setattr(socket.socket, "connect", slow_connect)
    with serving("plain", Connection.read_request) as server:
        core = core_at(server.url, monotonic=lambda: now_s[0])
        outcome = core.send(request_of(), within_s=20)
    assert outcome == NotSent(Reason.OUT_OF_TIME)
    assert server.seen.bytes_read == 0


def test_without_time_nobody_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that ate the deadline costs no look-up, which nothing could interrupt."""

    def refuse(*_arguments: object, **_options: object) -> None:
        pytest.fail("looked up")

    core = core_at("http://core.example")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert core.send(request_of(), within_s=0) == NotSent(Reason.OUT_OF_TIME)


def test_a_slow_look_up_is_found_right_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that it took is over before anything is connected."""
    now_s = [0.0]
    found = socket.getaddrinfo

    def slow(host: str, port: int, **kinds: int) -> object:
        now_s[0] = 100.0
        return found(host, port, **kinds)

    with serving("plain", answering(answer())) as server:
        core = core_at(server.url, monotonic=lambda: now_s[0])
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        outcome = core.send(request_of(), within_s=20)
    assert outcome == NotSent(Reason.OUT_OF_TIME)
    assert server.seen.connections == 0


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="macOS has no such option")
def test_the_kernel_gives_up_with_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that nobody acknowledges are dropped by then, even if this process stands still."""
    kept: dict[tuple[int, int], object] = {}
    setsockopt = socket.socket.setsockopt

    def watched(sock: socket.socket, level: int, option: int, value: int) -> None:
        setsockopt(sock, level, option, value)
        kept[level, option] = value

    with serving("plain", answering(answer())) as server:
        monkeypatch.setattr(socket.socket, "setsockopt", watched)
        core_at(server.url).send(request_of(), within_s=2)
    limit_ms = kept[socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT]
    assert isinstance(limit_ms, int)
    assert 1 <= limit_ms <= 2000
    assert kept[socket.IPPROTO_TCP, socket.TCP_NODELAY] == 1

"""How a call ends: with the whole answer, or with a reset that takes back what it can."""

from __future__ import annotations

import socket
from typing import Final

import pytest

from relayhub.core import Answered, Doubt, Reason
from tests.integration.core_kit import (
    ANSWER_BYTES_MAX,
    BODY,
    GUID,
    LENGTH,
    SCHEMES,
    answer,
    answering,
    chunked,
    core_at,
    dripping,
    head,
    request_of,
    secret_for,
    serving,
)
from tests.integration.faulty_server import Connection

DEADLINE_S: Final = 0.4

DEFINITE: Final = (
    pytest.param(answer(), "0000", id="length"),
    pytest.param(answer("200 OK", BODY, LENGTH), "0000", id="the_same_length_twice"),
    pytest.param(answer(version="HTTP/1.0"), "0000", id="http_1.0"),
    pytest.param(chunked("200 OK", [BODY[:7], BODY[7:]]), "0000", id="chunked"),
    pytest.param(head("100 Continue") + answer(), "0000", id="100_then_final"),
    pytest.param(answer("422 No", b'{"code":"B201"}'), "B201", id="refusal"),
    pytest.param(answer("500 Error", b'{"code":"E500"}'), "E500", id="E500_with_500"),
    pytest.param(answer("200 OK", BODY, ("X-GUID", GUID)), "0000", id="guid_echoed"),
    pytest.param(
        answer("200 OK", BODY, ("Content-Encoding", "identity")), "0000", id="identity_named"
    ),
    pytest.param(
        answer(
            "200 OK",
            "残高 \x00 ".encode("shift_jis"),
            ("Content-Type", "text/plain; charset=Shift_JIS"),
            ("X-Response-Code", "0000"),
        ),
        "0000",
        id="shift_jis_with_the_code_in_a_header",
    ),
    pytest.param(
        answer("200 OK", b'{"code":"0000"}' + b" " * (ANSWER_BYTES_MAX - 15)), "0000", id="largest"
    ),
)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("data", "code"), DEFINITE)
def test_a_complete_answer_with_a_definite_code_counts(data: bytes, code: str, scheme: str) -> None:
    """The answer's bytes, type and status arrive as they are, after one request."""
    with serving(scheme, answering(data)) as server:
        outcome = core_at(server.url, secret=secret_for(scheme)).send(request_of(), within_s=2)
    assert isinstance(outcome, Answered)
    assert outcome.answer.code == code
    assert data.endswith(outcome.answer.body) or b"chunked" in data
    assert len(server.seen.requests) == 1
    assert server.seen.connections == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_answer_that_drips_in_time_still_counts(scheme: str) -> None:
    """The deadline bounds the whole, and asks nothing of the single read."""
    with serving(scheme, dripping(answer()[:-10], answer()[-10:])) as server:
        outcome = core_at(server.url, secret=secret_for(scheme)).send(request_of(), within_s=4)
    assert isinstance(outcome, Answered)
    assert outcome.answer.body == BODY


@pytest.mark.parametrize("scheme", SCHEMES)
def test_after_a_doubt_the_server_sees_a_reset(scheme: str) -> None:
    """The close is abortive: a reset, not the polite end after which a core reads on."""

    def behave(connection: Connection) -> None:
        connection.read_request()
        connection.read()

    with serving(scheme, behave) as server:
        outcome = core_at(server.url, secret=secret_for(scheme)).send(
            request_of(), within_s=DEADLINE_S
        )
        server.join()
    assert outcome == Doubt(Reason.NO_ANSWER, aborted=True)
    assert server.seen.endings == ["reset"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_was_not_read_by_the_deadline_is_never_read_in_full(scheme: str) -> None:
    """A hung core that wakes after the deadline gets no full request out of the buffers."""
    body = b"x" * 1_000_000

    def behave(connection: Connection) -> None:
        connection.wait()
        connection.read_request()

    with serving(scheme, behave) as server:
        outcome = core_at(server.url, secret=secret_for(scheme)).send(
            request_of(body), within_s=DEADLINE_S
        )
    assert isinstance(outcome, Doubt)
    assert outcome.aborted
    assert server.seen.requests == []
    assert server.seen.endings == ["reset"]


def test_a_platform_that_will_not_reset_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SO_LINGER cannot be set, nobody may take the sending for ended."""
    setsockopt = socket.socket.setsockopt

    def refusing(sock: socket.socket, level: int, option: int, value: int) -> None:
        if option == socket.SO_LINGER:
            raise OSError
        setsockopt(sock, level, option, value)

    def behave(connection: Connection) -> None:
        connection.read_request()
        connection.read()

    with serving("plain", behave) as server:
        monkeypatch.setattr(socket.socket, "setsockopt", refusing)
        outcome = core_at(server.url).send(request_of(), within_s=DEADLINE_S)
        server.join()
    assert outcome == Doubt(Reason.NO_ANSWER, aborted=False)
    assert server.seen.endings == ["end"]

"""Every way in which a call to the core can go wrong, over plain HTTP and TLS on real sockets.

Each case says what the outcome must be and how many full requests the server read: the truth that
the outcome must never contradict.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from relayhub.core import Doubt, Reason
from tests.integration.core_kit import (
    ANSWER_BYTES_MAX,
    BODY,
    GUID,
    JSON_TYPE,
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.faulty_server import Connection

# The ssl module itself leaves a socket to the collector when the peer is gone before the handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

DEADLINE_S: Final = 0.4
# What a busy machine with two cores may add; a deadline that is not kept misses it by seconds.
ALLOWANCE_S: Final = 0.6
# More than the socket buffers of both ends take in.
LARGE_BODY: Final = b"x" * (16 << 20)


@dataclass(frozen=True)
class Case:
    """A behaviour of the server and the right outcome."""

    name: str
    behaviour: Callable[[Connection], None]
    reason: Reason
    requests_read: int = 1
    body: bytes = b'{"amount":"100"}'
    also: Reason | None = None  # What TLS, or another OpenSSL, shows the same fault as.


def never_reads(connection: Connection) -> None:
    """Accept the connection and read nothing."""
    connection.wait()


def resets_in_mid_body(connection: Connection) -> None:
    """Read some of the request, then reset."""
    connection.read(10_000)
    connection.reset()


def closes_unread(connection: Connection) -> None:
    """Reset once bytes of the request have arrived, without reading any."""
    connection.wait_for_bytes()
    connection.reset()


def never_answers(connection: Connection) -> None:
    """Read the request and say nothing."""
    connection.read_request()
    connection.wait()


def closes_unanswered(connection: Connection) -> None:
    """Read the request and close without a byte."""
    connection.read_request()


def resets_after_reading(connection: Connection) -> None:
    """Read the request and reset."""
    connection.read_request()
    connection.reset()


def stalls_in_the_body(connection: Connection) -> None:
    """Send half of the answer and stay silent."""
    connection.read_request()
    connection.send(answer()[:-5])
    connection.wait()


def breaks_tls(connection: Connection) -> None:
    """Read the request, then send what is no TLS record (over plain HTTP: no HTTP)."""
    connection.read_request()
    connection.raw_send(b"\x00\xff garbage \x00" * 20)
    connection.wait()


def status_only(status: str) -> bytes:
    """Return a complete JSON answer with this status that bears the code of success."""
    return answer(status)


CHUNKED: Final = ("Transfer-Encoding", "chunked")

FAULTS: Final = (
    Case("stalled_write", never_reads, Reason.WRITE_TIMEOUT, 0, LARGE_BODY),
    Case("reset_in_mid_body", resets_in_mid_body, Reason.WRITE_FAILED, 0, LARGE_BODY),
    Case("no_answer", never_answers, Reason.NO_ANSWER),
    Case("closed_with_0_bytes", closes_unanswered, Reason.CLOSED_UNANSWERED),
    Case(
        "reset_after_reading",
        resets_after_reading,
        Reason.CONNECTION_LOST,
        also=Reason.CLOSED_UNANSWERED,  # OpenSSL takes both for the end of the stream.
    ),
    Case("answer_stalls", stalls_in_the_body, Reason.ANSWER_TIMEOUT),
    Case("truncated_length", answering(answer()[:-1]), Reason.TRUNCATED),
    Case("truncated_chunk", answering(chunked("200 OK", [BODY])[:-9]), Reason.TRUNCATED),
    Case("truncated_last_chunk", answering(chunked("200 OK", [BODY])[:-2]), Reason.TRUNCATED),
    Case("truncated_headers", answering(head("200 OK", JSON_TYPE)[:-2]), Reason.TRUNCATED),
    Case("gzip", answering(answer("200 OK", BODY, ("Content-Encoding", "gzip"))), Reason.ENCODED),
    Case("only_100", answering(head("100 Continue")), Reason.TRUNCATED),
    Case("103", answering(head("103 Early Hints") + answer()), Reason.INTERIM_STATUS),
    Case("101", answering(head("101 Switching Protocols")), Reason.INTERIM_STATUS),
    *(
        Case(f"redirect_{status}", answering(status_only(f"{status} Moved")), Reason.REDIRECT)
        for status in (301, 302, 303, 307, 308, 304)
    ),
    *(
        Case(f"gateway_{status}", answering(status_only(f"{status} Busy")), Reason.GATEWAY_STATUS)
        for status in (408, 429, 502, 503, 504)
    ),
    Case(
        "gateway_page_503",
        answering(answer("503 Busy", b"<h1>busy</h1>", ("Content-Type", "text/html"))),
        Reason.GATEWAY_STATUS,
    ),
    Case(
        "gateway_page_without_length",
        answering(head("502 Bad Gateway", ("Content-Type", "text/html")) + b"<h1>bad</h1>"),
        Reason.GATEWAY_STATUS,
    ),
    Case("garbage_line", answering(b"\x15\x03\x01 no HTTP at all\r\n\r\n"), Reason.GARBLED),
    Case("garbage_status", answering(b"HTTP/1.1 abc OK\r\n\r\n"), Reason.GARBLED),
    Case(
        "garbage_header",
        answering(b"HTTP/1.1 200 OK\r\nno header\r\n" + answer().partition(b"\r\n")[2]),
        Reason.GARBLED,
    ),
    Case("garbage_chunk", answering(head("200 OK", CHUNKED) + b"zz\r\n\r\n"), Reason.GARBLED),
    Case("unknown_code", answering(answer("200 OK", b'{"code":"Z999"}')), Reason.UNKNOWN_CODE),
    Case(
        "codes_differ",
        answering(answer("200 OK", BODY, ("X-Response-Code", "B201"))),
        Reason.CODES_DIFFER,
    ),
    Case("no_code", answering(answer("200 OK", b"{}")), Reason.NO_CODE),
    Case("not_json", answering(answer("200 OK", b'{"code":"0000"')), Reason.NOT_JSON),
    Case("no_length", answering(head("200 OK", JSON_TYPE) + BODY), Reason.NO_LENGTH),
    Case(
        "two_lengths",
        answering(answer("200 OK", BODY, ("Content-Length", "2"))),
        Reason.AMBIGUOUS_LENGTH,
    ),
    Case(
        "length_and_chunked",
        answering(head("200 OK", JSON_TYPE, CHUNKED, LENGTH) + b"0\r\n\r\n"),
        Reason.AMBIGUOUS_LENGTH,
    ),
    Case(
        "oversized_length",
        answering(answer("200 OK", b" " * ANSWER_BYTES_MAX + BODY)),
        Reason.OVERSIZED,
    ),
    Case(
        "oversized_promise",
        answering(head("200 OK", JSON_TYPE, ("Content-Length", "999999999999"))),
        Reason.OVERSIZED,
    ),
    Case(
        "oversized_chunks",
        answering(chunked("200 OK", [b" " * 1000] * (ANSWER_BYTES_MAX // 1000) + [BODY * 30])),
        Reason.OVERSIZED,
    ),
    Case(
        "other_guid",
        answering(answer("200 OK", BODY, ("X-GUID", GUID + "1"))),
        Reason.OTHER_GUID,
    ),
    Case("drips_status_line", dripping(b"", answer()), Reason.ANSWER_TIMEOUT),
    Case(
        "drips_headers",
        dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 90),
        Reason.ANSWER_TIMEOUT,
    ),
    Case(
        "drips_100s",
        dripping(head("100 Continue"), head("100 Continue") * 20),
        Reason.ANSWER_TIMEOUT,
    ),
    Case(
        "drips_body",
        dripping(head("200 OK", JSON_TYPE, ("Content-Length", "400")), b" " * 400),
        Reason.ANSWER_TIMEOUT,
    ),
    Case(
        "drips_chunks",
        dripping(head("200 OK", JSON_TYPE, CHUNKED), b"1\r\n \r\n" * 100),
        Reason.ANSWER_TIMEOUT,
    ),
    Case(
        "garbage_under_tls",
        breaks_tls,
        Reason.ANSWER_TIMEOUT,  # Without TLS it is a status line that never ends.
        also=Reason.CONNECTION_LOST,
    ),
)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_whatever_goes_wrong_after_the_line_is_a_doubt(case: Case, scheme: str) -> None:
    """The outcome is a doubt with its reason, in time, after one connection, closed abortively."""
    with serving(scheme, case.behaviour) as server:
        core = core_at(server.url, secret=secret_for(scheme))
        begun_s = time.monotonic()
        outcome = core.send(request_of(case.body), within_s=DEADLINE_S)
        took_s = time.monotonic() - begun_s
    assert isinstance(outcome, Doubt)
    assert outcome.aborted
    assert outcome.reason in {case.reason, case.also}
    assert len(server.seen.requests) == case.requests_read
    assert server.seen.connections == 1
    assert took_s < DEADLINE_S + ALLOWANCE_S


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_close_before_any_read_is_a_doubt_though_nothing_was_read(scheme: str) -> None:
    """The hub cannot know that a core which closes at once has read nothing."""
    with serving(scheme, closes_unread) as server:
        outcome = core_at(server.url, secret=secret_for(scheme)).send(
            request_of(LARGE_BODY), within_s=DEADLINE_S
        )
    assert isinstance(outcome, Doubt)
    assert outcome.aborted
    assert server.seen.requests == []

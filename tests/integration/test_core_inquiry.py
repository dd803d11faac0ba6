"""What an inquiry's reply says, and everything that only looks like it: case 9 of its kind."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import EndpointConnectionError

from relayhub.core import CORE_UNREACHABLE, Finding, HttpCore, Reason
from relayhub.credentials import Credentials
from relayhub.message import Answer
from relayhub.states import DefiniteCodes, Verdict
from tests.integration.core_kit import (
    ANSWER_BYTES_MAX,
    BODY,
    GUID,
    INQUIRY_ID,
    JSON_TYPE,
    SCHEMES,
    FakeSecrets,
    answer,
    answering,
    chunked,
    core_at,
    head,
    secret_for,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.faulty_server import Connection

OURS = (("X-GUID", GUID), ("X-Inquiry-Id", INQUIRY_ID))
PROCESSED = ("X-Verdict", "PROCESSED")
NOT_FOUND = ("X-Verdict", "NOT_FOUND")
PROCESSING = ("X-Verdict", "PROCESSING")
ORIGINAL_200 = ("X-Original-Status", "200")
TEXT = ("Content-Type", "text/plain; charset=Shift_JIS")
SHIFT_JIS = "残高 \x00 ".encode("shift_jis")


def asked(behaviour: Callable[[Connection], object], scheme: str = "plain") -> Finding:
    """Return what one inquiry to such a server finds."""
    with serving(scheme, behaviour) as server:
        core = core_at(server.url, secret=secret_for(scheme))
        return core.ask(GUID, inquiry_id=INQUIRY_ID, within_s=0.4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_inquiry_bears_what_the_contract_says_and_nothing_else(scheme: str) -> None:
    """It names the GUID in the path, a fresh id, and that no cache may answer."""
    with serving(scheme, answering(answer())) as server:
        secret = {**secret_for(scheme), "headers": {"Authorization": "Basic eDp5"}}
        core_at(server.url + "/v1", secret=secret).ask(GUID, inquiry_id=INQUIRY_ID, within_s=2)
    (request,) = server.seen.requests
    assert request.line == f"GET /v1/transactions/{GUID} HTTP/1.1"
    assert dict(request.headers) == {
        "Host": f"127.0.0.1:{server.port}",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "X-Inquiry-Id": INQUIRY_ID,
        "Cache-Control": "no-store",
        "Authorization": "Basic eDp5",
    }


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            answer("200 OK", BODY, *OURS, PROCESSED, ORIGINAL_200),
            Answer(200, "application/json", BODY, "0000"),
            id="json",
        ),
        pytest.param(
            answer("200 OK", b'{"code":"E500"}', *OURS, PROCESSED, ("X-Original-Status", "500")),
            Answer(500, "application/json", b'{"code":"E500"}', "E500"),
            id="refusal_with_its_status",
        ),
        pytest.param(
            answer(
                "200 OK",
                SHIFT_JIS,
                *OURS,
                PROCESSED,
                ("X-Original-Status", "201"),
                TEXT,
                ("X-Response-Code", "0000"),
            ),
            Answer(201, TEXT[1], SHIFT_JIS, "0000"),
            id="shift_jis",
        ),
        pytest.param(
            chunked("200 OK", [BODY[:4], BODY[4:]], *OURS, PROCESSED, ORIGINAL_200),
            Answer(200, "application/json", BODY, "0000"),
            id="chunked",
        ),
    ],
)
def test_processed_returns_the_original_answer(data: bytes, expected: Answer, scheme: str) -> None:
    """Status, type and bytes are those of the first answer, not of the inquiry."""
    assert asked(answering(data), scheme) == Finding(Verdict.PROCESSED, expected, "")


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        pytest.param(answer("404 Not Found", b"", *OURS, NOT_FOUND), Verdict.NOT_FOUND, id="no"),
        pytest.param(answer("202 OK", b"{}", *OURS, PROCESSING), Verdict.PROCESSING, id="at_it"),
    ],
)
def test_the_cores_explicit_word_counts(data: bytes, verdict: Verdict) -> None:
    """NOT_FOUND and PROCESSING are believed in their own status with both echoes."""
    assert asked(answering(data)) == Finding(verdict, None, "")


UNDECIDED = (
    ("404_page", answer("404 Not Found", b"<h1>404</h1>", *OURS), Reason.NO_VERDICT),
    ("404_of_a_proxy", answer("404 Not Found", b"no route"), Reason.OTHER_GUID),
    ("403", answer("403 Forbidden", b"", *OURS), Reason.NO_VERDICT),
    ("403_with_the_word", answer("403 No", b"", *OURS, NOT_FOUND), Reason.VERDICT_STATUS),
    ("500_with_the_word", answer("500 No", b"", *OURS, NOT_FOUND), Reason.VERDICT_STATUS),
    ("503_with_the_word", answer("503 No", b"", *OURS, NOT_FOUND), Reason.GATEWAY_STATUS),
    ("200_not_found", answer("200 OK", b"", *OURS, NOT_FOUND), Reason.VERDICT_STATUS),
    ("404_processing", answer("404 No", b"", *OURS, PROCESSING), Reason.VERDICT_STATUS),
    (
        "202_processed",
        answer("202 OK", BODY, *OURS, PROCESSED, ORIGINAL_200),
        Reason.VERDICT_STATUS,
    ),
    ("200_without_a_verdict", answer("200 OK", BODY, *OURS, ORIGINAL_200), Reason.NO_VERDICT),
    ("other_word", answer("404 No", b"", *OURS, ("X-Verdict", "GONE")), Reason.NO_VERDICT),
    ("small_word", answer("404 No", b"", *OURS, ("X-Verdict", "not_found")), Reason.NO_VERDICT),
    ("two_words", answer("404 No", b"", *OURS, NOT_FOUND, PROCESSING), Reason.NO_VERDICT),
    ("redirect", answer("302 Found", b"", *OURS, NOT_FOUND), Reason.REDIRECT),
    ("no_guid", answer("404 No", b"", OURS[1], NOT_FOUND), Reason.OTHER_GUID),
    (
        "other_guid",
        answer("404 No", b"", OURS[1], NOT_FOUND, ("X-GUID", "other")),
        Reason.OTHER_GUID,
    ),
    ("guid_twice", answer("404 No", b"", *OURS, NOT_FOUND, OURS[0]), Reason.OTHER_GUID),
    (
        "guid_in_other_case",
        answer("404 No", b"", OURS[1], NOT_FOUND, ("X-GUID", GUID.upper())),
        Reason.OTHER_GUID,
    ),
    ("no_inquiry_id", answer("404 No", b"", OURS[0], NOT_FOUND), Reason.OTHER_INQUIRY),
    (
        "cached_answer_to_an_earlier_inquiry",
        answer("404 No", b"", OURS[0], NOT_FOUND, ("X-Inquiry-Id", "0000")),
        Reason.OTHER_INQUIRY,
    ),
    ("inquiry_id_twice", answer("404 No", b"", *OURS, OURS[1], NOT_FOUND), Reason.OTHER_INQUIRY),
    ("no_original_status", answer("200 OK", BODY, *OURS, PROCESSED), Reason.BAD_ORIGINAL_STATUS),
    (
        "original_status_twice",
        answer("200 OK", BODY, *OURS, PROCESSED, ORIGINAL_200, ORIGINAL_200),
        Reason.BAD_ORIGINAL_STATUS,
    ),
    (
        "original_status_word",
        answer("200 OK", BODY, *OURS, PROCESSED, ("X-Original-Status", "OK")),
        Reason.BAD_ORIGINAL_STATUS,
    ),
    (
        "original_status_of_a_gateway",
        answer("200 OK", BODY, *OURS, PROCESSED, ("X-Original-Status", "504")),
        Reason.BAD_ORIGINAL_STATUS,
    ),
    (
        "original_of_unknown_code",
        answer("200 OK", b'{"code":"Z999"}', *OURS, PROCESSED, ORIGINAL_200),
        Reason.UNKNOWN_CODE,
    ),
    (
        "original_without_a_code",
        answer("200 OK", SHIFT_JIS, *OURS, PROCESSED, ORIGINAL_200, TEXT),
        Reason.NO_CODE,
    ),
    (
        "original_zipped",
        answer("200 OK", BODY, *OURS, PROCESSED, ORIGINAL_200, ("Content-Encoding", "gzip")),
        Reason.ENCODED,
    ),
    (
        "truncated",
        answer("200 OK", BODY, *OURS, PROCESSED, ORIGINAL_200)[:-1],
        Reason.TRUNCATED,
    ),
    ("no_length", head("404 No", *OURS, NOT_FOUND), Reason.NO_LENGTH),
    ("cut_before_the_end_of_the_head", head("404 No", *OURS, NOT_FOUND)[:-2], Reason.TRUNCATED),
    (
        "two_lengths",
        answer("404 No", b"", *OURS, NOT_FOUND, ("Content-Length", "2")),
        Reason.AMBIGUOUS_LENGTH,
    ),
    (
        "oversized",
        answer("200 OK", b" " * (ANSWER_BYTES_MAX + 1), *OURS, PROCESSED, ORIGINAL_200),
        Reason.OVERSIZED,
    ),
    ("garbage", b"\x00\x01\x02\r\n\r\n", Reason.GARBLED),
    ("nothing", b"", Reason.CLOSED_UNANSWERED),
)


@pytest.mark.parametrize(
    ("data", "reason"), [pytest.param(data, reason, id=name) for name, data, reason in UNDECIDED]
)
def test_anything_else_is_undecided(data: bytes, reason: Reason) -> None:
    """A reply that is not wholly the core's own word about this inquiry decides nothing."""
    assert asked(answering(data)) == Finding(Verdict.UNDECIDED, None, reason)


def test_silence_is_undecided() -> None:
    """The core is asked again another time."""

    def silent(connection: Connection) -> None:
        connection.read_request()
        connection.wait()

    assert asked(silent) == Finding(Verdict.UNDECIDED, None, Reason.NO_ANSWER)


def test_a_verdict_that_drips_past_the_deadline_is_undecided() -> None:
    """An inquiry keeps its deadline like a request."""

    def drips(connection: Connection) -> None:
        connection.read_request()
        connection.drip(answer("404 No", b"", *OURS, NOT_FOUND, JSON_TYPE), every_s=0.02)

    assert asked(drips) == Finding(Verdict.UNDECIDED, None, Reason.ANSWER_TIMEOUT)


def closed_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_core_that_cannot_be_reached_is_told_apart(scheme: str) -> None:
    """Whoever paces resends must know that the core is away."""
    core = core_at(f"{scheme}://127.0.0.1:{closed_port()}")
    found = core.ask(GUID, inquiry_id=INQUIRY_ID, within_s=2)
    assert found == Finding(Verdict.UNDECIDED, None, CORE_UNREACHABLE)


@pytest.mark.parametrize("guid", ["../accounts", "a/b", "", ".", "a?b", "a b", "a\r\nb", "é"])
def test_what_is_no_guid_is_never_asked_about(guid: str) -> None:
    """It would be another path, whose answer says nothing."""
    with serving("plain", answering(answer())) as server:
        found = core_at(server.url).ask(guid, inquiry_id=INQUIRY_ID, within_s=2)
    assert found == Finding(Verdict.UNDECIDED, None, Reason.HEADER_REFUSED)
    assert server.seen.connections == 0


def test_without_the_secret_nobody_is_asked() -> None:
    """A secret that cannot be read makes the verdict undecided, not the resolver fail."""
    secrets = FakeSecrets("{}")
    secrets.error = EndpointConnectionError(endpoint_url="https://secrets")
    core = HttpCore(
        "http://core.invalid",
        connect_s=1,
        codes=DefiniteCodes(),
        answer_bytes_max=10,
        credentials=Credentials("arn:core", secrets),
        now_ms=lambda: 0,
    )
    found = core.ask(GUID, inquiry_id=INQUIRY_ID, within_s=1)
    assert found == Finding(Verdict.UNDECIDED, None, Reason.CREDENTIALS)

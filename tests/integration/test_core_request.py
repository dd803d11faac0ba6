"""What goes to the core, byte for byte, and where it goes: to the core, and nowhere else."""

from __future__ import annotations

import pytest

from relayhub.core import Answered, HttpCore, NotSent, Reason
from relayhub.credentials import Credentials
from relayhub.states import DefiniteCodes
from tests.integration.core_kit import (
    GUID,
    SCHEMES,
    answer,
    answering,
    core_at,
    request_of,
    secret_for,
    serving,
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_request_bears_what_the_contract_says_and_nothing_else(scheme: str) -> None:
    """The headers are the contract's and the secret's; the body is the channel's bytes."""
    body = "送金 \x00\r\n ".encode("shift_jis")
    with serving(scheme, answering(answer())) as server:
        secret = {**secret_for(scheme), "headers": {"Authorization": "Basic eDp5"}}
        core = core_at(f"{server.url}/bank/v1/", secret=secret)
        outcome = core.send(request_of(body, content_type="text/plain"), within_s=2)
    assert isinstance(outcome, Answered)
    (request,) = server.seen.requests
    assert request.line == "POST /bank/v1/transactions HTTP/1.1"
    assert request.body == body
    assert dict(request.headers) == {
        "Host": f"127.0.0.1:{server.port}",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "X-GUID": GUID,
        "X-Attempt": "1",
        "X-Operation": "transfer",
        "X-Not-After": "2027-01-15T08:00:20.000Z",
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
        "Authorization": "Basic eDp5",
    }
    assert len(request.headers) == len(dict(request.headers))


def test_an_empty_operation_is_not_sent() -> None:
    """A channel without operations sends no empty header."""
    with serving("plain", answering(answer())) as server:
        core_at(server.url).send(request_of(operation=""), within_s=2)
    assert server.seen.requests[0].values("X-Operation") == []


@pytest.mark.parametrize("kind", ["send", "ask"])
def test_the_environments_proxies_are_ignored(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in between could resend, and would blur what was sent."""
    with (
        serving("plain", answering(answer())) as proxy,
        serving("plain", answering(answer())) as server,
    ):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        core = core_at(server.url)
        if kind == "send":
            core.send(request_of(), within_s=2)
        else:
            core.ask(GUID, inquiry_id="1", within_s=2)
    assert proxy.seen.connections == 0
    assert len(server.seen.requests) == 1


def test_every_call_has_a_connection_of_its_own() -> None:
    """Nothing is reused, so that a reset can never come from an earlier call."""
    with serving("plain", answering(answer())) as server:
        core = core_at(server.url)
        for _ in range(3):
            core.send(request_of(), within_s=2)
    assert server.seen.connections == 3


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"content_type": "text/plain\r\nX-Evil: 1"}, id="CRLF_in_type"),
        pytest.param({"content_type": "text/plain\r\n folded"}, id="folded_type"),
        pytest.param({"content_type": "text/plain\nX-Evil: 1"}, id="LF_in_type"),
        pytest.param({"content_type": "text/plain\x00"}, id="NUL_in_type"),
        pytest.param({"content_type": "text/残高"}, id="not_Latin-1"),
        pytest.param({"operation": "a\r\nb"}, id="CRLF_in_operation"),
        pytest.param({"guid": "a\r\nb"}, id="CRLF_in_guid"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_before_connecting(
    change: dict[str, str],
) -> None:
    """It would be an error halfway otherwise, and the outcome in doubt for nothing."""
    with serving("plain", answering(answer())) as server:
        outcome = core_at(server.url).send(request_of(**change), within_s=2)
    assert outcome == NotSent(Reason.HEADER_REFUSED)
    assert server.seen.connections == 0


def test_a_core_that_was_not_prepared_sends_nothing() -> None:
    """Without the secret's settings there is no call."""
    core = HttpCore(
        "http://127.0.0.1:9",
        connect_s=1,
        codes=DefiniteCodes(),
        answer_bytes_max=10,
        credentials=Credentials(""),
        now_ms=lambda: 0,
    )
    assert core.send(request_of(), within_s=1) == NotSent(Reason.NOT_PREPARED)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("ftp://core", id="scheme"),
        pytest.param("core:8080", id="no_scheme"),
        pytest.param("http://", id="no_host"),
        pytest.param("http://user:pw@core", id="user"),
        pytest.param("http://core?x=1", id="query"),
        pytest.param("http://core/#a", id="fragment"),
        pytest.param("http://core:99999", id="port"),
        pytest.param("http://core:0", id="port_0"),
        pytest.param("http://core/a b", id="blank"),
        pytest.param("http://core/\u00e9", id="not_ASCII"),
        pytest.param("http://a..b", id="empty_label"),
        pytest.param("http://core\r\n", id="line_break"),
        pytest.param("", id="empty"),
    ],
)
def test_a_url_that_cannot_be_a_cores_is_refused_at_once(url: str) -> None:
    """The settings' fault shows at the start, not at the first transaction."""
    with pytest.raises(ValueError, match="the core's URL"):
        core_at(url)

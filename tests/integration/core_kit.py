"""What the tests of the core module share: a core to call, its secret, raw answers."""

from __future__ import annotations

import json
import ssl
import time
from functools import cache
from typing import TYPE_CHECKING, Final

import trustme

from relayhub.core import CoreRequest, HttpCore
from relayhub.credentials import Credentials
from relayhub.states import DefiniteCodes
from tests.integration.faulty_server import FaultyServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.integration.faulty_server import Connection

GUID: Final = "0198c0de-0000-7000-8000-000000000001"
INQUIRY_ID: Final = "5c1b"
NOW_MS: Final = 1_800_000_000_000
NOT_AFTER_MS: Final = NOW_MS + 20_000
ANSWER_BYTES_MAX: Final = 64 * 1024
BODY: Final = b'{"code":"0000","amount":"100"}'
SCHEMES: Final = ("plain", "tls")
LENGTH: Final = ("Content-Length", str(len(BODY)))
JSON_TYPE: Final = ("Content-Type", "application/json")


class FakeSecrets:
    """Secrets Manager with one secret; counts how often it was read."""

    def __init__(self, secret: Mapping[str, object] | str) -> None:
        self.text = secret if isinstance(secret, str) else json.dumps(secret)
        self.reads = 0
        self.error: Exception | None = None

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, object]:  # noqa: N803 (AWS's name)
        """Return the secret, or raise what the test asked for."""
        del SecretId
        self.reads += 1
        if self.error is not None:
            raise self.error
        return {"SecretString": self.text}


def core_at(
    url: str,
    *,
    secret: Mapping[str, object] | None = None,
    connect_s: float = 5.0,
    now_ms: Callable[[], int] = lambda: NOW_MS,
    monotonic: Callable[[], float] = time.monotonic,
) -> HttpCore:
    """Return a core at the URL, prepared."""
    core = HttpCore(
        url,
        connect_s=connect_s,
        codes=DefiniteCodes(),
        answer_bytes_max=ANSWER_BYTES_MAX,
        credentials=Credentials("arn:core", FakeSecrets(secret or {})),
        now_ms=now_ms,
        monotonic=monotonic,
    )
    core.prepare()
    return core


def request_of(body: bytes = b'{"amount":"100"}', /, **changes: str) -> CoreRequest:
    """Return a request with a body, its texts changed as asked."""
    texts = {"operation": "transfer", "content_type": "application/json", "guid": GUID} | changes
    return CoreRequest(
        guid=texts["guid"],
        attempt=1,
        operation=texts["operation"],
        not_after_ms=NOT_AFTER_MS,
        body=body,
        content_type=texts["content_type"],
    )


def head(status: str, *headers: tuple[str, str], version: str = "HTTP/1.1") -> bytes:
    """Return a status line and headers, with the empty line that ends them."""
    lines = [f"{version} {status}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(
    status: str = "200 OK",
    body: bytes = BODY,
    *headers: tuple[str, str],
    version: str = "HTTP/1.1",
) -> bytes:
    """Return a complete answer with its length; JSON unless a header says otherwise."""
    names = {name.lower() for name, _ in headers}
    own = () if "content-type" in names else (JSON_TYPE,)
    length = ("Content-Length", str(len(body)))
    return head(status, *own, *headers, length, version=version) + body


def chunked(status: str, chunks: list[bytes], *headers: tuple[str, str]) -> bytes:
    """Return a complete chunked JSON answer."""
    coded = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])
    return head(status, JSON_TYPE, ("Transfer-Encoding", "chunked"), *headers) + coded


@cache
def authority() -> trustme.CA:
    """Return the test's own certificate authority, made once."""
    return trustme.CA()


def server_tls(name: str = "127.0.0.1", issuer: trustme.CA | None = None) -> ssl.SSLContext:
    """Return a server's TLS settings with a certificate for the name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (issuer or authority()).issue_cert(name).configure_cert(context)
    return context


def trusting_secret() -> dict[str, object]:
    """Return a core's secret that trusts the test's own authority alone."""
    return {"ca_pem": authority().cert_pem.bytes().decode()}


def answering(data: bytes) -> Callable[[Connection], None]:
    """Return a behaviour: read the request, send these bytes, close."""

    def behave(connection: Connection) -> None:
        connection.read_request()
        connection.send(data)

    return behave


def serving(scheme: str, behaviour: Callable[[Connection], object]) -> FaultyServer:
    """Return a server for the behaviour, with TLS for "tls"; it takes in little unread."""
    tls = server_tls() if scheme == "tls" else None
    return FaultyServer(behaviour, tls=tls, receive_bytes=8192)


def secret_for(scheme: str) -> Mapping[str, object]:
    """Return the secret with which a core of that scheme is called."""
    return trusting_secret() if scheme == "tls" else {}


def dripping(start: bytes, data: bytes) -> Callable[[Connection], None]:
    """Return a behaviour: answer so slowly that no single read ever waits long."""

    def behave(connection: Connection) -> None:
        connection.read_request()
        connection.send(start)
        connection.drip(data, every_s=0.02)

    return behave

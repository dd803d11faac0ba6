"""Requests to a relay as a channel sends them: each over a connection of its own, and once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

# Longer than the 30 s after which AWS's HTTP API gives up, so that its answer is seen, not ours.
ANSWER_S: Final = 35.0
_SERVICE: Final = "execute-api"
_LOOPBACK: Final = "127.0.0.1"

Lines = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """An answer as it came; header names in lower case; status 0 for none at all."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        """The content type, empty without one."""
        return self.headers.get("content-type", "")


NO_ANSWER: Final = Answer(0, {}, b"")


@dataclass(frozen=True)
class SigV4:
    """Signs as AWS demands it; only host, date and content type are signed."""

    credentials: Credentials = field(repr=False)
    region: str
    service: str = _SERVICE

    def lines(self, method: str, url: str, body: bytes, content_type: str) -> Lines:
        """Return the header lines of the signature, and those that it covers."""
        covered = {"Content-Type": content_type} if content_type else {}
        request = AWSRequest(method=method, url=url, data=body, headers=covered)
        SigV4Auth(self.credentials, self.service, self.region).add_auth(request)
        return [(name, str(value)) for name, value in request.headers.items()]


class Caller:
    """A channel: what it sends to the relay bears its identity."""

    def __init__(
        self,
        url: str,
        *,
        headers: Lines = (),
        signing: SigV4 | None = None,
        within_s: float = ANSWER_S,
    ) -> None:
        """Point at the relay's base URL; `headers` go with every request."""
        self.url = url.rstrip("/")
        self._own = list(headers)
        self._signing = signing
        self._where, self._host = _connecting(httpx.URL(self.url))
        self._http = httpx.Client(
            timeout=within_s,
            # One connection each: nothing that an earlier answer left behind can be in the way.
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=self._where.host != _LOOPBACK,
            follow_redirects=False,
        )

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        content_type: str = "",
        lines: Lines = (),
    ) -> Answer:
        """Send one request, header lines as given, and return the whole answer, or NO_ANSWER."""
        head = [("Host", self._host), ("Accept-Encoding", "identity"), ("Connection", "close")]
        if self._signing:
            signed = self._signing.lines(method, self.url + path, body, content_type)
            head += [line for line in signed if line[0] != "Host"]
        elif content_type:
            head.append(("Content-Type", content_type))
        raw = [(name.encode(), value.encode()) for name, value in (*head, *self._own, *lines)]
        try:
            return self._exchange(method, path, raw, body)
        except httpx.HTTPError:
            return NO_ANSWER

    def close(self) -> None:
        """Close what is open."""
        self._http.close()

    def _exchange(
        self, method: str, path: str, raw: list[tuple[bytes, bytes]], body: bytes
    ) -> Answer:
        url = f"{str(self._where).rstrip('/')}{path}"
        content: dict[str, Any] = {"content": body} if body or method == "POST" else {}
        request = self._http.build_request(method, url, headers=raw, **content)
        with_body = self._http.send(request, stream=True)
        try:
            # As it came: a content encoding that nobody asked for is not taken off.
            whole = b"".join(with_body.iter_raw())
        finally:
            with_body.close()
        headers = {name.lower(): value for name, value in with_body.headers.items()}
        return Answer(with_body.status_code, headers, whole)


def _connecting(url: httpx.URL) -> tuple[httpx.URL, str]:
    """Return where to connect to, and the host to name: .localhost is this machine (RFC 6761)."""
    host = url.netloc.decode("ascii")
    is_local = url.host == "localhost" or url.host.endswith(".localhost")
    return (url.copy_with(host=_LOOPBACK) if is_local else url), host

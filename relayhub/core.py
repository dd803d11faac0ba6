"""The only module that talks to the core.

Job: send a request once and say what is certain about it afterwards; ask what became of one.
May import: wire, place, judgement, credentials, message, states.
Protects the judgement that money hangs on: was it sent? Everything before one visible line cannot
have sent a byte of the request (`NotSent`); everything after it may have (`Doubt`), except for the
core's complete and definite answer (`Answered`). One fresh connection per call: no pool, no
proxy, no redirect, no retry, no thread.
"""

from __future__ import annotations

import http.client
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, cast

from relayhub.credentials import Access, Credentials, CredentialsError
from relayhub.judgement import Finding, Reason, Reply, judge, judge_inquiry
from relayhub.message import Answer, rfc3339
from relayhub.place import place_of
from relayhub.states import DefiniteCodes, Verdict
from relayhub.wire import Deadline, UnsentError, Wire, connect, read_reply, why_in_doubt

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = [
    "CORE_UNREACHABLE",
    "Answered",
    "CoreRequest",
    "Doubt",
    "Finding",
    "HttpCore",
    "NotSent",
    "Reason",
    "SendOutcome",
]

# The reason of a Finding when not even a connection to the core could be made.
CORE_UNREACHABLE: Final = Reason.CORE_UNREACHABLE

_GUID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_VALUE: Final = re.compile(r"[\x20-\x7e\x80-\xff\t]*")  # What one header line can bear in Latin-1.

T = TypeVar("T")


@dataclass(frozen=True)
class CoreRequest:
    """One attempt: the first byte must not leave after `not_after_ms` (epoch)."""

    guid: str
    attempt: int
    operation: str
    not_after_ms: int
    body: bytes
    content_type: str


@dataclass(frozen=True)
class Answered:
    """The core answered, completely and definitely."""

    answer: Answer


@dataclass(frozen=True)
class NotSent:
    """Certainly nothing of the request left."""

    reason: str


@dataclass(frozen=True)
class Doubt:
    """Something may have left; `aborted` tells that nothing more can leave from now on."""

    reason: str
    aborted: bool


SendOutcome = Answered | NotSent | Doubt


class HttpCore:
    """A core that speaks HTTP/1.1; raises ValueError for a URL that cannot be one's."""

    def __init__(
        self,
        url: str,
        *,
        connect_s: float,
        codes: DefiniteCodes,
        answer_bytes_max: int,
        credentials: Credentials,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place_of(url)
        self._connect_s = connect_s
        self._codes = codes
        self._answer_bytes_max = answer_bytes_max
        self._credentials = credentials
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._access: Access | None = None

    def prepare(self) -> None:
        """Read the core's secret, unless it was read lately; raises CredentialsError."""
        self._access = self._credentials.current()

    def send(self, request: CoreRequest, *, within_s: float) -> SendOutcome:
        """Send the request once, within the time, and say what is certain about it.

        Call `prepare` before the claim: this reads no secret. Never raises for what a network does.
        """
        deadline = Deadline(within_s, self._monotonic)
        try:
            head = self._head("POST", "/transactions", _request_headers(request))
            wire = self._connect(deadline)
        except UnsentError as error:
            return NotSent(error.reason)
        late = self._why_too_late(deadline, request.not_after_ms)
        if late is not None:
            wire.abort()
            return NotSent(late)

        # ---- The line. Nothing of the request has left so far. From here on something may have,
        # ---- and no error, whatever it is, ever means again that nothing was sent.

        def decide(reply: Reply) -> Answer:
            return judge(reply, guid=request.guid, codes=self._codes)

        found, is_aborted = self._converse(wire, head, request.body, decide)
        return Doubt(found, is_aborted) if isinstance(found, Reason) else Answered(found)

    def ask(self, guid: str, *, inquiry_id: str, within_s: float) -> Finding:
        """Ask the core, within the time, what became of the GUID; whatever fails is UNDECIDED."""
        deadline = Deadline(within_s, self._monotonic)
        headers = [("X-Inquiry-Id", inquiry_id), ("Cache-Control", "no-store")]
        try:
            self.prepare()
            head = self._head("GET", _inquiry_path(guid), headers)
        except CredentialsError:
            return _undecided(Reason.CREDENTIALS)
        except UnsentError as error:
            return _undecided(error.reason)
        try:
            wire = self._connect(deadline)
        except UnsentError:
            return _undecided(CORE_UNREACHABLE)

        def decide(reply: Reply) -> Finding:
            return judge_inquiry(reply, guid=guid, inquiry_id=inquiry_id, codes=self._codes)

        found, _ = self._converse(wire, head, None, decide)
        return _undecided(found) if isinstance(found, Reason) else found

    def _head(
        self, method: str, path: str, headers: list[tuple[str, str]]
    ) -> http.client.HTTPConnection:
        """Return the head of the request, complete and checked, on nothing that could connect.

        Raises UnsentError: what http.client would refuse later must be refused before a byte left.
        """
        if self._access is None:
            raise UnsentError(Reason.NOT_PREPARED)
        always = [
            ("Host", self._place.host_header),
            ("Accept-Encoding", "identity"),
            ("Connection", "close"),
        ]
        head = http.client.HTTPConnection(self._place.host, self._place.port)
        head.auto_open = 0  # It must never connect by itself.
        try:
            head.putrequest(
                method, self._place.base_path + path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in [*always, *headers, *self._access.headers]:
                if not _VALUE.fullmatch(value):
                    raise UnsentError(Reason.HEADER_REFUSED)
                head.putheader(name, value)
        except (ValueError, http.client.HTTPException):
            raise UnsentError(Reason.HEADER_REFUSED) from None
        return head

    def _connect(self, deadline: Deadline) -> Wire:
        if self._access is None:
            raise UnsentError(Reason.NOT_PREPARED)
        return connect(self._place, self._access.tls, connect_s=self._connect_s, deadline=deadline)

    def _why_too_late(self, deadline: Deadline, not_after_ms: int) -> Reason | None:
        if deadline.left_s() <= 0:
            return Reason.OUT_OF_TIME
        return Reason.NOT_AFTER_PASSED if self._now_ms() >= not_after_ms else None

    def _converse(
        self,
        wire: Wire,
        head: http.client.HTTPConnection,
        body: bytes | None,
        decide: Callable[[Reply], T],
    ) -> tuple[T | Reason, bool]:
        """Send, read, decide; the connection is closed, and how is told, before this returns."""
        found: T | Reason
        try:
            head.sock = cast("socket.socket", wire)
            head.endheaders(body)
            wire.has_written = True
            reply = read_reply(head.getresponse(), bytes_max=self._answer_bytes_max)
            found = decide(reply)
        except Exception as error:  # noqa: BLE001 (whatever it is, the request may have left)
            found = why_in_doubt(error, wire)
        finally:
            is_aborted = wire.abort()
        return found, is_aborted


def _request_headers(request: CoreRequest) -> list[tuple[str, str]]:
    headers = [
        ("X-GUID", request.guid),
        ("X-Attempt", str(request.attempt)),
        ("X-Not-After", rfc3339(request.not_after_ms)),
        ("Content-Length", str(len(request.body))),
    ]
    if request.operation:
        headers.append(("X-Operation", request.operation))
    if request.content_type:
        headers.append(("Content-Type", request.content_type))
    return headers


def _inquiry_path(guid: str) -> str:
    """Return the path; raises UnsentError for what would be another path, or none."""
    if not _GUID.fullmatch(guid):
        raise UnsentError(Reason.HEADER_REFUSED)
    return f"/transactions/{guid}"


def _undecided(reason: Reason) -> Finding:
    return Finding(Verdict.UNDECIDED, None, reason)

"""The deployed API as Schemathesis reaches it: a signed call, and what every answer must keep to.

What is checked is docs/openapi.yaml (status, content type, headers, schema), and what it cannot
say: no 5xx but the hub's own words or the core's, no header that is not written down, nothing of
the inside in a body, and no row after a request that was malformed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import requests
import schemathesis
from requests.auth import AuthBase
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response

from local.channels import Channel
from local.ports import LOOPBACK
from local.stack import Stack
from relayhub.message import MalformedError, check_guid
from tests.fuzz.tally import Tally
from tests.openapi_kit import PAGE, headers_of

# What a gateway adds by itself, and says of the transport.
TRANSPORT: Final = {"content-type", "content-length", "date", "connection", "server"}
GATEWAYS: Final = ("apigw-", "x-amz", "access-control-")
IN_DOUBT_OR_NOT_SENT: Final = {"E901", "E902", "E906"}
INSIDE: Final = (b"Traceback", b'File "', b"botocore", b"relayhub.", b"Error(", b"/var/task")
_CHECKS: Final = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)


Case = schemathesis.Case[Any]


class Signed(AuthBase):
    """Signs what is sent; the headers of a case stay outside of the signature, as they are."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add host, date and signature."""
        body = request.body or b""
        sent = body if isinstance(body, bytes) else str(body).encode()
        signed = self._channel.signature(str(request.method), request.path_url, sent, {})
        request.headers.update(signed)
        return request


@cache
def schema() -> schemathesis.BaseSchema:
    """Return the page as Schemathesis reads it, under a configuration that no file changes."""
    loaded = schemathesis.openapi.from_path(PAGE, config=schemathesis.Config())
    # Whoever resends what is settled is told so, whatever else is wrong with it.
    loaded.config.checks.negative_data_rejection.expected_statuses = ["4xx", "5xx"]
    return loaded


@cache
def _checks() -> list[Any]:
    load_all_checks()
    return [CHECKS.get_one(name) for name in _CHECKS]


@dataclass
class Wire:
    """One channel of a running stack; it remembers which GUIDs must have a row, and which may."""

    stack: Stack
    tally: Tally
    recorded: set[str] = field(default_factory=set)

    def kwargs(self) -> dict[str, Any]:
        """Return how a case is sent."""
        base = f"http://{LOOPBACK}:{self.stack.atm.port}"
        return {"base_url": base, "auth": Signed(self.stack.atm), "allow_redirects": False}

    def judge(self, case: Case, response: Response) -> None:
        """Count the case, and keep what is wrong with its answer."""
        told = _told(response)
        label = case.operation.label
        self.tally.cases += 1
        self.tally.saw(f"{label} {response.status_code} {told.get('code')}")
        faults = [*_undocumented(case, response), *_own_faults(case, response, told)]
        if told.get("code") == "E905":
            faults += self._rows_of_malformed(case)
        else:
            self._remember(case, response, told)
        for fault in faults:
            self.tally.found(f"{label} {response.status_code}: {fault}", _shown(response))

    def _remember(self, case: Case, response: Response, told: dict[str, Any]) -> None:
        """Note the GUID if the answer says that the ledger holds it."""
        is_recorded = told.get("state") is not None or "attempt" in response.headers
        if is_recorded and case.method == "POST":
            # The local core repeats the GUID, too; an answer of it that is no JSON does not.
            self.recorded.add(told.get("guid") or next(_guids(case)))

    def _rows_of_malformed(self, case: Case) -> Iterator[str]:
        for guid in _guids(case):
            if guid not in self.recorded and self.stack.ledger_row(guid) is not None:
                yield "a malformed request (E905) has a row"


def _shown(response: Response) -> str:
    """Return the request as it went out, and what came back."""
    sent = response.request
    headers = {name: value for name, value in sent.headers.items() if name != "Authorization"}
    told = f"{response.status_code} {response.content[:400]!r}"
    return f"{sent.method} {sent.path_url} {headers} {sent.body!r}\n  answered {told}"


def _told(response: Response) -> dict[str, Any]:
    try:
        document = json.loads(response.content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _undocumented(case: Case, response: Response) -> Iterator[str]:
    """Return what the page does not say of this answer."""
    if response.status_code == 403 and b'"__type"' in response.content:
        return  # The emulator's gate has words of its own; that of AWS answers with a message.
    try:
        case.validate_response(response, checks=_checks())
    except FailureGroup as group:
        for failure in group.exceptions:
            yield f"{type(failure).__name__}: {str(failure).splitlines()[0]}"
    named = {name.lower() for name in response.headers} - TRANSPORT
    unknown = sorted(named - headers_of(case.path, case.method, response.status_code))
    yield from (
        f"the header {name} is not written down"
        for name in unknown
        if not name.startswith(GATEWAYS)
    )


def _own_faults(case: Case, response: Response, told: dict[str, Any]) -> Iterator[str]:
    is_of_core = "attempt" in response.headers and case.operation.label == "POST /transactions"
    if response.status_code >= 500 and not is_of_core:  # noqa: SIM102 - two different questions
        if told.get("code") not in IN_DOUBT_OR_NOT_SENT:
            yield "a 5xx that is neither E901, E902 nor E906"
    if not is_of_core and any(word in response.content for word in INSIDE):
        yield "the answer shows the inside"


def _guids(case: Case) -> Iterator[str]:
    """Return every GUID that the request could have meant, each in its one spelling."""
    body = case.body if isinstance(case.body, dict) else {}
    key = str(case.headers.get("Idempotency-Key", "")).strip(' \t"')
    for guid in (key, body.get("guid"), case.path_parameters.get("guid")):
        try:
            yield check_guid(guid)
        except MalformedError:
            continue

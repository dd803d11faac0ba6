"""Channels: identities of the local stack, and a client that signs their requests.

A client keeps no connection and no state, so any number of threads may share one. It never sends
anything twice by itself: what a test counts is what it asked for.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import quote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as Signer

from local.emulator import ACCOUNT, REGION, Credentials, Emulator
from local.ports import LOOPBACK

# Longer than the HTTP API's own limit of 30 s, so that its answer is seen and not our own timeout.
_ANSWER_S: Final = 35.0
_SERVICE: Final = "execute-api"


@dataclass(frozen=True)
class Identity:
    """An IAM user of the local account; `user_id` is what an event calls `userId`."""

    name: str
    user_id: str
    credentials: Credentials


@dataclass(frozen=True)
class Reply:
    """An answer as it came; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the body's JSON object; raises ValueError when it is none."""
        document = json.loads(self.body)
        if not isinstance(document, dict):
            raise ValueError(f"the answer with status {self.status} is no JSON object")  # noqa: TRY004
        return document

    @property
    def code(self) -> str | None:
        """The answer's code: its JSON `code`, else X-Response-Code, else None."""
        try:
            code = self.json().get("code")
        except ValueError:
            code = None
        return code if isinstance(code, str) else self.headers.get("x-response-code")


@dataclass(frozen=True)
class Channel:
    """Sends signed requests of one identity to the local HTTP front."""

    name: str
    credentials: Credentials = field(repr=False)
    host: str
    port: int

    def post(
        self,
        guid: str | None,
        body: bytes = b"{}",
        *,
        content_type: str = "application/json",
        operation: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Submit a transaction; without a guid no Idempotency-Key is sent."""
        sent = {"Content-Type": content_type}
        sent |= {} if guid is None else {"Idempotency-Key": guid}
        sent |= {} if operation is None else {"X-Operation": operation}
        return self.request("POST", "/transactions", body, sent | dict(headers or {}))

    def status(self, guid: str) -> Reply:
        """Ask for a transaction's state; changes nothing."""
        return self.request("GET", f"/transactions/{quote(guid, safe='')}")

    def cancel(self, guid: str) -> Reply:
        """Ask for a transaction to be cancelled."""
        return self.request("POST", f"/transactions/{quote(guid, safe='')}/cancel")

    def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send one request, every header of it signed, and return its whole answer."""
        signed = self.signature(method, path, body, headers or {})
        return self.exchange(method, path, [f"{k}: {v}".encode() for k, v in signed.items()], body)

    def raw(self, method: str, path: str, lines: Sequence[bytes], body: bytes = b"") -> Reply:
        """Send header lines exactly as given, beside a valid signature that does not cover them."""
        signed = self.signature(method, path, body, {})
        own = [f"{name}: {value}".encode() for name, value in signed.items()]
        return self.exchange(method, path, [*own, *lines], body)

    def signature(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the headers with the host, the date and a signature over all of them."""
        request = AWSRequest(
            method=method,
            url=f"http://{self.host}{path}",
            data=body,
            headers={"Host": self.host, **headers},
        )
        signer = Signer(self.credentials.key, self.credentials.secret)
        SigV4Auth(signer, _SERVICE, REGION).add_auth(request)
        return dict(request.headers.items())

    def exchange(self, method: str, path: str, lines: Sequence[bytes], body: bytes) -> Reply:
        """Write one request to a fresh connection and read one answer; raises OSError."""
        head = [f"{method} {path} HTTP/1.1".encode(), *lines, b"Connection: close"]
        if body or method == "POST":
            head.append(b"Content-Length: %d" % len(body))
        with socket.create_connection((LOOPBACK, self.port), timeout=_ANSWER_S) as connection:
            connection.sendall(b"\r\n".join([*head, b"", b""]) + body)
            answer = HTTPResponse(connection, method=method)
            answer.begin()
            content = answer.read()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status, headers, content)


def create_identity(emulator: Emulator, name: str) -> Identity:
    """Create an IAM user that may do nothing yet."""
    iam = emulator.client("iam")
    user = iam.create_user(UserName=name)["User"]
    key = iam.create_access_key(UserName=name)["AccessKey"]
    credentials = Credentials(key["AccessKeyId"], key["SecretAccessKey"])
    return Identity(name, user["UserId"], credentials)


def allow(emulator: Emulator, identity: Identity, statements: Sequence[Mapping[str, Any]]) -> None:
    """Let the identity do what the statements say."""
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    emulator.client("iam").put_user_policy(
        UserName=identity.name, PolicyName="local", PolicyDocument=json.dumps(document)
    )


def invoke_statement(api_id: str) -> dict[str, Any]:
    """Return the one permission that a channel has: to call this API."""
    resource = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api_id}/*"
    return {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": resource}


def channel_for(identity: Identity, api_id: str, port: int) -> Channel:
    """Return the signing client of an identity."""
    host = f"{api_id}.execute-api.localhost:{port}"
    return Channel(identity.name, identity.credentials, host, port)

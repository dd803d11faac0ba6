"""The core's secret: read from Secrets Manager, checked, kept for a while.

Job: turn the secret into the headers and the TLS settings of a call to the core.
May import: strict_json; boto3 for the client that is passed in.
Protects: nothing is claimed for a call that could not be made (E906), and no word of the secret
reaches an error, a log or a file that stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from relayhub.strict_json import MalformedError, strict_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEEP_S: Final = (
    300.0  # A rotated secret is in force this soon; a busy hub reads it 12 times an hour.
)
FIELDS: Final = frozenset({"headers", "ca_pem", "client_cert_pem", "client_key_pem"})
# Headers that are the hub's own, decide where the message ends, or make others send it again:
# Go's HTTP client and some proxies resend a POST that bears an idempotency key.
RESERVED_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-attempt",
        "x-guid",
        "x-idempotency-key",
        "x-inquiry-id",
        "x-not-after",
        "x-operation",
    }
)
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110 5.6.2, token.
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")


class CredentialsError(Exception):
    """The core's secret cannot be used; says what is wrong with it, never what is in it."""


class SecretsClient(Protocol):
    """What is used of boto3's Secrets Manager client."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, object]:  # noqa: N803 (AWS's name)
        """Return the secret's current version."""


@dataclass(frozen=True)
class Access:
    """What a call to the core needs beside the request; its repr tells nothing of it."""

    headers: tuple[tuple[str, str], ...] = field(repr=False)
    tls: ssl.SSLContext = field(repr=False)


class Credentials:
    """The secret, read at most once per 300 s; an empty ARN means that the core asks for none."""

    def __init__(
        self,
        secret_arn: str,
        client: SecretsClient | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        keep_s: float = KEEP_S,
    ) -> None:
        self._secret_arn = secret_arn
        self._client = client
        self._monotonic = monotonic
        self._keep_s = keep_s
        self._kept: tuple[float, Access] | None = None

    def current(self) -> Access:
        """Return what was read within the last 300 s, reading anew if need be.

        Raises CredentialsError; an older one is not used instead, since it may be revoked.
        """
        now_s = self._monotonic()
        if self._kept is not None and now_s - self._kept[0] < self._keep_s:
            return self._kept[1]
        access = access_of(self._read()) if self._secret_arn else access_of("{}")
        self._kept = (now_s, access)
        return access

    def _read(self) -> str:
        if self._client is None:
            raise CredentialsError("the core's secret is set, but no Secrets Manager client is")
        try:
            found = self._client.get_secret_value(SecretId=self._secret_arn)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "an unknown error")
            raise CredentialsError(f"Secrets Manager refused the core's secret: {code}") from None
        except BotoCoreError as error:
            kind = type(error).__name__
            raise CredentialsError(f"Secrets Manager could not be asked: {kind}") from None
        text = found.get("SecretString")
        if not isinstance(text, str):
            raise CredentialsError("the core's secret has no SecretString")
        return text


def secrets_client(*, endpoint_url: str | None = None) -> SecretsClient:
    """Return a client whose worst case (2 attempts of 1 + 2 s) fits before a claim."""
    config = Config(
        connect_timeout=1,
        read_timeout=2,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    client: SecretsClient = boto3.client("secretsmanager", config=config, endpoint_url=endpoint_url)
    return client


def access_of(secret: str) -> Access:
    """Return what the secret's JSON says; raises CredentialsError."""
    try:
        document = strict_json(secret.encode())
    except (MalformedError, UnicodeError):
        raise CredentialsError("the core's secret is not JSON with unique names") from None
    if not isinstance(document, dict):
        raise CredentialsError("the core's secret is not a JSON object")
    if not FIELDS.issuperset(document):
        known = ", ".join(sorted(FIELDS))
        raise CredentialsError(f"the core's secret has a field that is none of {known}")
    return Access(headers=_headers(document.get("headers", {})), tls=_tls(document))


def _headers(found: object) -> tuple[tuple[str, str], ...]:
    """Return the headers, checked here so that no bad one is met once bytes have left."""
    if not isinstance(found, dict):
        raise CredentialsError("headers in the core's secret is not a JSON object")
    pairs = []
    for place, (name, value) in enumerate(found.items(), start=1):
        if not _NAME.fullmatch(name):
            raise CredentialsError(f"header {place} in the core's secret has an illegal name")
        if name.lower() in RESERVED_HEADERS:
            raise CredentialsError(
                f"header {place} in the core's secret is {name.lower()}: not its"
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise CredentialsError(
                f"header {place} in the core's secret has a value that is not printable ASCII"
            )
        pairs.append((name, value))
    if len({name.lower() for name, _ in pairs}) < len(pairs):
        raise CredentialsError("headers in the core's secret has one name in two spellings")
    return tuple(pairs)


def _pem(document: dict[str, object], name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str):
        raise CredentialsError(f"{name} in the core's secret is not a string")
    return value


def _tls(document: dict[str, object]) -> ssl.SSLContext:
    """Return the TLS settings: at least 1.2, the secret's own authority alone when it names one."""
    ca_pem = _pem(document, "ca_pem")
    try:
        tls = ssl.create_default_context(cadata=ca_pem or None)
    except (ssl.SSLError, ValueError):
        raise CredentialsError("ca_pem in the core's secret is no PEM certificate") from None
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_alpn_protocols(["http/1.1"])
    certificate, key = _pem(document, "client_cert_pem"), _pem(document, "client_key_pem")
    if bool(certificate) != bool(key):
        raise CredentialsError(
            "the core's secret has only one of client_cert_pem and client_key_pem"
        )
    if certificate:
        _load_client(tls, certificate, key)
    return tls


def _load_client(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load the hub's own certificate through a file of mode 0600 that is gone at once.

    The ssl module reads a private key from a file only.
    """
    handle, path = tempfile.mkstemp(prefix="core-", suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{certificate}\n{key}\n")
        # An empty password makes an encrypted key an error; without one OpenSSL would ask for it.
        tls.load_cert_chain(path, password="")
    except (OSError, ValueError):
        raise CredentialsError(
            "client_cert_pem and client_key_pem in the core's secret are no usable PEM pair"
        ) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
    # Some servers ask for the certificate only after the handshake (TLS 1.3).
    tls.post_handshake_auth = True

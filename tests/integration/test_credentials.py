"""The core's secret: read, checked, kept 300 s, never told."""

from __future__ import annotations

import json
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
import trustme
from botocore.exceptions import ClientError, ReadTimeoutError
from cryptography.hazmat.primitives import serialization
from moto import mock_aws

from relayhub.core import Answered, Doubt, NotSent
from relayhub.credentials import (
    KEEP_S,
    RESERVED_HEADERS,
    Credentials,
    CredentialsError,
    access_of,
    secrets_client,
)
from tests.integration.core_kit import (
    FakeSecrets,
    answer,
    answering,
    authority,
    core_at,
    request_of,
    server_tls,
    trusting_secret,
)
from tests.integration.faulty_server import FaultyServer

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "hunter2"


def client_pair(name: str = "hub.example") -> dict[str, str]:
    """Return a client certificate of the test's authority and its key."""
    made = authority().issue_cert(name)
    certificates = "".join(blob.bytes().decode() for blob in made.cert_chain_pems)
    return {
        "client_cert_pem": certificates,
        "client_key_pem": made.private_key_pem.bytes().decode(),
    }


class Clock:
    """A monotonic clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now_s


def test_the_secret_is_read_once_in_300_s() -> None:
    """A busy hub does not ask Secrets Manager for every transaction."""
    secrets, clock = FakeSecrets({"headers": {"A": "1"}}), Clock()
    credentials = Credentials("arn:core", secrets, monotonic=clock)
    first = credentials.current()
    clock.now_s += KEEP_S - 0.001
    assert credentials.current() is first
    assert secrets.reads == 1
    secrets.text = '{"headers": {"A": "2"}}'
    clock.now_s += 0.001
    assert credentials.current().headers == (("A", "2"),)
    assert secrets.reads == 2


def test_an_old_secret_is_not_used_when_the_new_one_cannot_be_read() -> None:
    """It may have been revoked; nothing is claimed instead, and the next read may do."""
    secrets, clock = FakeSecrets({}), Clock()
    credentials = Credentials("arn:core", secrets, monotonic=clock)
    credentials.current()
    clock.now_s += KEEP_S
    secrets.error = ReadTimeoutError(endpoint_url="https://secrets")
    with pytest.raises(CredentialsError, match="ReadTimeoutError"):
        credentials.current()
    secrets.error = None
    credentials.current()


def test_without_an_arn_no_secret_is_asked_for() -> None:
    """A core without credentials is called with none, under the platform's authorities."""
    access = Credentials("").current()
    assert access.headers == ()
    assert access.tls.verify_mode is ssl.CERT_REQUIRED
    assert access.tls.check_hostname


def test_a_refusal_is_named_without_its_message() -> None:
    """The code says what an operator must mend; the message can bear more."""
    secrets = FakeSecrets({})
    secrets.error = ClientError(
        {"Error": {"Code": "AccessDeniedException", "Message": MARK}}, "GetSecretValue"
    )
    with pytest.raises(CredentialsError, match="AccessDeniedException") as caught:
        Credentials("arn:core", secrets).current()
    assert MARK not in str(caught.value)


def test_an_arn_without_a_client_is_an_error() -> None:
    """A wiring fault ends before the claim as well."""
    with pytest.raises(CredentialsError, match="client"):
        Credentials("arn:core").current()


BAD_SECRETS: tuple[tuple[str, str | Mapping[str, object], str], ...] = (
    ("not_JSON", MARK, "not JSON"),
    ("not_an_object", json.dumps([MARK]), "not a JSON object"),
    ("the_same_field_twice", '{"headers": {}, "headers": {"A": "hunter2"}}', "unique"),
    ("half_a_character", '{"ca_pem": "\ud800"}', "not JSON"),
    ("unknown_field", {"password": MARK}, "none of ca_pem, client_cert_pem"),
    ("headers_no_object", {"headers": [MARK]}, "headers"),
    ("value_no_string", {"headers": {"A": 1}}, "header 1"),
    ("value_with_CRLF", {"headers": {"A": "1", "B": f"{MARK}\r\nX: 1"}}, "header 2"),
    ("value_with_LF", {"headers": {"A": f"{MARK}\n"}}, "header 1"),
    ("value_folded", {"headers": {"A": f"{MARK}\r\n b"}}, "header 1"),
    ("value_empty", {"headers": {"A": ""}}, "header 1"),
    ("value_not_ASCII", {"headers": {"A": f"{MARK}é"}}, "header 1"),
    ("value_with_a_control", {"headers": {"A": f"{MARK}\x00"}}, "header 1"),
    ("name_with_a_colon", {"headers": {f"{MARK}:": "1"}}, "illegal name"),
    ("name_empty", {"headers": {"": MARK}}, "illegal name"),
    ("name_in_two_cases", {"headers": {"Token": MARK, "token": MARK}}, "two spellings"),
    ("ca_no_PEM", {"ca_pem": MARK}, "ca_pem"),
    ("ca_no_string", {"ca_pem": 1}, "ca_pem"),
    ("certificate_alone", {"client_cert_pem": MARK}, "only one of"),
    ("key_alone", {"client_key_pem": MARK}, "only one of"),
    ("pair_no_PEM", {"client_cert_pem": MARK, "client_key_pem": MARK}, "no usable PEM pair"),
    ("pair_not_ASCII", {"client_cert_pem": "é", "client_key_pem": MARK}, "no usable PEM pair"),
    (
        "pair_that_does_not_match",
        {**client_pair(), "client_key_pem": client_pair()["client_key_pem"]},
        "no usable PEM pair",
    ),
)


@pytest.mark.parametrize(
    ("secret", "named"), [pytest.param(text, named, id=name) for name, text, named in BAD_SECRETS]
)
def test_a_bad_secret_is_named_and_not_told(
    secret: str | Mapping[str, object], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what is wrong, bears nothing of the content, and no file stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = secret if isinstance(secret, str) else json.dumps(secret)
    with pytest.raises(CredentialsError, match=named) as caught:
        access_of(text)
    assert MARK not in str(caught.value)
    assert caught.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(RESERVED_HEADERS))
def test_the_secret_may_not_set_what_is_the_hubs_own(name: str) -> None:
    """Neither our headers, nor framing, nor an idempotency key that makes others resend."""
    with pytest.raises(CredentialsError, match=name):
        access_of(json.dumps({"headers": {name.title(): "1"}}))


def test_everything_that_the_hub_sends_is_reserved() -> None:
    """A new header of the hub's cannot be forgotten in the list."""
    sent = set()
    for call in ("send", "ask"):
        with FaultyServer(answering(answer())) as server:
            core = core_at(server.url)
            if call == "send":
                core.send(request_of(), within_s=2)
            else:
                core.ask("a", inquiry_id="1", within_s=2)
        sent |= {name.lower() for name, _ in server.seen.requests[0].headers}
    assert sent <= RESERVED_HEADERS


def test_access_tells_nothing_of_itself() -> None:
    """A log line that prints it by mistake shows no header."""
    assert MARK not in repr(access_of(json.dumps({"headers": {"Authorization": MARK}})))


def test_old_tls_is_off() -> None:
    """TLS 1.2 is the least."""
    assert access_of("{}").tls.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("pair", [client_pair(), {}], ids=["with_pair", "without_pair"])
def test_the_core_sees_the_hubs_certificate(
    pair: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutual TLS works from the secret alone; the key's file has mode 0600 and is gone at once."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tls = server_tls()
    tls.verify_mode = ssl.CERT_REQUIRED
    authority().configure_trust(tls)
    loads = watch_loads(monkeypatch)
    with FaultyServer(answering(answer()), tls=tls) as server:
        outcome = core_at(server.url, secret={**trusting_secret(), **pair}).send(
            request_of(), within_s=2
        )
    # In TLS 1.3 the client is done before the server looks at its certificate: a doubt.
    assert isinstance(outcome, Answered if pair else Doubt | NotSent)
    assert len(server.seen.requests) == bool(pair)
    # Without a password, even an empty one, OpenSSL would ask the terminal for one.
    assert loads == ([(0o600, {"password": ""})] if pair else [])
    assert list(tmp_path.iterdir()) == []


def watch_loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, dict[str, str]]]:
    """Return a list that gets the mode of every file a key is loaded from, and the options."""
    loads: list[tuple[int, dict[str, str]]] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, path: str, **options: str) -> None:
        loads.append((Path(path).stat().st_mode & 0o777, options))
        load(context, path, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    return loads


def test_a_key_under_a_password_is_refused_and_asks_nobody() -> None:
    """OpenSSL would ask for the password on the terminal and hang."""
    pair = client_pair()
    key = serialization.load_pem_private_key(pair["client_key_pem"].encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(CredentialsError, match="no usable PEM pair"):
        access_of(json.dumps({**pair, "client_key_pem": locked.decode()}))


@mock_aws
def test_the_secret_is_read_from_secrets_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real client, with its explicit timeouts, reads the secret by its ARN."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    made = boto3.client("secretsmanager").create_secret(
        Name="core", SecretString=json.dumps({"headers": {"Authorization": "Basic eDp5"}})
    )
    client = secrets_client()
    assert Credentials(made["ARN"], client).current().headers == (("Authorization", "Basic eDp5"),)
    with pytest.raises(CredentialsError, match="ResourceNotFoundException"):
        Credentials(made["ARN"] + "x", client).current()


@mock_aws
def test_a_binary_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret without text is a fault of its own."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    made = boto3.client("secretsmanager").create_secret(Name="core", SecretBinary=b"{}")
    with pytest.raises(CredentialsError, match="SecretString"):
        Credentials(made["ARN"], secrets_client()).current()


def test_a_strangers_certificate_authority_is_not_enough() -> None:
    """The hub's pair is of no use to a server that the secret's authority did not sign."""
    with FaultyServer(answering(answer()), tls=server_tls(issuer=trustme.CA())) as server:
        secret = {**trusting_secret(), **client_pair()}
        outcome = core_at(server.url, secret=secret).send(request_of(), within_s=2)
    assert isinstance(outcome, NotSent)

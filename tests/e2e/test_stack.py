"""What the local stack enforces: signatures, permissions, roles, limits; and what it passes on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.channels import Channel, Reply
from local.core_client import CoreControl
from local.emulator import Credentials
from local.stack import RELAY, SHORT_LIMITS, Stack
from local.stack_operator import json_lines

pytestmark = pytest.mark.e2e

TRANSFER = b'{"from":"A001","to":"A002","amount":100}'
OCTETS = "application/octet-stream"
PATH = "/transactions"


def _lines(headers: dict[str, str]) -> list[bytes]:
    return [f"{name}: {value}".encode() for name, value in headers.items()]


def _unsigned(channel: Channel, guid: str) -> Reply:
    headers = {"Host": channel.host, "Idempotency-Key": guid}
    return channel.exchange("POST", PATH, _lines(headers), TRANSFER)


def _with_credentials(channel: Channel, guid: str, credentials: Credentials) -> Reply:
    return replace(channel, credentials=credentials).post(guid, TRANSFER)


def _unknown_key(channel: Channel, guid: str) -> Reply:
    return _with_credentials(channel, guid, Credentials("AKIAUNKNOWN000000001", "secret"))


def _wrong_secret(channel: Channel, guid: str) -> Reply:
    return _with_credentials(channel, guid, Credentials(channel.credentials.key, "secret"))


def _changed_body(channel: Channel, guid: str) -> Reply:
    signed = channel.signature("POST", PATH, TRANSFER, {"Idempotency-Key": guid})
    return channel.exchange("POST", PATH, _lines(signed), TRANSFER.replace(b"100", b"999"))


def _changed_guid(channel: Channel, guid: str) -> Reply:
    signed = channel.signature("POST", PATH, TRANSFER, {"Idempotency-Key": "another"})
    changed = signed | {"Idempotency-Key": guid}
    return channel.exchange("POST", PATH, _lines(changed), TRANSFER)


@pytest.mark.parametrize(
    "send",
    [_unsigned, _unknown_key, _wrong_secret, _changed_body, _changed_guid],
    ids=lambda send: send.__name__.strip("_"),
)
def test_a_request_without_a_valid_signature_never_reaches_the_function(
    stack: Stack, core: CoreControl, atm: Channel, send: Callable[[Channel, str], Reply]
) -> None:
    """The front refuses it: no line in the function's log, no row, nothing at the core."""
    guid = f"forged-{send.__name__.strip('_')}"
    before = len(stack.function_logs())
    reply = send(atm, guid)
    assert reply.status == 403
    assert len(stack.function_logs()) == before
    assert stack.ledger_row(guid) is None
    assert core.counts(guid) == {}


def test_a_channel_without_permission_is_refused_before_the_function(
    stack: Stack, core: CoreControl
) -> None:
    """A good signature of an identity that may not call the API is not enough."""
    before = len(stack.function_logs())
    reply = stack.stranger("stranger").post("stranger-1", TRANSFER)
    assert reply.status == 403
    assert len(stack.function_logs()) == before
    assert core.counts("stranger-1") == {}


def test_a_channels_request_is_executed_and_its_row_bears_the_channels_name(
    stack: Stack, core: CoreControl, atm: Channel, app: Channel
) -> None:
    """The identity that signed becomes the channel, and another channel does not see the row."""
    reply = atm.post("named-1", TRANSFER, operation="transfer")
    assert (reply.status, reply.code) == (200, "0000")
    assert core.counts("named-1")["named-1"].executed == 1
    assert (stack.ledger_row("named-1") or {})["channel"] == "atm"
    assert atm.status("named-1").status == 200
    assert app.status("named-1").status == 404


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("dynamodb", lambda client, stack: client.scan(TableName=stack.operator.table)),
        ("lambda", lambda client, stack: client.invoke(FunctionName=stack.name_of(RELAY))),
        ("iam", lambda client, _stack: client.list_users()),
    ],
    ids=["ledger", "function", "identities"],
)
def test_a_channel_may_call_the_api_and_nothing_else(
    stack: Stack, atm: Channel, service: str, call: Callable[[Any, Stack], object]
) -> None:
    """A channel's key opens neither the ledger nor the function itself."""
    client = stack.emulator.client(service, atm.credentials)
    with pytest.raises(ClientError) as refused:
        call(client, stack)
    assert "AccessDenied" in refused.value.response["Error"]["Code"]


def _role_of_worker(stack: Stack) -> Credentials:
    """Return the credentials that a running process of the relay was given."""
    entries = Path(f"/proc/{stack.workers()[0]}/environ").read_bytes().split(b"\0")
    found = dict(entry.decode().split("=", 1) for entry in entries if b"=" in entry)
    return Credentials(
        found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"], found["AWS_SESSION_TOKEN"]
    )


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads a process's environment")
def test_the_relays_role_reads_and_writes_rows_but_cannot_delete_or_list_them(
    stack: Stack, atm: Channel
) -> None:
    """The function runs under the template's role: no code in it could lose a row."""
    atm.post("kept-1", TRANSFER)
    role = _role_of_worker(stack)
    client = stack.emulator.client("dynamodb", role)
    key = {"TableName": stack.operator.table, "Key": {"guid": {"S": "kept-1"}}}
    assert client.get_item(**key)["Item"]["state"]["S"] == "DONE"
    table = {"TableName": stack.operator.table}
    for operation, arguments in (
        (client.delete_item, key),
        (client.scan, table),
        (client.update_table, table | {"DeletionProtectionEnabled": False}),
    ):
        with pytest.raises(ClientError) as refused:
            operation(**arguments)
        assert "AccessDenied" in refused.value.response["Error"]["Code"]
    assert stack.ledger_row("kept-1") is not None


def test_the_function_has_the_templates_timeout_and_the_chosen_limits(stack: Stack) -> None:
    """What was chosen for this stack arrives at the function, as a deploy would bring it there."""
    client = stack.emulator.client("lambda")
    found = client.get_function_configuration(FunctionName=stack.name_of(RELAY))
    assert found["Timeout"] == int(SHORT_LIMITS["RelayTimeoutS"])
    variables = found["Environment"]["Variables"]
    assert variables["CORE_DEADLINE_S"] == SHORT_LIMITS["CoreDeadlineS"]
    assert variables["CORE_URL"] == stack.core_url


def test_rows_expire_by_the_attribute_that_the_template_names(stack: Stack) -> None:
    """The emulator leaves the TTL out of the template, so it was set through the API."""
    client = stack.emulator.client("dynamodb", stack.operator.credentials)
    found = client.describe_time_to_live(TableName=stack.operator.table)["TimeToLiveDescription"]
    assert found == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}


def test_every_byte_of_a_request_and_of_an_answer_arrives_unharmed(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """All 256 byte values go in as they are, and an answer that is no UTF-8 comes out the same."""
    body = bytes(range(256))
    atm.post("octets-1", body, content_type=OCTETS)
    assert (stack.ledger_row("octets-1") or {})["request"] == body
    core.set_faults([{"kind": "shift_jis", "guid": "octets-2"}])
    first, again = (atm.post("octets-2", TRANSFER) for _ in range(2))
    assert "振込完了".encode("shift_jis") in first.body
    assert (again.status, again.body) == (first.status, first.body)


def test_an_answer_too_large_for_its_row_is_replayed_from_the_bucket(
    core: CoreControl, atm: Channel
) -> None:
    """500 KB come back the second time byte for byte, without another execution."""
    core.set_faults([{"kind": "big", "guid": "large-1"}])
    first, again = (atm.post("large-1", TRANSFER) for _ in range(2))
    assert len(first.body) == 500_000
    assert (again.status, again.body) == (first.status, first.body)
    assert core.counts("large-1")["large-1"].executed == 1


def test_header_lines_arrive_as_they_were_sent(atm: Channel) -> None:
    """Two keys in one request reach the hub, which refuses them."""
    keys = [b"Idempotency-Key: raw-1", b"Idempotency-Key: raw-2"]
    reply = atm.raw("POST", PATH, [*keys, b"Content-Type: application/json"], TRANSFER)
    assert (reply.status, reply.code) == (400, "E905")


def test_what_the_function_logs_and_counts_can_be_read(stack: Stack, atm: Channel) -> None:
    """Log lines and metrics (EMF) are kept, by GUID."""
    atm.post("logged-1", TRANSFER)
    lines = list(json_lines(stack.function_logs()))
    named = [line for line in lines if line.get("guid") == "logged-1"]
    assert [(line["message"], line.get("event")) for line in named] == [
        ("step", "claimed"),
        ("step", "answered"),
        ("answered", None),
    ]
    assert any("_aws" in line for line in lines)


def test_a_killed_process_of_the_function_is_replaced_at_the_next_call(
    stack: Stack, atm: Channel
) -> None:
    """A SIGKILL ends the processes at once; the stack goes on."""
    atm.status("killed-1")
    killed = stack.kill_worker()
    assert killed
    assert not stack.workers()
    assert atm.status("killed-1").status == 404
    assert stack.workers()


def test_warming_starts_as_many_processes_as_are_asked_for(stack: Stack) -> None:
    """Calls that are made to wait for each other need a process each."""
    assert stack.warm(4) >= 4

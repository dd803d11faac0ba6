"""The outcome of a call that could not be written, and answers too large for their row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from relayhub.core import Answered, Doubt, NotSent, SendOutcome
from relayhub.message import Answer
from relayhub.states import State
from tests.emulated import Fault, client, fails
from tests.world import BUCKET, EXECUTED, REFUSED, START_MS, World, document, never_arrives, refused

FAULTS = [
    pytest.param([refused("ThrottlingException")] * 2, id="throttled"),
    pytest.param([refused("AccessDeniedException")], id="denied"),
    pytest.param([refused("InternalServerError", 500)] * 2, id="server_fault"),
    pytest.param([never_arrives] * 2, id="no_answer"),
    pytest.param([fails(EndpointConnectionError(endpoint_url="http://x"))] * 2, id="no_connection"),
]


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("answer", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_an_answer_that_cannot_be_stored_is_told_all_the_same(
    world: World, faults: list[Fault], answer: Answer
) -> None:
    """The channel gets the core's answer, the row stays SENT, and a resend does not send."""
    world.core.outcomes.append(Answered(answer))
    world.dynamo.faults["update_item"] += faults
    reply = world.post()
    assert (reply.status, reply.body, reply.code) == (answer.status, answer.body, answer.code)
    assert "Idempotent-Replayed" not in reply.headers
    assert world.held().state is State.SENT
    assert (world.post().code, len(world.core.sent)) == ("E903", 1)
    assert world.noted("not_stored") == 1


@pytest.mark.parametrize("faults", FAULTS)
def test_a_refusal_that_is_not_stored_is_not_told_where_the_core_forgets_it(
    make_world: Callable[..., World], faults: list[Fault]
) -> None:
    """Its inquiry would say NOT_FOUND, and the request would be sent again: so it is in doubt."""
    world = make_world(core_keeps_refusals=False)
    world.core.outcomes.append(Answered(REFUSED))
    world.dynamo.faults["update_item"] += faults
    reply = world.post()
    assert (reply.status, reply.code) == (504, "E901")
    assert (world.held().state, len(world.core.sent)) == (State.SENT, 1)


def test_an_execution_that_is_not_stored_is_told_also_where_refusals_are_forgotten(
    make_world: Callable[..., World],
) -> None:
    """Every core's inquiry knows what it executed."""
    world = make_world(core_keeps_refusals=False)
    world.dynamo.faults["update_item"] += [never_arrives] * 2
    assert world.post().code == "0000"


def test_a_refusal_that_is_stored_is_told_also_where_the_core_forgets_it(
    make_world: Callable[..., World],
) -> None:
    """The ledger remembers it."""
    world = make_world(core_keeps_refusals=False)
    world.core.outcomes.append(Answered(REFUSED))
    assert (world.post().code, world.post().code) == ("B201", "B201")


UNSTORED: list[Any] = [
    pytest.param(NotSent("connect_refused"), id="not_sent"),
    pytest.param(Doubt("no_answer", aborted=True), id="doubt"),
]


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("outcome", UNSTORED)
def test_any_other_outcome_that_is_not_stored_is_in_doubt(
    world: World, outcome: SendOutcome, faults: list[Fault]
) -> None:
    """Not even "nothing left" is told: nobody but this function would know it."""
    world.core.outcomes.append(outcome)
    world.dynamo.faults["update_item"] += faults
    reply = world.post()
    assert (reply.code, document(reply)["executed"]) == ("E901", "unknown")
    assert (world.held().state, world.hints()) == (State.SENT, [])
    assert world.noted("not_stored") == 1


LARGE = Answer(200, "application/json", b'{"code":"0000","pad":"' + b"x" * 500_000 + b'"}', "0000")


def test_a_large_answer_lies_in_the_bucket_under_its_claim_and_digest(world: World) -> None:
    """Key, length and digest stand in the row, the bytes do not."""
    world.core.outcomes.append(Answered(LARGE))
    assert world.post().body == LARGE.body
    row, digest = world.held(), hashlib.sha256(LARGE.body).hexdigest()
    key = f"G-1/claim-1/{digest}"
    assert row.response_object == {"key": key, "bytes": len(LARGE.body), "sha256": digest}
    assert (row.state, row.response) == (State.DONE, None)
    assert client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read() == LARGE.body
    assert world.post().body == LARGE.body
    assert (world.sqs.calls, world.s3.calls) == ([], ["put_object", "get_object"])


def test_an_answer_that_fits_never_touches_the_bucket(world: World) -> None:
    """A plain transaction is two requests, to DynamoDB alone."""
    world.post()
    world.post()
    assert (world.s3.calls, world.sqs.calls) == ([], [])


@pytest.mark.parametrize("is_large", [False, True], ids=["fits", "one_byte_more"])
def test_a_row_takes_what_it_has_room_for(
    make_world: Callable[..., World], *, is_large: bool
) -> None:
    """Up to ROW_BYTES_MAX in all; the item never comes near DynamoDB's 400 KB."""
    world = make_world(row_bytes_max=10_000)
    world.kill("G-0")
    probe = Answer(200, "text/plain", b"x" * (9_000 if is_large else 8_000), "0000")
    world.core.outcomes.append(Answered(probe))
    world.post()
    assert (world.held().response_object is not None) == is_large


@pytest.mark.parametrize(
    "fault", [refused("AccessDenied", 403), refused("SlowDown", 503)], ids=["denied", "slow_down"]
)
def test_a_large_answer_that_cannot_be_put_is_told_and_the_row_stays_sent(
    world: World, fault: Fault
) -> None:
    """As with any answer that cannot be stored: told, and left to the resolver."""
    world.core.outcomes.append(Answered(LARGE))
    world.s3.faults["put_object"].append(fault)
    assert world.post().body == LARGE.body
    assert world.held().state is State.SENT
    assert (world.post().code, len(world.core.sent)) == ("E903", 1)
    assert world.dynamo.calls == ["put_item", "put_item"]


def test_a_large_answer_is_not_put_when_the_function_would_end_in_it(world: World) -> None:
    """The channel must get its answer before the platform ends the function."""
    world.core.during.append(lambda: world.clock.advance(19))
    world.core.outcomes.append(Answered(LARGE))
    assert world.post().body == LARGE.body
    assert (world.s3.calls, world.held().state) == ([], State.SENT)


def lose(world: World, key: str) -> None:
    """Delete the object."""
    del world
    client("s3").delete_object(Bucket=BUCKET, Key=key)


def alter(world: World, key: str) -> None:
    """Change one byte of the object."""
    del world
    client("s3").put_object(Bucket=BUCKET, Key=key, Body=LARGE.body[:-1] + b" ")


def cut(world: World, key: str) -> None:
    """Take the last byte off the object."""
    del world
    client("s3").put_object(Bucket=BUCKET, Key=key, Body=LARGE.body[:-1])


def deny(world: World, key: str) -> None:
    """Refuse the read."""
    del key
    world.s3.faults["get_object"].append(refused("AccessDenied", 403))


@pytest.mark.parametrize("harm", [lose, alter, cut, deny])
def test_an_unreadable_answer_is_told_by_its_code_and_never_fetched_anew(
    world: World, harm: Callable[[World, str], None]
) -> None:
    """The hub's own document with the row's code; the core is not called."""
    world.core.outcomes.append(Answered(LARGE))
    world.post()
    harm(world, f"G-1/claim-1/{hashlib.sha256(LARGE.body).hexdigest()}")
    reply = world.post()
    told = document(reply)
    assert (told["code"], told["executed"], told["state"]) == ("0000", "yes", "DONE")
    assert "Idempotent-Replayed" not in reply.headers
    assert (len(world.core.sent), world.noted("unreadable_answer")) == (1, 1)


@pytest.mark.parametrize("answer", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_a_done_row_expires_after_the_retention_in_seconds(world: World, answer: Answer) -> None:
    """Only now does the row bear TTL's attribute; never rounded down."""
    world.clock.ms += 1
    seen: list[int | None] = []
    world.core.during.append(lambda: seen.append(world.held().expires_at))
    world.core.outcomes.append(Answered(answer))
    world.post()
    row = world.held()
    assert seen == [None]
    assert row.expires_at == START_MS // 1000 + 1 + 30 * 86_400
    assert (row.due_at, row.open_shard) == (None, None)


@pytest.mark.parametrize("make", [World.kill, World.doubt, World.fail])
def test_an_open_row_never_bears_an_expiry(world: World, make: Callable[[World], object]) -> None:
    """TTL deletes what has it, whatever its state; an open row is in the index instead."""
    make(world)
    item = world.item()
    assert "expires_at" not in item
    assert item["open_shard"]["S"].startswith(item["state"]["S"] + "#")
    assert int(item["due_at"]["N"]) > START_MS

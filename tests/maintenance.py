"""What the tests of the maintenance functions share: runs of the functions, findings, rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from relayhub.core import CORE_UNREACHABLE, Finding
from relayhub.flows import purge, reprocess, resolve
from relayhub.flows.reprocess import Hint, Swept, Taken
from relayhub.ledger import Stored
from relayhub.message import Answer
from relayhub.replies import Reply
from relayhub.row import Row, index_key, shard_of, to_item
from relayhub.states import Code, Event, State, Verdict, Why
from tests.emulated import client
from tests.world import EXECUTED, TABLE, World, get_event

RUN_MS: Final = 60_000  # A maintenance function's whole time.
DAY_MS: Final = 86_400_000
NOT_FOUND: Final = Finding(Verdict.NOT_FOUND, None, "")
PROCESSING: Final = Finding(Verdict.PROCESSING, None, "")
AWAY: Final = Finding(Verdict.UNDECIDED, None, CORE_UNREACHABLE)
UNDECIDED: Final = Finding(Verdict.UNDECIDED, None, "not_json")


def processed(answer: Answer = EXECUTED) -> Finding:
    """Return the finding that the core has this answer."""
    return Finding(Verdict.PROCESSED, answer, "")


def resolver(world: World, *, left_ms: int = RUN_MS, **more: Any) -> resolve.Report:
    """Run the resolver."""
    return resolve.run(world.hub, world.clock() + left_ms, **more)


def resolve_at(world: World, ms: int, *findings: Finding, guid: str = "G-1") -> Row:
    """Turn the clock, make the row due, let the core find this, run; return the row."""
    world.clock.ms = ms
    world.edit(guid, due_at=ms)
    world.core.findings[:] = findings
    resolver(world)
    return world.held(guid)


def reprocessor(
    world: World, guid: str = "G-1", attempt: int | None = None, *, left_ms: int = RUN_MS
) -> Taken:
    """Hand the reprocessor one hint."""
    return reprocess.handle(world.hub, Hint(guid, attempt), world.clock() + left_ms)


def sweep(world: World, *, left_ms: int = RUN_MS) -> Swept:
    """Run the sweep that hints again."""
    return reprocess.sweep(world.hub, world.clock() + left_ms)


def purger(world: World, *, left_ms: int = 900_000, **more: Any) -> purge.Report:
    """Run the purger."""
    return purge.run(world.hub, world.clock() + left_ms, **more)


def cancel(world: World, guid: str = "G-1", channel: str = "atm") -> Reply:
    """Send a channel's cancel through the handler."""
    route = "POST /transactions/{guid}/cancel"
    path = f"/transactions/{guid}/cancel"
    return world.call({**get_event(guid, channel), "routeKey": route, "rawPath": path})


def accept(world: World, guid: str = "G-1", **changes: Any) -> Row:
    """Accept a request for later: a RECEIVED row, whose message is due in two minutes."""
    now_ms = world.clock()
    row = Row(
        guid=guid,
        state=State.RECEIVED,
        channel="atm",
        accepted_at=now_ms,
        updated_at=now_ms,
        operation="debit",
        fingerprint=b"f" * 32,
        request=b'{"amount":100}',
        request_type="application/json",
        valid_until=now_ms + DAY_MS,
        due_at=now_ms + 120_000,
    )
    made = world.hub.ledger.create(replace(row, **changes), Event.ACCEPTED, "relay")
    assert isinstance(made, Stored)
    return made.row


def events(world: World, guid: str = "G-1") -> list[str]:
    """Return what the row's history says has happened, in order."""
    return [str(entry["event"]) for entry in world.held(guid).history]


def failed_row(guid: str, now_ms: int, shards: int = 16) -> Row:
    """Return a row of a deferred request that the core never got."""
    return Row(
        guid=guid,
        state=State.FAILED,
        channel="atm",
        accepted_at=now_ms,
        updated_at=now_ms,
        request=guid.encode(),
        request_type="text/plain",
        code=Code.E902,
        why=Why.NOT_SENT,
        attempt=1,
        claim_id=f"first-{guid}",
        core="core",
        sent_at=now_ms,
        dead_at=now_ms + 25_000,
        ended_at=now_ms + 25_000,
        ask_after=now_ms + 90_000,
        valid_until=now_ms + DAY_MS,
        history=({"at": now_ms, "by": "relay", "event": Event.CLAIMED, "to": State.SENT},),
        open_shard=index_key(State.FAILED, shard_of(guid, shards)),
        due_at=now_ms + 10_000,
    )


def put_rows(rows: Iterable[Row]) -> None:
    """Put the rows past all rules, as if they had been there before."""
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append({"PutRequest": {"Item": to_item(row)}})
        if len(batch) == 25:
            client("dynamodb").batch_write_item(RequestItems={TABLE: batch})
            batch = []
    if batch:
        client("dynamodb").batch_write_item(RequestItems={TABLE: batch})


def items() -> list[dict[str, Any]]:
    """Return every item of the table, the project's own included."""
    pages = client("dynamodb").get_paginator("scan").paginate(TableName=TABLE)
    return [item for page in pages for item in page["Items"]]


def wipe() -> None:
    """Empty the table."""
    keys = [{"DeleteRequest": {"Key": {"guid": item["guid"]}}} for item in items()]
    for start in range(0, len(keys), 25):
        client("dynamodb").batch_write_item(RequestItems={TABLE: keys[start : start + 25]})


def hint_body(guid: str, attempt: int | None = None) -> str:
    """Return a hint as it stands in the queue."""
    return json.dumps({"guid": guid} if attempt is None else {"guid": guid, "attempt": attempt})

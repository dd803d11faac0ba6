"""A hundred thousand rows on the emulator: the purge takes the right ones, the resolver none."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from local.emulator import Emulator
from local.ports import free_ports
from local.stack import StackConfig
from relayhub.answers import AnswerStore
from relayhub.controls import Controls
from relayhub.flows import purge, resolve
from relayhub.hub import Hub
from relayhub.ledger import Ledger
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.row import Row, open_shard, to_item
from relayhub.settings import DAY_S, load
from relayhub.states import State
from relayhub.upkeep import Upkeep
from tests.e2e.conftest import LOGS
from tests.emulated import FaultyClient
from tests.world import ENVIRONMENT, TABLE, Clock, ScriptedCore
from tools import template

pytestmark = pytest.mark.e2e

NOW_MS: Final = 1_900_000_000_000
RUN_MS: Final = 900_000
BATCH: Final = 25  # DynamoDB's limit for one batch of puts.


class KilledError(BaseException):
    """The platform ends the function: nothing inside may catch it."""


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    """Return an emulator of the test's own, empty but for the ledger."""
    state = Path(tempfile.mkdtemp(prefix="relayhub-"))
    LOGS.mkdir(parents=True, exist_ok=True)
    started = Emulator.start(
        StackConfig().ministack, port=free_ports(1)[0], state=state, log=LOGS / "scale.log"
    )
    try:
        started.wait()
        started.client("dynamodb").create_table(**template.table(TABLE))
        yield started
    finally:
        started.child.stop()
        shutil.rmtree(state, ignore_errors=True)


def hub_on(dynamo: FaultyClient, emulator: Emulator) -> Hub:
    """Return a hub on the emulator's table, with a core that is never asked for."""
    settings = load(ENVIRONMENT)
    clock = Clock(NOW_MS)
    return Hub(
        settings=settings,
        ledger=Ledger(dynamo, TABLE, shards=settings.shards, on_step=lambda *_: None),
        upkeep=Upkeep(dynamo, TABLE, now_ms=clock, skew_s=settings.clock_skew_s),
        controls=Controls(dynamo, TABLE, now_ms=clock),
        core=ScriptedCore(clock),
        hints=HintQueue(emulator.client("sqs"), "none", "none"),
        intake=IntakeQueue(emulator.client("sqs"), "none", "none"),
        store=AnswerStore(emulator.client("s3"), "none"),
        now_ms=clock,
        chance=lambda: 0.0,
        note=lambda *_, **__: None,
    )


def fill(client: Any, items: Iterator[dict[str, Any]]) -> None:
    """Put items as they are, in batches."""
    while batch := list(itertools.islice(items, BATCH)):
        puts = [{"PutRequest": {"Item": item}} for item in batch]
        assert not client.batch_write_item(RequestItems={TABLE: puts}).get("UnprocessedItems")


def row_of(guid: str, state: State, *, age_s: int, expires_in_s: int | None = None) -> Row:
    """Return a row of that age; open ones are due in an hour, so that no resolver takes them."""
    at = NOW_MS - age_s * 1000
    row = Row(
        guid=guid,
        state=state,
        channel="atm",
        accepted_at=at,
        updated_at=at,
        request=b'{"amount":1}',
        code="0000" if state is State.DONE else None,
        expires_at=None if expires_in_s is None else NOW_MS // 1000 + expires_in_s,
        due_at=None if state is State.DONE else NOW_MS + 3_600_000,
    )
    return replace(row, open_shard=open_shard(row, 16))


def done(prefix: str, count: int, expires_in_s: int) -> Iterator[dict[str, Any]]:
    """Yield DONE rows that expire then; they differ in the GUID alone, so one is encoded."""
    item = to_item(row_of(prefix, State.DONE, age_s=60, expires_in_s=expires_in_s))
    for number in range(count):
        yield item | {"guid": {"S": f"{prefix}-{number}"}}


def guids(client: Any) -> set[str]:
    """Return every key of the table."""
    pages = client.get_paginator("scan").paginate(TableName=TABLE, ProjectionExpression="guid")
    return {item["guid"]["S"] for page in pages for item in page["Items"]}


def resolver_requests(dynamo: FaultyClient, hub: Hub) -> int:
    """Return how many requests one run of the resolver makes, the switches known."""
    hub.controls.switches()
    dynamo.calls.clear()
    report = resolve.run(hub, NOW_MS + 60_000)
    assert report.complete
    return len(dynamo.calls)


def test_a_hundred_thousand_rows(emulator: Emulator) -> None:
    """The purge deletes exactly what is over, though killed twice; the resolver's cost stays."""
    client = emulator.client("dynamodb")
    dynamo = FaultyClient(client, Clock(NOW_MS))
    hub = hub_on(dynamo, emulator)
    fill(client, done("kept", 1_000, DAY_S))
    at_a_thousand = resolver_requests(dynamo, hub)
    fill(client, done("more", 97_500, DAY_S))
    fill(client, done("over", 1_000, -1))
    old_s = 500 * DAY_S
    open_rows = [
        row_of(f"open-{number}", state, age_s=old_s)
        for number, state in zip(
            range(500), itertools.cycle((State.UNKNOWN, State.FAILED)), strict=False
        )
    ]
    fill(client, map(to_item, open_rows))
    assert resolver_requests(dynamo, hub) == at_a_thousand
    before = guids(client)
    assert len(before) == 100_000

    def kill_at(pages: int) -> None:
        left = itertools.count(pages, -1)

        def on_page(_: int) -> None:
            if next(left) <= 0:
                raise KilledError

        with pytest.raises(KilledError):
            purge.run(hub, NOW_MS + RUN_MS, on_page=on_page)

    assert purge.run(hub, NOW_MS + RUN_MS, dry_run=True).deleted == 1_000
    assert guids(client) == before
    kill_at(5)
    kill_at(5)
    report = purge.run(hub, NOW_MS + RUN_MS)
    assert report.complete
    left = guids(client)
    assert before - left == {f"over-{number}" for number in range(1_000)}
    assert {row.guid for row in open_rows} <= left

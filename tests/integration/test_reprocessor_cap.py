"""The cap on the hub's own resends: what it counts, and what stands parked beyond it."""

from __future__ import annotations

import contextlib

import pytest

from relayhub.core import NotSent
from relayhub.flows.reprocess import Taken
from relayhub.row import shard_of
from relayhub.states import State
from tests.emulated import client
from tests.maintenance import DAY_MS, NOT_FOUND, reprocessor, resolve_at
from tests.plant import Works
from tests.world import START_MS, TABLE, KilledError


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core, which has no record unless told."""
    del aws
    works = Works()
    works.core.findings.append(NOT_FOUND)
    return works


def test_over_the_cap_a_row_is_parked_with_the_reason_and_listed(works: Works) -> None:
    """The hub sends no more by itself; a person finds it in the index of the parked."""
    works.fail()
    works.edit(resends=19)
    works.core.outcomes.append(NotSent("connect_refused"))
    assert reprocessor(works) is Taken.SENT
    works.core.findings.append(NOT_FOUND)
    assert reprocessor(works) is Taken.PARKED
    row = works.held()
    assert (row.state, row.parked, row.resends, row.due_at) == (
        "FAILED",
        "cap",
        20,
        START_MS + DAY_MS,
    )
    listed = client("dynamodb").query(
        TableName=TABLE,
        IndexName="open",
        KeyConditionExpression="open_shard = :shard",
        ExpressionAttributeValues={":shard": {"S": f"PARKED#{shard_of('G-1', 16)}"}},
    )
    assert [each["guid"]["S"] for each in listed["Items"]] == ["G-1"]
    assert reprocessor(works) is Taken.DROPPED
    assert (len(works.core.asked), len(works.core.sent)) == (1, 2)


def test_a_parked_rows_channel_may_still_send_it(works: Works) -> None:
    """Its own resend un-parks; the cap counts the hub's resends alone."""
    works.fail()
    works.edit(resends=20)
    reprocessor(works)
    assert works.post().code == "0000"
    row = works.held()
    assert (row.parked, row.resends, row.attempt) == (None, 20, 2)


def test_attempts_of_a_worker_that_dies_each_time_stop_at_the_cap(aws: None) -> None:
    """Killed in mid attempt fifty times: each kill costs an attempt, and then it is parked."""
    del aws
    works = Works(shards=1, read_shards=1)
    works.fail()
    works.edit(valid_until=START_MS + 30 * DAY_MS)

    def die() -> None:
        raise KilledError

    parked = 0
    for _ in range(50):
        works.core.findings[:] = [NOT_FOUND]
        works.core.during[:] = [die]
        with contextlib.suppress(KilledError):
            parked += reprocessor(works) is Taken.PARKED
        if works.held().state is State.SENT:
            at_ms = (works.held().ask_after or 0) + 1
            resolve_at(works, at_ms, NOT_FOUND)
            assert resolve_at(works, at_ms + 30_000, NOT_FOUND).state is State.FAILED
    row = works.held()
    assert (row.resends, row.attempt, row.parked, parked) == (20, 21, "cap", 1)
    assert [request.attempt for request in works.core.sent] == list(range(1, 22))

"""The purger puts right what would mislead TTL or the index, and takes nothing else in hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.row import shard_of
from relayhub.states import Hold, State
from tests.maintenance import accept, processed, purger, resolver
from tests.plant import Works
from tests.world import START_MS

SHARD = shard_of("G-1", 16)


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works(scan_segments=1)


def make(works: Works, state: str) -> None:
    """Leave a row in the state."""
    makers: dict[str, Callable[[Works], object]] = {
        "RECEIVED": accept,
        "SENT": Works.kill,
        "UNKNOWN": Works.doubt,
        "FAILED": Works.fail,
        "DONE": Works.post,
    }
    makers[state](works)


OPEN = ["RECEIVED", "SENT", "UNKNOWN", "FAILED"]


@pytest.mark.parametrize("state", OPEN)
def test_an_expiry_on_an_open_row_comes_off(works: Works, state: str) -> None:
    """Else TTL would delete it while it is in doubt."""
    make(works, state)
    before = works.held()
    works.edit(expires_at=1)
    works.dynamo.calls.clear()
    report = purger(works)
    assert works.dynamo.calls.count("update_item") == 1
    row = works.held()
    assert (report.repaired, report.deleted, row.expires_at) == (1, 0, None)
    assert (row.state, row.claim_id, row.due_at) == (before.state, before.claim_id, before.due_at)
    assert works.noted("repaired") == 1
    assert purger(works).repaired == 0


def test_an_expiry_on_a_held_row_comes_off(works: Works) -> None:
    """DONE, and a person has yet to look."""
    make(works, "DONE")
    works.edit(hold="contradiction")
    assert (purger(works).repaired, works.held().expires_at) == (1, None)


WRONG: list[Any] = [
    pytest.param(None, id="missing"),
    pytest.param("DONE#1", id="of_no_group"),
    pytest.param("FAILED#99", id="of_no_shard"),
    pytest.param("nonsense", id="nonsense"),
]


@pytest.mark.parametrize("key", WRONG)
@pytest.mark.parametrize("state", OPEN)
def test_an_open_row_that_no_job_would_find_is_put_back(
    works: Works, state: str, key: str | None
) -> None:
    """Its index key is made to match its state."""
    make(works, state)
    works.edit(open_shard=key if key != "FAILED#99" else f"{state}#99")
    assert purger(works).repaired == 1
    assert works.held().open_shard == f"{state}#{SHARD}"
    assert purger(works).repaired == 0


@pytest.mark.parametrize(
    ("values", "group"),
    [({"parked": "cap"}, "PARKED"), ({"hold": "operator"}, "HELD")],
    ids=["parked", "held"],
)
def test_parked_and_held_rows_stand_in_groups_of_their_own(
    works: Works, values: dict[str, str], group: str
) -> None:
    """A row under its plain state is put right."""
    make(works, "FAILED")
    works.edit(**values)
    assert purger(works).repaired == 1
    assert works.held().open_shard == f"{group}#{SHARD}"


def test_a_restored_row_in_doubt_stays_in_the_resolvers_reach(works: Works) -> None:
    """Held, and yet asked about."""
    make(works, "UNKNOWN")
    works.edit(hold=Hold.RESTORED)
    assert (purger(works).repaired, works.held().open_shard) == (0, f"UNKNOWN#{SHARD}")


@pytest.mark.parametrize("state", OPEN)
def test_an_open_row_without_a_turn_gets_one_now(works: Works, state: str) -> None:
    """An item that lacks the range key is not in the index at all."""
    make(works, state)
    works.edit(due_at=None)
    works.clock.advance(100)
    assert purger(works).repaired == 1
    assert works.held().due_at == works.clock()


def test_a_row_that_was_lost_to_the_index_is_resolved_after_its_repair(works: Works) -> None:
    """From stuck and unseen to its true answer."""
    make(works, "UNKNOWN")
    works.edit(open_shard=None, due_at=None)
    works.clock.advance(100)
    works.core.findings.append(processed())
    resolver(works)
    assert works.held().state is State.UNKNOWN
    purger(works)
    resolver(works)
    assert works.held().state is State.DONE


def test_a_shard_of_before_a_deploy_that_is_still_read_is_right(works: Works) -> None:
    """The writers' number may rise or fall below the readers'."""
    make(works, "FAILED")
    works.edit(open_shard="FAILED#15")
    works.deploy(shards=4)
    assert purger(works).repaired == 0
    works.deploy(shards=4, read_shards=15)
    assert purger(works).repaired == 1
    assert works.held().open_shard == f"FAILED#{shard_of('G-1', 4)}"


@pytest.mark.parametrize("state", [*OPEN, "DONE"])
def test_a_row_that_is_right_is_not_written_to(works: Works, state: str) -> None:
    """And nothing is counted."""
    make(works, state)
    before = works.item()
    assert (purger(works).repaired, works.item()) == (0, before)


def test_a_row_that_moved_on_since_it_was_read_is_not_repaired(works: Works) -> None:
    """It is right already; the old repair would take it out of its group."""
    make(works, "FAILED")
    works.edit(open_shard=None)
    works.dynamo.before["update_item"].append(works.claim_again)
    report = purger(works)
    row = works.held()
    assert (report.repaired, row.state, row.open_shard) == (0, State.SENT, f"SENT#{SHARD}")


def test_a_repair_never_makes_a_row(works: Works) -> None:
    """One that was deleted in between stays deleted."""
    make(works, "FAILED")
    works.edit(open_shard=None)
    real = works.table

    def delete() -> None:
        real.delete_item(TableName="relayhub-ledger", Key={"guid": {"S": "G-1"}})

    works.dynamo.before["update_item"].append(delete)
    assert purger(works).repaired == 0
    assert works.row() is None
    assert works.clock() == START_MS

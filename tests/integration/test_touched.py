"""A row that a person touched: kept as evidence whoever wrote it last, and not stuck for it."""

from __future__ import annotations

import pytest

from relayhub.flows import operate
from relayhub.flows.operate import Person
from relayhub.flows.reprocess import Taken
from relayhub.states import Event, State
from tests.maintenance import NOT_FOUND, accept, purger, reprocessor, resolver
from tests.plant import Works

ALICE = Person("alice", "looked at it")
DAY_S = 86_400


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


def touch(works: Works) -> None:
    """Hold the row and let it go again."""
    operate.hold(works.hub, works.held(), ALICE)
    operate.release(works.hub, works.held(), ALICE)


def kept_s(works: Works) -> int:
    """Return how long the row is kept from now on."""
    return (works.held().expires_at or 0) - works.clock() // 1000


def test_an_answer_to_a_row_that_was_touched_meanwhile_is_kept_as_evidence(works: Works) -> None:
    """The holder claimed the row before the person came, and knows nothing of it."""
    works.core.during.append(lambda: touch(works))
    assert works.post().code == "0000"
    row = works.held()
    assert (row.state, row.doubted) == (State.DONE, True)
    assert kept_s(works) == works.hub.settings.evidence_s


def test_a_redrive_between_reading_and_claiming_stops_the_claim(works: Works) -> None:
    """The claim is of the row as it was read; its channel's next resend sends it."""
    works.fail()
    valid_until = works.clock() + DAY_S * 1000
    works.dynamo.before["update_item"].append(
        lambda: operate.redrive(works.hub, works.held(), ALICE, valid_until)
    )
    assert works.post().code == "E902"
    works.core.findings.append(NOT_FOUND)
    assert works.post().code == "0000"
    assert kept_s(works) == works.hub.settings.evidence_s


def test_a_touched_row_that_was_never_sent_is_sent_by_the_hub(works: Works) -> None:
    """No core is named in it, so none can be another one."""
    accept(works)
    touch(works)
    works.clock.advance(130)
    resolver(works)
    assert works.held().state is State.FAILED
    works.core.findings.append(NOT_FOUND)
    assert reprocessor(works) is Taken.SENT
    assert works.held().state is State.DONE


def test_a_touched_row_that_was_never_sent_is_sent_by_its_channels_resend(works: Works) -> None:
    """The same, with the inquiry before a resend."""
    reply = works.post(headers={"prefer": "respond-async"})
    assert reply.status == 202
    touch(works)
    works.clock.advance(130)
    resolver(works)
    works.core.findings.append(NOT_FOUND)
    assert works.post().code == "0000"


def test_the_purger_repairs_a_touched_row(works: Works) -> None:
    """Its writes are fenced by all that fences others, so the scan reads it too."""
    works.fail()
    works.edit(doubted=True, open_shard=None)
    assert purger(works).repaired == 1
    assert works.held().open_shard is not None


def test_the_reason_stands_in_the_history(works: Works) -> None:
    """With who gave it."""
    works.fail()
    operate.park(works.hub, works.held(), ALICE)
    last = works.held().history[-1]
    assert (last["by"], last["event"], last["reason"]) == (
        "operator alice",
        Event.PARKED,
        "looked at it",
    )

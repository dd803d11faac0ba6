"""A row that a person touched: kept as evidence whoever wrote it last, and not stuck for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from relayhub.core import Answered
from relayhub.flows import operate
from relayhub.flows.operate import Person, RefusedError
from relayhub.flows.reprocess import Taken
from relayhub.message import Answer
from relayhub.states import Event, Hold, State
from relayhub.upkeep import Upkeep
from tests.maintenance import NOT_FOUND, accept, processed, purger, reprocessor, resolver
from tests.plant import Works
from tests.world import EXECUTED, REFUSED, TABLE

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


def test_a_redrive_of_a_row_that_was_cancelled_meanwhile_is_not_made(works: Works) -> None:
    """Nobody sends what its channel took back."""
    works.fail()
    row = works.held()
    works.edit(cancel={"at": works.clock(), "by": "atm"})
    with pytest.raises(RefusedError, match="moved on"):
        operate.redrive(works.hub, row, ALICE, works.clock() + DAY_S * 1000)


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


def test_a_parked_row_is_asked_about_when_its_contradiction_is_released(works: Works) -> None:
    """In doubt it stands where the resolver looks, and its answer ends it."""
    works.doubt()
    works.not_found()
    operate.park(works.hub, works.held(), ALICE)
    works.move(Event.HELD, by="relay", hold=Hold.CONTRADICTION)
    operate.release(works.hub, works.held(), ALICE)
    row = works.held()
    assert (row.state, row.parked) == (State.UNKNOWN, None)
    assert (row.open_shard or "").startswith("UNKNOWN#")
    works.core.findings.append(processed())
    resolver(works)
    assert works.held().code == "0000"


def test_a_late_answer_takes_the_place_of_a_persons_hold(works: Works) -> None:
    """Else the hold would be let go as if nothing were known."""

    def others_go_on() -> None:
        works.clock.advance(200)
        works.abandon()
        works.not_found()
        works.claim_again()
        works.move(Event.NOT_SENT, by="reprocessor", code="E902", due_at=works.clock())
        operate.hold(works.hub, works.held(), ALICE)

    works.core.during.append(others_go_on)
    works.post()
    assert works.held().hold is Hold.CONTRADICTION
    with pytest.raises(RefusedError, match="may have been executed"):
        operate.close(works.hub, works.held(), ALICE, Hold.CONTRADICTION)


def test_a_contradiction_on_a_row_that_is_sent_waits_for_its_sender(works: Works) -> None:
    """Then it goes back into doubt: the sender's word could only be "not executed"."""
    works.kill()
    works.move(Event.HELD, by="relay", hold=Hold.CONTRADICTION)
    with pytest.raises(RefusedError, match="its sender may still be at it"):
        operate.release(works.hub, works.held(), ALICE)
    works.clock.advance(31)
    operate.release(works.hub, works.held(), ALICE)
    assert works.held().state is State.UNKNOWN


@pytest.mark.parametrize(("answer", "may"), [(REFUSED, False), (EXECUTED, True)])
def test_a_contradicted_not_executed_is_never_told_again(
    works: Works, answer: Answer, *, may: bool
) -> None:
    """A stored "executed" may be: nothing worse can be told."""
    works.core.outcomes.append(Answered(answer))
    works.post()
    works.move(Event.HELD, by="relay", hold=Hold.CONTRADICTION, expires_at=None)
    if may:
        assert operate.release(works.hub, works.held(), ALICE).hold is None
        return
    with pytest.raises(RefusedError, match="E901 is the truth for its channel"):
        operate.release(works.hub, works.held(), ALICE)


@pytest.mark.parametrize("act", ["release", "redrive"])
def test_no_time_is_written_by_a_clock_that_is_off(works: Works, act: str) -> None:
    """A NOT_FOUND would count too early by it."""
    works.doubt() if act == "release" else works.fail()
    if act == "release":
        works.move(Event.HELD, hold=Hold.OPERATOR)
    row = works.held()
    slow = replace(works.hub, now_ms=lambda: works.clock() - 200_000)
    off = Upkeep(works.dynamo, TABLE, now_ms=slow.now_ms, skew_s=5, pause=lambda _: None)
    hub, valid_until = replace(slow, upkeep=off), works.clock() + DAY_S * 1000
    do: Callable[[], object] = {
        "release": lambda: operate.release(hub, row, ALICE),
        "redrive": lambda: operate.redrive(hub, row, ALICE, valid_until),
    }[act]
    with pytest.raises(RefusedError, match="clock is off"):
        do()
    assert works.held() == row


def test_a_released_row_without_a_time_of_sending_is_as_old_as_its_acceptance(
    works: Works,
) -> None:
    """By a later time the core's NOT_FOUND would count though the core has forgotten."""
    works.doubt()
    works.edit(sent_at=None, hold=Hold.FORGOTTEN, open_shard="HELD#0")
    works.clock.advance(8 * DAY_S)
    operate.release(works.hub, works.held(), ALICE)
    assert works.held().sent_at == works.held().accepted_at
    works.core.findings += [NOT_FOUND] * 9
    for _ in range(9):
        works.clock.advance(600)
        resolver(works)
    assert (works.held().state, works.held().hold) == (State.UNKNOWN, Hold.FORGOTTEN)

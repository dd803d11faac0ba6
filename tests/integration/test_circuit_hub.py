"""The hub closes the core by itself after calls without an answer; an inquiry opens it again."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.controls import CACHE_MS, HUB, Switch
from relayhub.core import Answered, Doubt, NotSent, SendOutcome
from relayhub.flows.reprocess import Taken
from relayhub.states import State
from tests.emulated import refused, reply_lost
from tests.maintenance import NOT_FOUND, UNDECIDED, reprocessor, resolver
from tests.plant import Works
from tests.world import EXECUTED, REFUSED

PASSED_S = CACHE_MS / 1000 + 0.001
REFUSES = NotSent("connect_refused")
SILENT = Doubt("no_answer", aborted=True)


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works(circuit_after=3)


def close(works: Works) -> None:
    """Close the core as a person does, and let the functions see it."""
    assert works.hub.controls.close_core(Switch("operator alice", "maintenance", works.clock()))


def reopen(works: Works) -> None:
    """Open it again."""
    assert works.hub.controls.open_core()


def core(works: Works) -> Switch | None:
    """Return what the control row says of the core."""
    return works.hub.controls.read().core


@pytest.mark.parametrize("outcome", [SILENT, REFUSES], ids=["silent", "refuses"])
def test_calls_in_a_row_without_an_answer_close_the_core(
    works: Works, outcome: SendOutcome
) -> None:
    """At the set number, hub-wide: each function counts in the control row."""
    for number in range(3):
        assert core(works) is None
        works.core.outcomes.append(outcome)
        works.post(f"G-{number}")
    closed = core(works)
    assert closed is not None
    assert (closed.by, closed.probe_at) == (HUB, works.clock() + 15_000)
    works.post("G-9")
    assert (len(works.core.sent), works.noted("circuit_closed")) == (3, 1)


@pytest.mark.parametrize("answer", [EXECUTED, REFUSED], ids=["executed", "refused"])
def test_an_answer_in_between_makes_it_no_row(works: Works, answer: Any) -> None:
    """A refusal by the core is an answer too."""
    outcomes: list[SendOutcome] = [SILENT, SILENT, Answered(answer), SILENT, SILENT]
    for number, outcome in enumerate(outcomes):
        works.core.outcomes.append(outcome)
        works.post(f"G-{number}")
    assert core(works) is None


def test_what_the_hub_itself_stopped_is_no_strike(works: Works) -> None:
    """The core had no part in it."""
    close(works)
    for number in range(5):
        works.post(f"G-{number}")
    reopen(works)
    assert works.hub.controls.read().strikes == 0


def test_no_call_is_counted_where_the_setting_is_off(works: Works) -> None:
    """Then a doubt costs no request more."""
    works.deploy(circuit_after=0)
    for number in range(25):
        works.core.outcomes.append(SILENT)
        works.post(f"G-{number}")
    assert core(works) is None
    assert set(works.switchboard.calls) == {"get_item"}


def test_a_count_that_cannot_be_written_changes_no_answer(works: Works) -> None:
    """The call's own outcome stands."""
    works.switchboard.faults["update_item"] += [refused("AccessDeniedException")] * 2
    works.core.outcomes.append(SILENT)
    assert works.post().code == "E901"
    assert works.held().state is State.UNKNOWN


def closed_by_hub(works: Works) -> None:
    """Let the hub close the core."""
    for number in range(3):
        works.core.outcomes.append(REFUSES)
        works.post(f"H-{number}")
    works.hints()
    assert core(works) is not None


def test_an_inquiry_opens_what_the_hub_closed_when_its_turn_is_due(works: Works) -> None:
    """Whatever the core says of a GUID that nobody sent shows that it answers."""
    closed_by_hub(works)
    works.clock.advance(14.9)
    resolver(works)
    assert works.core.asked == []
    works.clock.advance(0.2)
    works.core.findings.append(NOT_FOUND)
    resolver(works)
    assert works.core.asked[0].startswith("probe-")
    assert (core(works), works.noted("circuit_opened")) == (None, 1)
    assert works.hub.controls.read().strikes == 0


def test_an_inquiry_without_a_word_leaves_it_closed_and_the_next_turn_is_later(
    works: Works,
) -> None:
    """One probe per PROBE_S, whoever makes it."""
    closed_by_hub(works)
    works.clock.advance(15)
    works.core.findings.append(UNDECIDED)
    assert reprocessor(works, "H-0") is Taken.WAITS
    assert reprocessor(works, "H-1") is Taken.WAITS
    closed = core(works)
    assert closed is not None
    assert closed.probe_at == works.clock() + 15_000
    assert len(works.core.asked) == 1


def test_the_turn_to_ask_is_one_callers(works: Works) -> None:
    """Two functions that saw the same turn: one has it."""
    closed_by_hub(works)
    closed = core(works)
    assert closed is not None
    probe_at = closed.probe_at or 0
    turns = [works.hub.controls.take_probe(probe_at, probe_at + 15_000) for _ in range(2)]
    assert turns == [True, False]


def test_no_payment_opens_a_core_that_the_hub_closed(works: Works) -> None:
    """However long it is closed, and whoever resends."""
    closed_by_hub(works)
    works.clock.advance(3_600)
    works.post("G-9")
    works.post("H-0")
    assert (len(works.core.sent), works.core.asked) == (3, [])


def test_no_inquiry_opens_what_a_person_closed(works: Works) -> None:
    """Also where the hub had closed it before."""
    closed_by_hub(works)
    close(works)
    works.clock.advance(3_600)
    works.core.findings += [NOT_FOUND] * 3
    resolver(works)
    reprocessor(works, "H-0")
    assert not works.hub.controls.reopen()
    closed = core(works)
    assert closed is not None
    assert (closed.by, works.core.asked) == ("operator alice", [])


def test_a_closing_by_the_hub_takes_no_person_off(works: Works) -> None:
    """The count goes on while calls that were under way come back."""
    works.core.outcomes += [SILENT] * 3
    works.core.during += [lambda: None, lambda: None, lambda: close(works)]
    for number in range(3):
        works.post(f"G-{number}")
    closed = core(works)
    assert closed is not None
    assert (closed.by, closed.probe_at) == ("operator alice", None)


def test_the_probe_that_opens_the_core_goes_on_to_send(works: Works) -> None:
    """The row that brought the turn is not claimed in vain."""
    closed_by_hub(works)
    works.clock.advance(16)
    works.core.findings += [NOT_FOUND] * 2
    assert reprocessor(works, "H-0") is Taken.SENT
    assert (works.held("H-0").state, works.held("H-0").resends) == (State.DONE, 1)


def test_what_a_short_validity_cut_off_is_no_strike(works: Works) -> None:
    """Else one channel could close the core for all."""
    for number in range(3):
        works.core.outcomes.append(SILENT)
        works.post(f"G-{number}", headers={"valid-until": "2027-01-15T08:00:05Z"})
    assert len(works.core.sent) == 3
    assert core(works) is None


def test_a_call_counts_once_though_the_reply_to_its_count_is_lost(works: Works) -> None:
    """A count has no condition, so it is never sent again."""
    works.switchboard.faults["update_item"].append(reply_lost)
    works.core.outcomes.append(SILENT)
    works.post()
    assert works.hub.controls.read().strikes == 1


def test_no_count_is_written_without_time_for_it(works: Works) -> None:
    """The channel's answer comes first."""
    works.core.outcomes.append(SILENT)
    works.core.during.append(lambda: works.clock.advance(22))
    assert works.post().code == "E901"
    assert works.hub.controls.read().strikes == 0

"""A closed core: nothing is sent, nothing is lost, and an inquiry opens what the hub had closed."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.controls import CACHE_MS, HUB, Job, Switch
from relayhub.core import Answered, Doubt, NotSent, SendOutcome
from relayhub.flows import resolve
from relayhub.flows.reprocess import Taken
from relayhub.states import State
from tests.emulated import refused, reply_lost
from tests.maintenance import NOT_FOUND, UNDECIDED, reprocessor, resolver, sweep
from tests.plant import Works
from tests.world import EXECUTED, REFUSED, document

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


def hold(works: Works, job: Job) -> None:
    """Hold a job as a person does."""
    assert works.hub.controls.hold_job(job, Switch("operator alice", "look", works.clock()))


def core(works: Works) -> Switch | None:
    """Return what the control row says of the core."""
    return works.hub.controls.read().core


@pytest.mark.parametrize(("delivery", "status"), [("deferred", 202), ("interactive", 503)])
def test_a_closed_core_gets_nothing_and_the_channel_is_told_so(
    works: Works, delivery: str, status: int
) -> None:
    """Claimed and written FAILED in two requests, so that attempt numbers stay unique."""
    close(works)
    reply = works.post(headers={"delivery": delivery})
    assert (reply.code, reply.status, document(reply)["executed"]) == ("E902", status, "no")
    row = works.held()
    assert (row.state, row.attempt) == (State.FAILED, 1)
    assert works.core.sent == []
    assert works.dynamo.calls.count("put_item") + works.dynamo.calls.count("update_item") == 2


def test_a_resend_to_a_closed_core_claims_nothing(works: Works) -> None:
    """It would be stopped before its call: no attempt is spent."""
    works.fail()
    close(works)
    reply = works.post()
    assert (reply.code, works.held().attempt, len(works.core.sent)) == ("E902", 1, 1)


def test_a_switch_works_within_the_age_of_what_is_kept(works: Works) -> None:
    """Another function's closing is seen when the own knowledge is older than that."""
    works.post("G-1")
    other = works.make_hub(works.hub.settings)
    other.controls.close_core(Switch("operator alice", "maintenance", works.clock()))
    works.clock.advance(CACHE_MS / 1000)
    assert works.post("G-2").code == "0000"
    works.clock.advance(0.001)
    assert works.post("G-3").code == "E902"
    assert len(works.core.sent) == 2


def test_a_warm_function_reads_the_switches_once_in_that_time(works: Works) -> None:
    """No read on the hot path."""
    for number in range(20):
        works.post(f"G-{number}")
    assert works.switchboard.calls == ["get_item"]


def test_a_clock_that_was_set_back_does_not_keep_what_is_known(works: Works) -> None:
    """Else a closing would go unseen for as long as the clock was ahead."""
    works.post("G-1")
    works.clock.advance(-3_600)
    works.post("G-2")
    assert works.switchboard.calls == ["get_item"] * 2


def test_a_closing_between_claim_and_call_stops_the_call(works: Works) -> None:
    """What the function has learnt meanwhile counts at the last moment before connecting."""

    def shut() -> None:
        close(works)
        works.hub.controls.switches()

    works.dynamo.before["put_item"].append(shut)
    assert works.post().code == "E902"
    assert works.core.sent == []


def test_after_reopening_what_waited_is_sent_once(works: Works) -> None:
    """By the reprocessor, under the next attempt."""
    close(works)
    works.post()
    reopen(works)
    works.core.findings.append(NOT_FOUND)
    assert reprocessor(works) is Taken.SENT
    assert (works.held().state, works.held().attempt) == (State.DONE, 2)
    assert len(works.core.sent) == 1


def test_a_planned_closing_leaves_nothing_in_doubt(works: Works) -> None:
    """What was under way is answered; what comes later is told E902."""
    works.core.during.append(lambda: close(works))
    assert works.post("G-1").code == "0000"
    works.clock.advance(PASSED_S)
    assert [works.post(f"G-{number}").code for number in (2, 3)] == ["E902", "E902"]
    states = {works.held(f"G-{number}").state for number in (1, 2, 3)}
    assert states == {State.DONE, State.FAILED}


def test_the_reprocessor_rests_while_the_core_is_closed(works: Works) -> None:
    """It neither asks nor claims; the row and its attempts are as they were."""
    before = works.fail()
    close(works)
    assert reprocessor(works) is Taken.WAITS
    assert (works.held(), works.core.asked) == (before, [])


def test_the_sweep_ends_what_is_over_and_hints_nothing_while_the_core_is_closed(
    works: Works,
) -> None:
    """The end of a validity needs no core."""
    works.fail("G-1")
    works.fail("G-2", headers={"valid-until": "2027-01-15T08:01:00Z"})
    works.hints()
    close(works)
    works.clock.advance(3_600)
    swept = sweep(works)
    assert (swept.ended, swept.hinted) == (1, 0)
    assert works.held("G-1").state is State.FAILED


def test_the_resolver_asks_nothing_while_the_core_is_closed(works: Works) -> None:
    """A dead sender's row is taken into doubt all the same; one in doubt is left as it was."""
    before = works.doubt("G-1")
    works.kill("G-2")
    close(works)
    works.clock.advance(3_600)
    report = resolver(works)
    assert (report.asked, works.core.asked) == (0, [])
    assert works.held("G-1") == before
    assert works.held("G-2").state is State.UNKNOWN


def test_a_closing_in_the_middle_of_a_run_stops_its_inquiries(works: Works) -> None:
    """Within the age of what is kept, as everywhere."""
    for number in range(3):
        works.doubt(f"G-{number}")
        works.core.findings.append(UNDECIDED)
    reopen(works)  # Three doubts in a row have closed it.
    works.clock.advance(60)

    def shut() -> None:
        close(works)
        works.clock.advance(PASSED_S)

    works.core.during_ask.append(shut)
    resolver(works)
    assert len(works.core.asked) == 1


@pytest.mark.parametrize("job", list(Job))
def test_a_held_job_does_nothing(works: Works, job: Job) -> None:
    """Its rows are as they were, and due when it is released."""
    before = works.fail("G-1"), works.doubt("G-2")
    hold(works, job)
    works.clock.advance(60)
    if job is Job.RESOLVER:
        assert resolver(works).held
    else:
        assert reprocessor(works) is Taken.WAITS
        assert sweep(works).due == 0
    assert (works.held("G-1"), works.held("G-2")) == before
    assert works.core.asked == []
    assert works.hub.controls.release_job(job)
    works.core.findings.append(NOT_FOUND)
    assert not resolve.run(works.hub, works.clock() + 60_000).held


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


def test_nothing_is_sent_on_switches_that_cannot_be_read(works: Works) -> None:
    """E906 to a request, and the jobs rest: an old word is not taken for open."""
    works.fail("G-1")
    works.hints()
    works.clock.advance(PASSED_S)
    works.switchboard.faults["get_item"] += [refused("AccessDeniedException")] * 20
    assert works.post("G-2").code == "E906"
    assert works.row("G-2") is None
    assert reprocessor(works, "G-1") is Taken.WAITS
    assert resolver(works).held
    assert (len(works.core.sent), works.core.asked) == (1, [])


def test_a_closing_is_seen_though_the_claim_is_slow(works: Works) -> None:
    """What a function knows is looked at once more right before the connection."""
    dynamo = works.dynamo
    other = works.make_hub(works.hub.settings)

    def shut() -> None:
        other.controls.close_core(Switch("operator alice", "maintenance", works.clock()))
        works.clock.advance(3)

    dynamo.before["put_item"].append(shut)
    assert works.post().code == "E902"
    assert works.core.sent == []


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


def test_what_a_newer_version_adds_to_a_switch_is_left_out(works: Works) -> None:
    """A roll-back does not stop the hub."""
    works.edit("!control", core_closed={"by": "x", "reason": "y", "at": 1, "until": 2})
    assert works.post().code == "E902"
    assert core(works) == Switch("x", "y", 1)

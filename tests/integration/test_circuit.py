"""A closed core: nothing is sent, nothing is lost, and an inquiry opens what the hub had closed."""

from __future__ import annotations

import pytest

from relayhub.controls import CACHE_MS, Job, Switch
from relayhub.core import Doubt, NotSent
from relayhub.flows import resolve
from relayhub.flows.reprocess import Taken
from relayhub.states import State
from tests.emulated import refused
from tests.maintenance import NOT_FOUND, UNDECIDED, reprocessor, resolver, sweep
from tests.plant import Works
from tests.world import document

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


def test_what_a_newer_version_adds_to_a_switch_is_left_out(works: Works) -> None:
    """A roll-back does not stop the hub."""
    works.edit("!control", core_closed={"by": "x", "reason": "y", "at": 1, "until": 2})
    assert works.post().code == "E902"
    assert core(works) == Switch("x", "y", 1)


def test_a_slow_read_of_the_switches_hides_no_clock_that_is_off(works: Works) -> None:
    """The claim's time is compared with the own one of then, not of after the read."""
    works.dynamo_ahead_ms = 4_500
    works.dynamo.before["put_item"].append(lambda: works.clock.advance(PASSED_S))
    works.switchboard.before["get_item"] += [lambda: None, lambda: works.clock.advance(3)]
    assert works.post().code == "E902"
    assert (works.core.sent, works.noted("clock_off")) == ([], 1)

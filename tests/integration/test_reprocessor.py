"""The reprocessor: ask, then claim, then send; only what was certainly not executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Answered, Doubt, Finding, NotSent
from relayhub.flows.reprocess import Taken
from relayhub.states import Event, Hold, State
from tests.maintenance import (
    AWAY,
    DAY_MS,
    NOT_FOUND,
    PROCESSING,
    UNDECIDED,
    accept,
    events,
    processed,
    reprocessor,
    resolver,
)
from tests.plant import Works
from tests.world import (
    EXECUTED,
    REFUSED,
    START_MS,
)

BODY = "支払 100".encode("cp932") + b"\x00 "
HEADERS = {"content-type": "text/plain; charset=Shift_JIS", "x-operation": "debit"}


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core, which has no record unless told."""
    del aws
    works = Works()
    works.core.findings.append(NOT_FOUND)
    return works


def test_it_asks_then_claims_then_sends(works: Works) -> None:
    """The row is FAILED while the core is asked, and says SENT before a byte leaves."""
    works.fail()
    seen: list[tuple[str, int, str | None]] = []

    def look() -> None:
        row = works.held()
        seen.append((str(row.state), row.attempt, row.claim_id))

    first = works.held().claim_id
    works.core.during_ask.append(look)
    works.core.during.append(look)
    assert reprocessor(works, attempt=1) is Taken.SENT
    assert seen[0] == ("FAILED", 1, first)
    assert seen[1][:2] == ("SENT", 2)
    assert seen[1][2] not in {None, first}
    assert (works.core.asked, len(works.core.sent)) == (["G-1"], 2)


def test_it_sends_the_very_request_again_and_counts_its_own_resend(works: Works) -> None:
    """The same bytes, type and GUID; the next attempt, under a new claim and a new end."""
    first = works.fail(body=BODY, headers=HEADERS)
    works.clock.advance(100)
    reprocessor(works)
    one, two = works.core.sent
    assert (two.guid, two.body, two.content_type, two.operation) == (
        "G-1",
        BODY,
        "text/plain; charset=Shift_JIS",
        "debit",
    )
    assert (one.attempt, two.attempt) == (1, 2)
    row = works.held()
    assert (row.state, row.code, row.attempt, row.resends) == (State.DONE, "0000", 2, 1)
    assert (row.sent_at, row.dead_at) == (works.clock(), works.clock() + 60_000)
    assert row.claim_id != first.claim_id
    assert works.post(body=BODY, headers=HEADERS).body == EXECUTED.body


@pytest.mark.parametrize(
    ("outcome", "state", "code"),
    [
        (Answered(EXECUTED), "DONE", "0000"),
        (Answered(REFUSED), "DONE", "B201"),
        (NotSent("connect_refused"), "FAILED", "E902"),
        (Doubt("no_answer", aborted=True), "UNKNOWN", "E901"),
    ],
    ids=["executed", "refused", "not_sent", "doubt"],
)
def test_what_came_of_it_is_written_as_the_relay_writes_it(
    works: Works, outcome: Any, state: str, code: str
) -> None:
    """And it never hints: its own failure comes again by the sweep."""
    works.fail()
    works.hints()
    sent = works.sqs.calls.count("send_message")
    works.core.outcomes.append(outcome)
    assert reprocessor(works) is Taken.SENT
    row = works.held()
    assert (row.state, row.code) == (state, code)
    assert works.sqs.calls.count("send_message") == sent


def _in(state: str) -> Callable[[Works], object]:
    makers: dict[str, Callable[[Works], object]] = {
        "SENT": Works.kill,
        "UNKNOWN": Works.doubt,
        "DONE": Works.post,
        "RECEIVED": accept,
    }
    return makers[state]


def _failed_and(**values: Any) -> Callable[[Works], object]:
    def make(works: Works) -> None:
        works.fail()
        works.edit(**values)

    return make


def _interactive(works: Works) -> None:
    works.fail(headers={"delivery": "interactive"})


DROPPED: list[Any] = [
    pytest.param(lambda _: None, id="no_row"),
    *[pytest.param(_in(state), id=state) for state in ("SENT", "UNKNOWN", "DONE", "RECEIVED")],
    pytest.param(_interactive, id="interactive"),
    pytest.param(_failed_and(parked="cap"), id="parked"),
    pytest.param(_failed_and(hold="operator"), id="held"),
    pytest.param(_failed_and(hold="restored"), id="restored"),
    pytest.param(_failed_and(attempt=2), id="another_attempt"),
    pytest.param(_failed_and(schema=2), id="newer"),
    pytest.param(_failed_and(hold="operator", cancel={"at": 1, "by": "atm"}), id="held_cancelled"),
    pytest.param(_failed_and(hold="operator", valid_until=START_MS - 1), id="held_expired"),
]


@pytest.mark.parametrize("make", DROPPED)
def test_a_hint_for_what_is_not_the_hubs_to_send_is_dropped(
    works: Works, make: Callable[[Works], object]
) -> None:
    """Nothing is asked, written or sent; the ledger is the truth."""
    make(works)
    before, sent = works.item(), len(works.core.sent)
    assert reprocessor(works, attempt=1) is Taken.DROPPED
    assert (works.item(), len(works.core.sent), works.core.asked) == (before, sent, [])


def test_a_hint_without_an_attempt_means_the_rows_own(works: Works) -> None:
    """A person may write one by hand."""
    works.fail()
    works.edit(attempt=7)
    assert reprocessor(works, attempt=None) is Taken.SENT
    assert works.held().attempt == 8


def test_the_same_hint_again_does_nothing(works: Works) -> None:
    """Queues deliver twice."""
    works.fail()
    works.core.outcomes.append(NotSent("connect_refused"))
    works.core.findings.append(NOT_FOUND)
    assert reprocessor(works, attempt=1) is Taken.SENT
    assert reprocessor(works, attempt=1) is Taken.DROPPED
    assert (len(works.core.sent), works.held().attempt) == (2, 2)


@pytest.mark.parametrize(
    ("values", "event"),
    [
        ({"cancel": {"at": START_MS, "by": "atm"}}, "cancelled"),
        ({"valid_until": START_MS}, "expired"),
        ({"valid_until": START_MS, "parked": "cap"}, "expired"),
    ],
    ids=["cancelled", "expired", "parked_and_expired"],
)
def test_what_is_over_ends_without_a_send(works: Works, values: dict[str, Any], event: str) -> None:
    """E908: it was not executed and never will be."""
    works.fail()
    works.edit(**values)
    assert reprocessor(works) is Taken.ENDED
    row = works.held()
    assert (row.state, row.code, events(works)[-1]) == (State.DONE, "E908", event)
    assert (works.core.asked, len(works.core.sent)) == ([], 1)


def test_the_last_moment_of_validity_is_the_one_before_valid_until(works: Works) -> None:
    """At valid_until itself it is over."""
    works.fail()
    works.clock.ms = START_MS + DAY_MS - 1
    assert reprocessor(works) is Taken.SENT


def test_processed_at_the_inquiry_ends_the_row_and_raises_the_alarm(works: Works) -> None:
    """The row said "certainly not executed", and it was: no send, the true answer, an alarm."""
    works.fail()
    works.core.findings[:] = [processed()]
    assert reprocessor(works) is Taken.ENDED
    row = works.held()
    assert (row.state, row.code, row.attempt) == (State.DONE, "0000", 1)
    assert (len(works.core.sent), works.noted("contradiction")) == (1, 1)


def test_a_refusal_found_at_the_inquiry_contradicts_nothing(works: Works) -> None:
    """Not executed, as the row said."""
    works.fail()
    works.core.findings[:] = [processed(REFUSED)]
    assert reprocessor(works) is Taken.ENDED
    assert (works.held().code, works.noted("contradiction")) == ("B201", 0)


@pytest.mark.parametrize("finding", [AWAY, UNDECIDED], ids=["away", "undecided"])
def test_without_a_not_found_nothing_is_claimed(works: Works, finding: Finding) -> None:
    """The hint is acknowledged; the row and its attempts are as they were."""
    works.fail()
    before = works.item()
    works.core.findings[:] = [finding]
    assert reprocessor(works) is Taken.WAITS
    assert (works.item(), len(works.core.sent)) == (before, 1)


def test_a_core_that_is_at_it_before_a_resend_raises_the_alarm(works: Works) -> None:
    """The row said "not executed": nothing is claimed, and only a person goes on."""
    before = works.fail()
    works.core.findings[:] = [PROCESSING]
    assert reprocessor(works) is Taken.WAITS
    row = works.held()
    assert (row.state, row.attempt, row.claim_id) == (State.FAILED, 1, before.claim_id)
    assert (row.hold, works.noted("core_longest_wrong")) == ("contradiction", 1)
    assert len(works.core.sent) == 1


@pytest.mark.parametrize("finding", [processed(), PROCESSING], ids=["processed", "processing"])
def test_what_the_core_says_of_the_next_attempt_contradicts_nothing(
    works: Works, finding: Finding
) -> None:
    """The channel resent while the core was asked: the row has moved on, and nobody is called."""
    works.fail()
    works.core.during_ask.append(works.post)
    works.core.findings[:] = [finding]
    assert reprocessor(works) is Taken.WAITS
    row = works.held()
    assert (row.state, row.code, row.attempt, row.hold) == (State.DONE, "0000", 2, None)
    assert (works.noted("contradiction"), works.noted("core_longest_wrong")) == (0, 0)


@pytest.mark.parametrize("reason", ["core", "secret"])
def test_a_core_that_cannot_be_asked_about_the_row_costs_no_attempt(
    works: Works, reason: str
) -> None:
    """Another core's name, or a secret that cannot be read: it waits."""
    works.fail()
    if reason == "core":
        works.edit(doubted=True)
        works.deploy(core_name="new")
    else:
        works.core.unprepared = True
    before = works.item()
    assert reprocessor(works) is Taken.WAITS
    assert (works.item(), works.core.asked, len(works.core.sent)) == (before, [], 1)


@pytest.mark.parametrize(("left_ms", "taken"), [(28_999, "given_back"), (29_000, "sent")])
def test_a_hint_that_a_call_would_not_fit_is_given_back(
    works: Works, left_ms: int, taken: str
) -> None:
    """An inquiry, a call and the write of its outcome must end before the function does."""
    works.fail()
    before = works.item()
    assert reprocessor(works, left_ms=left_ms) == taken
    assert (works.item() == before) is (taken == "given_back")


def test_a_slow_inquiry_shortens_the_call_and_never_the_margin(works: Works) -> None:
    """The call ends by its own deadline, and by the function's less the margin."""
    works.fail()
    works.core.during_ask.append(lambda: works.clock.advance(5))
    reprocessor(works, left_ms=29_000)
    assert works.core.within_s[-1] == 20
    works.edit(state="FAILED", code="E902")
    works.core.findings.append(NOT_FOUND)
    works.core.during_ask.append(lambda: works.clock.advance(9))
    reprocessor(works, left_ms=29_000)
    assert works.core.within_s[-1] == 16


def test_an_accepted_request_whose_message_was_lost_is_sent_by_the_hub(works: Works) -> None:
    """From RECEIVED by its overdue time to its first attempt, with the hint that went out."""
    accept(works)
    works.clock.advance(121)
    resolver(works)
    (hint,) = works.hints()
    assert reprocessor(works, hint["guid"], hint["attempt"]) is Taken.SENT
    row = works.held()
    assert (row.state, row.attempt, len(works.core.sent)) == (State.DONE, 1, 1)


def test_the_history_names_who_sent_it_again(works: Works) -> None:
    """Relay, then reprocessor."""
    works.fail()
    reprocessor(works)
    by = [(entry["event"], entry["by"]) for entry in works.held().history]
    assert by[2] == (Event.CLAIMED, "reprocessor")
    assert works.held().hold is not Hold.CONTRADICTION

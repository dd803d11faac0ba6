"""The rules as data: the whole table of steps, and what each code tells a channel."""

from __future__ import annotations

from itertools import product

import pytest

from relayhub.states import (
    CODE_OF_OPEN_STATE,
    STEPS,
    TOLD,
    Code,
    DefiniteCodes,
    Event,
    IllegalStepError,
    State,
    Told,
    Tri,
    target,
    told,
)

R, S, D, U, F = State.RECEIVED, State.SENT, State.DONE, State.UNKNOWN, State.FAILED

# Written down a second time, by hand: a step that is added or lost shows here.
EXPECTED: dict[tuple[Event, State | None], State | None] = {
    (Event.CLAIMED, None): S,
    (Event.ACCEPTED, None): R,
    (Event.TOMBSTONED, None): D,
    (Event.CLAIMED, R): S,
    (Event.CLAIMED, F): S,
    (Event.ANSWERED, S): D,
    (Event.ANSWERED, U): D,
    (Event.ANSWERED, F): D,
    (Event.DOUBTED, S): U,
    (Event.NOT_SENT, S): F,
    (Event.NOT_SENT, U): F,
    (Event.ABANDONED, S): U,
    (Event.OVERDUE, R): F,
    (Event.PROCESSED, U): D,
    (Event.PROCESSED, F): D,
    (Event.NOT_FOUND, U): F,
    **{(Event.CANCELLED, state): D for state in (R, S, U, F)},
    **{(Event.EXPIRED, state): D for state in (R, F)},
    **{(Event.CLOSED, state): D for state in (R, F)},
    (Event.ATTESTED_EXECUTED, U): D,
    (Event.ATTESTED_NOT_EXECUTED, U): F,
    **{(Event.RESTORED, state): U for state in (R, S, F)},
    (Event.PURGED, D): None,
    **{(Event.CANCEL_RECORDED, state): state for state in (S, U)},
    **{(Event.BACKED_OFF, state): state for state in (R, S, U, F)},
    (Event.NOT_FOUND_COUNTED, U): U,
    (Event.PROCESSING_SEEN, U): U,
    (Event.PARKED, F): F,
    (Event.REDRIVEN, F): F,
    **{
        (event, state): state
        for event in (Event.HELD, Event.RELEASED, Event.FENCED, Event.REPAIRED)
        for state in State
    },
}
ALL = list(product(Event, (None, *State)))


def test_the_table_is_this_one_and_no_other() -> None:
    """Every step, with its source and its target."""
    assert {(step.event, step.source): step.target for step in STEPS} == EXPECTED
    assert len(STEPS) == len(EXPECTED)


@pytest.mark.parametrize(("event", "source"), [each for each in ALL if each in EXPECTED])
def test_a_legal_step_leads_where_the_table_says(event: Event, source: State | None) -> None:
    """`target` is the table."""
    assert target(event, source) is EXPECTED[event, source]


@pytest.mark.parametrize(("event", "source"), [each for each in ALL if each not in EXPECTED])
def test_every_other_step_raises(event: Event, source: State | None) -> None:
    """The error names event and state."""
    with pytest.raises(IllegalStepError, match=f"^{event} is no legal step from"):
        target(event, source)


def test_done_is_left_by_the_purge_only() -> None:
    """A definite answer is never taken back."""
    left = {step.event for step in STEPS if step.source is D and step.target is not D}
    assert left == {Event.PURGED}


def test_only_a_claim_leads_to_sent() -> None:
    """And it starts from no row, RECEIVED or FAILED: never from doubt, never from DONE."""
    into = {
        (step.event, step.source) for step in STEPS if step.target is S and step.source is not S
    }
    assert into == {(Event.CLAIMED, None), (Event.CLAIMED, R), (Event.CLAIMED, F)}


def test_no_row_is_deleted_but_a_done_one() -> None:
    """Nothing open is ever lost."""
    assert {step.source for step in STEPS if step.target is None} == {D}


def test_every_event_and_every_state_is_used() -> None:
    """No dead words."""
    assert {step.event for step in STEPS} == set(Event)
    assert {step.source for step in STEPS} == {None, *State}


def test_every_step_says_who_and_when() -> None:
    """The documents are made from these words."""
    assert all(step.by and step.when for step in STEPS)


def test_every_state_has_its_code() -> None:
    """DONE bears the code of its answer; every other state has one of its own."""
    assert set(CODE_OF_OPEN_STATE) == set(State) - {D}
    assert CODE_OF_OPEN_STATE == {R: "E903", S: "E903", U: "E901", F: "E902"}


HUB_FIRST = ["E905", "E906", "E907", "E904"]
PRECEDENCE = [*HUB_FIRST, "0000", "B2xx, E500", "E908", "E901", "E903", "E902", "E902"]


def test_the_codes_stand_in_their_order_of_precedence() -> None:
    """And every code of the hub's own is there."""
    assert [each.label for each in TOLD] == PRECEDENCE
    assert {each.label for each in TOLD} >= set(Code)


Y, N, X, C = Tri.YES, Tri.NO, Tri.UNKNOWN, Tri.AFTER_CANCEL
WORDS = [
    ("E905", False, 400, X, Y, N, None),
    ("E906", False, 503, X, Y, N, 1),
    ("E907", False, 422, X, N, N, None),
    ("E904", False, 422, X, N, N, None),
    ("0000", False, None, Y, N, N, None),
    ("B200", False, None, N, N, Y, None),
    ("B299", False, None, N, N, Y, None),
    ("E500", False, None, N, N, Y, None),
    ("E908", False, 410, N, N, Y, None),
    ("E901", False, 504, X, Y, N, None),
    ("E903", False, 409, X, Y, N, 1),
    ("E902", True, 202, N, Y, C, None),
    ("E902", False, 503, N, Y, C, 30),
]


@pytest.mark.parametrize(
    ("code", "hub_sends", "status", "executed", "resend", "new_guid", "retry_after_s"), WORDS
)
def test_each_code_tells_what_its_channel_may_do(
    code: str,
    *,
    hub_sends: bool,
    status: int | None,
    executed: Tri,
    resend: Tri,
    new_guid: Tri,
    retry_after_s: int | None,
) -> None:
    """Status, executed, the same GUID again, a new GUID for the act, and when."""
    words = told(code, DefiniteCodes(), hub_sends=hub_sends)
    assert (words.status, words.executed, words.resend, words.new_guid, words.retry_after_s) == (
        status,
        executed,
        resend,
        new_guid,
        retry_after_s,
    )
    assert words.title
    assert words.detail


@pytest.mark.parametrize("words", TOLD, ids=lambda words: f"{words.label}-{words.status}")
def test_no_code_lets_a_channel_pay_twice(words: Told) -> None:
    """A new GUID is allowed only where the act was certainly not executed."""
    if words.executed is not Tri.NO:
        assert words.new_guid is Tri.NO
    if words.label == "E901":
        assert "fail" not in (words.title + words.detail).lower()


def test_the_words_for_what_the_hub_does_not_send_do_not_promise_it() -> None:
    """Parked, held and interactive rows wait for others."""
    assert "sends it by itself" in told("E902", DefiniteCodes(), hub_sends=True).detail
    assert "not sent unless" in told("E902", DefiniteCodes()).detail


DEFINITE = [
    ("0000", True, True),
    ("B200", False, True),
    ("B299", False, True),
    ("E500", False, True),
    ("B2", False, False),
    ("B2000", False, False),
    ("B300", False, False),
    ("b200", False, False),
    ("E501", False, False),
    ("00000", False, False),
    ("", False, False),
    ("E901", False, False),
    ("B2\n0", False, False),
]


@pytest.mark.parametrize(("code", "is_executed", "is_definite"), DEFINITE)
def test_only_the_codes_of_the_contract_are_definite(
    code: str, *, is_executed: bool, is_definite: bool
) -> None:
    """Whole codes, in their own case."""
    codes = DefiniteCodes()
    assert (codes.is_executed(code), codes.is_definite(code)) == (is_executed, is_definite)


def test_other_codes_are_a_setting() -> None:
    """Shell patterns."""
    codes = DefiniteCodes(executed=("OK*",), refused=("NO?",))
    assert codes.is_executed("OK-1")
    assert codes.is_definite("NO1")
    assert not codes.is_definite("0000")
    assert told("OK-1", codes).executed is Tri.YES
    assert told("NO1", codes).executed is Tri.NO

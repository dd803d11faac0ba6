"""A holder that comes late with "not sent" or "in doubt", and a cancel during the call."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.core import Doubt, NotSent, SendOutcome
from relayhub.states import Code, Event, State
from tests.integration.test_relay_late import Move, claimed_again, closed, done, failed, unknown
from tests.world import EXECUTED, START_MS, World, document


@pytest.mark.parametrize("outcome", [NotSent("connect_refused"), Doubt("no_answer", aborted=True)])
def test_a_held_row_stays_held_whatever_its_next_holder_says(
    world: World, outcome: SendOutcome
) -> None:
    """Neither "not sent" nor "in doubt" takes a hold away, or lets it be sent."""
    world.core.during.append(lambda: world.edit(hold="contradiction"))
    world.core.outcomes.append(outcome)
    assert world.post().code == "E901"
    row = world.held()
    assert (row.hold, row.state) == (
        "contradiction",
        State.FAILED if isinstance(outcome, NotSent) else State.UNKNOWN,
    )
    assert world.post().code == "E901"
    assert len(world.core.sent) == 1


NOT_SENT_LATE = [
    pytest.param(unknown, "FAILED", "E902", "E902", id="unknown"),
    pytest.param(failed, "FAILED", "E902", "E902", id="failed"),
    pytest.param(done(EXECUTED), "DONE", "0000", "0000", id="done"),
    pytest.param(closed, "DONE", "E908", "E908", id="closed"),
    pytest.param(claimed_again, "SENT", None, "E903", id="claimed_again"),
]


@pytest.mark.parametrize(("move", "state", "code", "told"), NOT_SENT_LATE)
def test_late_word_that_nothing_left_moves_its_own_claim_only(
    world: World, move: Move, state: str, code: str | None, told: str
) -> None:
    """UNKNOWN under the same claim becomes FAILED; whatever else the row says, stays."""
    world.core.during.append(lambda: move(world))
    world.core.outcomes.append(NotSent("connect_refused"))
    reply = world.post()
    row = world.held()
    assert (row.state, row.code, reply.code) == (state, code, told)
    assert len(world.core.sent) == 1


@pytest.mark.parametrize(("move", "state"), [(unknown, "UNKNOWN"), (claimed_again, "SENT")])
def test_a_late_doubt_changes_nothing(world: World, move: Move, state: str) -> None:
    """The row knows as much already, or is another's."""
    world.core.during.append(lambda: move(world))
    world.core.outcomes.append(Doubt("no_answer", aborted=True))
    reply = world.post()
    assert (world.held().state, reply.code) == (
        state,
        {"UNKNOWN": "E901", "SENT": "E903"}[state],
    )
    assert document(reply)["state"] == state  # Told by the row, not by a fault.
    if state == "SENT":
        assert (world.held().doubted, world.held().attempt) == (True, 2)


def test_a_cancel_during_the_call_ends_what_was_not_sent(world: World) -> None:
    """No write makes FAILED of a row that bears a cancel."""
    cancel: dict[str, Any] = {"by": "atm", "cancel": {"at": START_MS, "by": "atm"}}
    world.core.during.append(lambda: world.move(Event.CANCEL_RECORDED, **cancel))
    world.core.outcomes.append(NotSent("connect_refused"))
    reply = world.post()
    row = world.held()
    assert (reply.code, row.state, row.code) == ("E908", State.DONE, Code.E908)
    assert row.expires_at == START_MS // 1000 + 30 * 86_400
    assert world.hints() == []


def test_a_cancel_during_the_call_does_not_undo_an_answer(world: World) -> None:
    """What was executed was executed."""
    cancel: dict[str, Any] = {"by": "atm", "cancel": {"at": START_MS, "by": "atm"}}
    world.core.during.append(lambda: world.move(Event.CANCEL_RECORDED, **cancel))
    reply = world.post()
    assert (reply.code, world.held().code) == ("0000", "0000")


def test_a_late_cancel_of_an_unknown_row_ends_what_was_not_sent(world: World) -> None:
    """The same past dead_at, from UNKNOWN."""

    def given_up_and_cancelled() -> None:
        unknown(world)
        world.move(Event.CANCEL_RECORDED, by="atm", cancel={"at": world.clock(), "by": "atm"})

    world.core.during.append(given_up_and_cancelled)
    world.core.outcomes.append(NotSent("connect_refused"))
    assert world.post().code == "E908"
    assert world.held().state is State.DONE


def test_a_cancelled_row_on_hold_waits_for_a_person(world: World) -> None:
    """Hold ranks before cancel: neither FAILED nor E908."""
    world.core.during.append(lambda: world.edit(hold="operator", cancel={"at": 1}))
    world.core.outcomes.append(NotSent("connect_refused"))
    assert world.post().code == "E901"
    assert (world.held().state, world.held().hold) == (State.SENT, "operator")


@pytest.mark.parametrize(
    ("aborted", "ask_after_s"), [(True, 72), (False, 90)], ids=["aborted", "left_open"]
)
def test_only_an_abortive_close_lets_the_hub_ask_earlier(
    world: World, *, aborted: bool, ask_after_s: int
) -> None:
    """Else a byte may still leave until the platform has ended the function."""
    world.core.during.append(lambda: world.clock.advance(7))
    world.core.outcomes.append(Doubt("no_answer", aborted=aborted))
    reply = world.post()
    row = world.held()
    assert row.ask_after == START_MS + ask_after_s * 1000
    assert (row.due_at, row.doubted, row.code) == (START_MS + 22_000, True, "E901")
    told = {72: "2027-01-15T08:01:12.000Z", 90: "2027-01-15T08:01:30.000Z"}
    assert document(reply)["ask_after"] == told[ask_after_s]


def test_a_late_abort_never_raises_the_time_from_which_to_ask(world: World) -> None:
    """Lowered only."""
    world.core.during.append(lambda: world.clock.advance(600))
    world.core.outcomes.append(Doubt("no_answer", aborted=True))
    world.post()
    assert world.held().ask_after == START_MS + 90_000


def test_a_doubt_that_is_written_late_stands_under_its_own_claim_only(world: World) -> None:
    """A killed holder's retry must not lower the next attempt's bound."""
    world.core.during.append(lambda: claimed_again(world))
    world.core.outcomes.append(Doubt("no_answer", aborted=True))
    world.post()
    row = world.held()
    assert row.ask_after == world.clock() + 90_000

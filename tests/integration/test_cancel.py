"""A cancel at any moment: its answer is the hub's own document, and what it says holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import NotSent
from relayhub.states import Hold, State
from tests.maintenance import (
    DAY_MS,
    NOT_FOUND,
    accept,
    cancel,
    events,
    processed,
    reprocessor,
    resolve_at,
    sweep,
)
from tests.plant import Works
from tests.world import EXECUTED, REFUSED, START_MS, World, document, refused, reply_lost

COUNTS_MS = START_MS + 65_001  # The first moment at which a NOT_FOUND of `doubt()` counts.
KEYS = {"cancelled", "state", "executed", "code", "guid", "new_guid", "resend", "ask_after"}


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


def _refused(works: Works) -> None:
    from relayhub.core import Answered  # noqa: PLC0415

    works.core.outcomes.append(Answered(REFUSED))
    works.post()


def _ended(works: Works) -> None:
    works.fail()
    cancel(works)


MAKE: dict[str, Callable[[Works], object]] = {
    "none": lambda _: None,
    "RECEIVED": accept,
    "SENT": World.kill,
    "UNKNOWN": World.doubt,
    "FAILED": World.fail,
    "DONE(0000)": World.post,
    "DONE(B201)": _refused,
    "DONE(E908)": _ended,
}
# What is told: the status, then cancelled, state, code, executed, new_guid.
TOLD: dict[str, tuple[int, bool, str, str, str, str]] = {
    "none": (200, True, "DONE", "E908", "no", "yes"),
    "RECEIVED": (200, True, "DONE", "E908", "no", "yes"),
    "SENT": (202, False, "SENT", "E903", "unknown", "no"),
    "UNKNOWN": (202, False, "UNKNOWN", "E901", "unknown", "no"),
    "FAILED": (200, True, "DONE", "E908", "no", "yes"),
    "DONE(0000)": (200, False, "DONE", "0000", "yes", "no"),
    "DONE(B201)": (200, False, "DONE", "B201", "no", "yes"),
    "DONE(E908)": (200, True, "DONE", "E908", "no", "yes"),
}


def told(works: Works, channel: str = "atm") -> tuple[int, bool, str, str, str, str]:
    """Cancel, check that the answer is the hub's own document, and return what it says."""
    reply = cancel(works, channel=channel)
    says = document(reply)
    assert reply.content_type == "application/json"
    assert says.keys() >= KEYS
    assert "Idempotent-Replayed" not in reply.headers
    return (
        reply.status,
        says["cancelled"],
        says["state"],
        says["code"],
        says["executed"],
        says["new_guid"],
    )


@pytest.mark.parametrize("state", MAKE)
def test_a_cancel_tells_what_became_of_the_request_and_a_repeat_the_same(
    works: Works, state: str
) -> None:
    """In every state; the repeat writes nothing."""
    MAKE[state](works)
    sent = len(works.core.sent)
    assert told(works) == TOLD[state]
    after = works.item()
    works.clock.advance(1)
    assert told(works) == TOLD[state]
    assert (works.item(), len(works.core.sent)) == (after, sent)


@pytest.mark.parametrize("state", ["SENT", "UNKNOWN"])
def test_a_cancel_of_what_may_be_executed_is_recorded_with_the_time_to_ask(
    works: Works, state: str
) -> None:
    """202 and ask_after; who asked for it, and when, stands in the row."""
    MAKE[state](works)
    works.clock.advance(3)
    reply = document(cancel(works))
    row = works.held()
    assert row.cancel == {"at": START_MS + 3_000, "by": "atm"}
    assert reply["ask_after"] == document(works.get())["ask_after"] is not None
    assert (row.state, events(works)[-1]) == (state, "cancel_recorded")


@pytest.mark.parametrize("state", [each for each in MAKE if each != "none"])
def test_another_channels_cancel_changes_and_tells_nothing(works: Works, state: str) -> None:
    """E904, the same for every state."""
    MAKE[state](works)
    before = works.item()
    reply = cancel(works, channel="app")
    assert (reply.status, reply.code, works.item()) == (422, "E904", before)
    assert document(reply)["state"] is None


@pytest.mark.parametrize("state", [each for each in MAKE if each != "none"])
def test_a_row_of_a_newer_version_is_left_alone(works: Works, state: str) -> None:
    """E903, and nothing is written."""
    MAKE[state](works)
    works.edit(schema=2)
    before = works.item()
    assert (cancel(works).code, works.item()) == ("E903", before)


@pytest.mark.parametrize("hold", list(Hold))
@pytest.mark.parametrize("state", ["RECEIVED", "FAILED", "DONE(0000)", "DONE(E908)"])
def test_a_row_on_hold_is_not_ended_by_a_cancel(works: Works, state: str, hold: Hold) -> None:
    """Hold ranks before cancel: nothing is written, and nobody says "not executed"."""
    MAKE[state](works)
    works.edit(hold=hold)
    before = works.item()
    status, is_cancelled, _, code, executed, new_guid = told(works)
    assert (status, is_cancelled, code, executed, new_guid) == (202, False, "E901", "unknown", "no")
    assert works.item() == before


@pytest.mark.parametrize("state", ["SENT", "UNKNOWN"])
def test_a_cancel_of_a_held_doubt_is_recorded(works: Works, state: str) -> None:
    """It says nothing of the outcome, so the hold does not stop it."""
    MAKE[state](works)
    works.edit(hold="operator")
    assert told(works)[:2] == (202, False)
    assert works.held().cancel is not None


def test_a_request_that_its_cancel_overtook_is_not_executed(works: Works) -> None:
    """Whatever its body; and it is told why."""
    cancel(works)
    row = works.held()
    assert (row.state, row.code, row.fingerprint) == (State.DONE, "E908", None)
    for body in (b'{"amount":100}', b'{"amount":7}'):
        reply = works.post(body=body)
        assert (reply.status, reply.code) == (410, "E908")
    assert works.core.sent == []
    assert works.post(channel="app").code == "E904"


@pytest.mark.parametrize("parked", [None, "cap"])
def test_what_was_cancelled_is_sent_by_nobody(works: Works, parked: str | None) -> None:
    """Not by a hint, a sweep, a resend; for a day."""
    works.fail()
    works.edit(parked=parked)
    cancel(works)
    for _ in range(4):
        works.core.findings[:] = [NOT_FOUND]
        works.clock.ms += DAY_MS // 4
        sweep(works)
        reprocessor(works)
        assert works.post().code == "E908"
    assert len(works.core.sent) == 1


@pytest.mark.parametrize("state", ["SENT", "UNKNOWN"])
def test_a_recorded_cancel_and_a_not_found_end_in_e908(works: Works, state: str) -> None:
    """Never in a resend, also not by the channel."""
    MAKE[state](works)
    cancel(works)
    at_ms = (works.held().ask_after or 0) + 1
    resolve_at(works, at_ms, NOT_FOUND)
    row = resolve_at(works, at_ms + 30_000, NOT_FOUND)
    assert (row.state, row.code) == (State.DONE, "E908")
    assert told(works)[:2] == (200, True)
    assert works.post().code == "E908"
    assert (len(works.core.sent), works.hints()) == (1, [])


@pytest.mark.parametrize("state", ["SENT", "UNKNOWN"])
def test_a_recorded_cancel_and_an_execution_end_in_the_answer(works: Works, state: str) -> None:
    """It was executed: the channel must reverse it, and is told so."""
    MAKE[state](works)
    cancel(works)
    row = resolve_at(works, (works.held().ask_after or 0) + 1, processed())
    assert (row.state, row.code) == (State.DONE, "0000")
    assert told(works) == TOLD["DONE(0000)"]
    assert works.post().body == EXECUTED.body


@pytest.mark.parametrize("state", ["none", "FAILED", "SENT", "DONE(0000)"])
def test_a_lost_reply_of_the_ledger_is_made_up_for(works: Works, state: str) -> None:
    """The retry meets what the first write made."""
    MAKE[state](works)
    for name in ("put_item", "update_item"):
        works.dynamo.faults[name].append(reply_lost)
    assert told(works) == TOLD[state]
    assert events(works).count("cancelled" if state == "FAILED" else "cancel_recorded") <= 1


@pytest.mark.parametrize("state", ["none", "FAILED"])
def test_a_cancel_that_the_ledger_never_confirmed_is_not_told_as_done(
    works: Works, state: str
) -> None:
    """It may stand or not: E901, and a repeat tells."""
    MAKE[state](works)
    name = "put_item" if state == "none" else "update_item"
    works.dynamo.faults[name] += [reply_lost, reply_lost]
    assert cancel(works).code == "E901"
    works.dynamo.faults.clear()
    assert told(works) == TOLD[state]


@pytest.mark.parametrize("state", ["none", "FAILED"])
def test_a_cancel_that_the_ledger_refused_is_told_as_not_accepted(works: Works, state: str) -> None:
    """E906: try again."""
    MAKE[state](works)
    name = "put_item" if state == "none" else "update_item"
    works.dynamo.faults[name] += [refused("ThrottlingException")] * 2
    reply = cancel(works)
    assert (reply.status, reply.code) == (503, "E906")
    assert told(works) == TOLD[state]


def test_a_customer_who_cancels_and_pays_anew_pays_once(works: Works) -> None:
    """E902, cancel, a new GUID; the core heals: the act is executed once."""
    works.fail("OLD")
    says = document(works.get("OLD"))
    assert (says["code"], says["new_guid"]) == ("E902", "after_cancel")
    assert document(cancel(works, "OLD"))["new_guid"] == "yes"
    assert works.post("NEW").code == "0000"
    for _ in range(3):
        works.core.findings[:] = [NOT_FOUND] * 5
        works.clock.advance(600)
        sweep(works)
        reprocessor(works, "OLD")
        works.post("OLD")
    assert [request.guid for request in works.core.sent] == ["OLD", "NEW"]
    assert works.held("OLD").code == "E908"


def test_a_tombstone_goes_when_no_resend_can_come_any_more(works: Works) -> None:
    """It is kept for the whole retention."""
    cancel(works)
    assert works.held().expires_at == START_MS // 1000 + 30 * 86_400


def test_nothing_of_a_malformed_guid_is_written(works: Works) -> None:
    """E905, as for every call."""
    reply: Any = cancel(works, "!gate")
    assert (reply.status, reply.code, works.dynamo.calls) == (400, "E905", [])


def test_a_holder_that_sent_nothing_ends_what_was_cancelled_meanwhile(works: Works) -> None:
    """No write makes FAILED of a row that bears a cancel."""
    works.core.during.append(lambda: cancel(works))
    works.core.outcomes.append(NotSent("connect_refused"))
    reply = works.post()
    row = works.held()
    assert (row.state, row.code, reply.code) == (State.DONE, "E908", "E908")
    assert works.hints() == []

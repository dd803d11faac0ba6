"""Until when the hub may send what was not sent, and who may; and which flag ranks before which."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.core import NotSent
from relayhub.flows.reprocess import Taken
from relayhub.flows.steps import end_unexecuted
from relayhub.ledger import Found
from relayhub.states import Event, State
from tests.maintenance import (
    DAY_MS,
    NOT_FOUND,
    UNDECIDED,
    cancel,
    events,
    processed,
    reprocessor,
    resolve_at,
    resolver,
    sweep,
)
from tests.plant import Plant, Works
from tests.world import START_MS, document

INTERACTIVE = {"delivery": "interactive"}


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


@pytest.mark.parametrize(
    ("headers", "calls", "code"),
    [(INTERACTIVE, 0, "E908"), ({}, 1, "0000")],
    ids=["interactive", "deferred"],
)
def test_after_a_day_of_schedules_a_refused_request_was_called_as_its_delivery_says(
    aws: None, headers: dict[str, str], calls: int, code: str
) -> None:
    """Refused, the core heals after 121 s, ten resends: interactive never, deferred once."""
    del aws
    plant = Plant(shards=1, read_shards=1)
    plant.bank.is_away = True
    plant.post(headers=headers)
    for _ in range(2):
        plant.schedules(1)
    plant.clock.advance(1)
    plant.bank.is_away = False
    told = []
    for _ in range(10):
        plant.schedules(1)
        plant.clock.ms += DAY_MS // 10
        told.append(plant.post(headers=headers).code)
    assert told == [code] * 10
    row = plant.held()
    assert (row.state, row.code, sum(plant.bank.executed.values())) == (State.DONE, code, calls)
    assert len(plant.bank.sends) == calls


@pytest.mark.parametrize(("left_ms", "code"), [(1, "0000"), (0, "E908")])
@pytest.mark.parametrize("headers", [{}, INTERACTIVE], ids=["deferred", "interactive"])
def test_a_channels_own_resend_is_bound_by_validity_too(
    works: Works, headers: dict[str, str], left_ms: int, code: str
) -> None:
    """The last millisecond before valid_until it is sent; at it, it ends."""
    works.fail(headers=headers)
    works.clock.ms = (works.held().valid_until or 0) - left_ms
    assert works.post(headers=headers).code == code
    assert len(works.core.sent) == (2 if code == "0000" else 1)


def test_a_resend_that_expires_before_its_claim_is_not_sent(works: Works) -> None:
    """Validity stands in the condition of the channel's claim as well."""
    works.fail()
    works.dynamo.before["update_item"].append(lambda: works.edit(valid_until=START_MS))
    works.post()
    assert (len(works.core.sent), works.held().state) == (1, State.FAILED)


def test_a_doubt_has_no_expiry(works: Works) -> None:
    """Past its validity it is resolved first: executed is executed."""
    works.doubt()
    works.clock.ms = START_MS + 2 * DAY_MS
    sweep(works)
    assert works.post().code == "E901"
    row = resolve_at(works, START_MS + 2 * DAY_MS, UNDECIDED)
    assert row.state is State.UNKNOWN
    assert resolve_at(works, START_MS + 3 * DAY_MS, processed()).code == "0000"


def test_a_doubt_that_was_not_executed_ends_when_it_is_over(works: Works) -> None:
    """NOT_FOUND makes it FAILED; then its validity ends it, and nothing is sent."""
    works.doubt()
    resolve_at(works, START_MS + 2 * DAY_MS, NOT_FOUND)
    row = resolve_at(works, START_MS + 2 * DAY_MS + 30_000, NOT_FOUND)
    assert (row.state, works.core.sent[1:]) == (State.FAILED, [])
    sweep(works)
    assert (works.held().state, works.held().code) == (State.DONE, "E908")
    assert len(works.core.sent) == 1


def test_an_interactive_doubt_that_was_not_executed_is_its_channels_to_resend(
    works: Works,
) -> None:
    """The hub asks, and never sends by itself; its channel is told so."""
    works.doubt(headers={**INTERACTIVE, "valid-until": "2027-01-15T09:00:00Z"})
    resolve_at(works, START_MS + 65_001, NOT_FOUND)
    resolve_at(works, START_MS + 95_001, NOT_FOUND)
    assert reprocessor(works) is Taken.DROPPED
    told = document(works.get())
    assert (told["code"], "not sent unless you resend" in told["detail"]) == ("E902", True)
    works.core.findings.append(NOT_FOUND)
    headers = {**INTERACTIVE, "valid-until": "2027-01-15T09:00:00Z"}
    assert works.post(headers=headers).code == "0000"


@pytest.mark.parametrize(
    ("headers", "valid_ms"),
    [
        ({}, DAY_MS),
        (INTERACTIVE, 120_000),
        ({"valid-until": "2027-01-15T17:00:30+09:00"}, 30_000),
        ({**INTERACTIVE, "valid-until": "2027-01-16T08:00:00Z"}, DAY_MS),
    ],
    ids=["deferred", "interactive", "with_an_offset", "interactive_for_a_day"],
)
def test_how_long_a_request_is_valid(works: Works, headers: dict[str, str], valid_ms: int) -> None:
    """By its delivery, or as its channel says."""
    assert works.fail(headers=headers).valid_until == START_MS + valid_ms


def test_a_time_without_an_offset_is_refused(works: Works) -> None:
    """Nobody guesses whose noon it is."""
    assert works.post(headers={"valid-until": "2027-01-16T08:00:00"}).code == "E905"
    assert works.row() is None


def test_the_default_delivery_is_a_setting(aws: None) -> None:
    """A hub of customers who wait."""
    del aws
    works = Works(delivery="interactive")
    row = works.fail()
    assert (row.delivery, row.valid_until, works.hints()) == ("interactive", START_MS + 120_000, [])


CANCELLED = {"cancel": {"at": 1, "by": "atm"}}
OVER = {"valid_until": START_MS}
RANK: list[Any] = [
    pytest.param({"hold": "operator", **CANCELLED, **OVER}, "E901", None, id="hold_first"),
    pytest.param({**CANCELLED, **OVER, "parked": "cap"}, "E908", "cancelled", id="then_cancel"),
    pytest.param({**OVER, "parked": "cap"}, "E908", "expired", id="then_validity"),
    pytest.param({"parked": "cap"}, "0000", "claimed", id="parked_last"),
]


@pytest.mark.parametrize(("flags", "code", "event"), RANK)
def test_hold_ranks_before_cancel_before_validity_before_parked(
    works: Works, flags: dict[str, Any], code: str, event: str | None
) -> None:
    """For a channel's resend; parked stops the hub alone."""
    works.fail()
    works.edit(**flags)
    before = works.item()
    assert works.post().code == code
    if event is None:
        assert works.item() == before
    else:
        assert event in events(works)[2:]
    assert len(works.core.sent) == (2 if code == "0000" else 1)


@pytest.mark.parametrize(("flags", "code", "event"), RANK)
def test_the_hub_itself_keeps_the_same_rank(
    works: Works, flags: dict[str, Any], code: str, event: str | None
) -> None:
    """Reprocessor and sweep send none of them."""
    works.fail()
    works.edit(due_at=START_MS, **flags)
    works.core.findings.append(NOT_FOUND)
    reprocessor(works)
    sweep(works)
    row = works.held()
    assert (row.state is State.DONE) is (code == "E908")
    if row.state is State.DONE:
        assert events(works)[-1] == event
    assert len(works.core.sent) == 1


@pytest.mark.parametrize("parked", [None, "cap"])
def test_an_end_by_validity_yields_to_a_hold_that_came_first(
    works: Works, parked: str | None
) -> None:
    """The write of E908 requires that there is no hold."""
    works.fail()
    works.edit(parked=parked, valid_until=START_MS, due_at=START_MS)
    works.dynamo.before["update_item"].append(lambda: works.edit(hold="operator"))
    sweep(works)
    assert works.held().state is State.FAILED


@pytest.mark.parametrize("event", [Event.CANCELLED, Event.EXPIRED])
def test_a_hold_alone_stops_the_write_of_e908(works: Works, event: Event) -> None:
    """In the write's own condition, also if whoever writes has read the hold and gone on."""
    works.fail()
    works.edit(hold="operator")
    outcome = end_unexecuted(works.hub, works.held(), event, "reprocessor")
    assert isinstance(outcome, Found)
    assert works.held().state is State.FAILED


def test_a_cancel_wins_over_an_expiry_in_what_is_written(works: Works) -> None:
    """Both are true; the history says that it was cancelled."""
    works.fail()
    works.clock.ms = START_MS + DAY_MS
    cancel(works)
    assert events(works)[-1] == "cancelled"


def test_a_request_that_was_never_sent_keeps_its_first_validity(works: Works) -> None:
    """A resend does not renew it; resolver and sweep have nothing to say before."""
    works.fail()
    for _ in range(5):
        works.clock.ms += DAY_MS // 6
        works.core.outcomes.append(NotSent("connect_refused"))
        works.post()
        resolver(works)
    assert works.held().valid_until == START_MS + DAY_MS
    works.clock.ms = START_MS + DAY_MS
    assert works.post().code == "E908"

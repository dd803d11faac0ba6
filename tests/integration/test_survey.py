"""What is open now: counted from the whole index, with ages and the money in doubt."""

from __future__ import annotations

from decimal import Decimal

import pytest

from relayhub import telemetry
from relayhub.flows import survey
from relayhub.gauges import Gauge
from relayhub.row import HELD, PARKED
from relayhub.states import Event, Hold, State
from relayhub.surveys import Surveys
from tests.emulated import refused
from tests.maintenance import accept
from tests.plant import Works
from tests.world import TABLE

MONEY = (("amount", "/amount"), ("currency", "/currency"), ("reference", "/ref"))


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS that keeps the money fields."""
    del aws
    return Works(money_fields=MONEY)


def look(works: Works, *, left_ms: int = 60_000) -> survey.Survey:
    """Look at all that is open."""
    surveys = Surveys(works.dynamo, TABLE, pause=lambda _: None)
    return survey.run(works.hub, surveys, works.clock() + left_ms)


def doubt(works: Works, guid: str, amount: str, currency: str = "JPY", **more: str) -> None:
    """Make a row in doubt over so much money."""
    body = f'{{"amount":{amount},"currency":"{currency}","ref":"R"}}'.encode()
    works.doubt(guid, body=body, **more)


def test_every_open_row_is_counted_in_its_group(works: Works) -> None:
    """Also those that are not due; DONE ones are not open."""
    works.post("D")
    works.fail("F")
    works.fail("P")
    works.move(Event.PARKED, "P", parked="cap")
    works.fail("H")
    works.move(Event.HELD, "H", hold=Hold.OPERATOR)
    works.kill("S")
    doubt(works, "U", "1")
    accept(works, "R")
    found = look(works)
    assert found.complete
    groups = (State.FAILED, PARKED, HELD, State.SENT, State.UNKNOWN, State.RECEIVED)
    assert {group: found.rows[group] for group in groups} == dict.fromkeys(groups, 1)


def test_the_sums_in_doubt_are_exact_by_channel_and_currency(works: Works) -> None:
    """Rows on hold among them; what bears no number is counted apart."""
    doubt(works, "U1", "0.10")
    doubt(works, "U2", "0.20")
    doubt(works, "U3", "7", "EUR", channel="app")
    works.move(Event.HELD, "U3", hold=Hold.FORGOTTEN)
    works.doubt("U4", body=b"{}")
    sums = look(works).in_doubt
    assert sums.by == {("atm", "JPY"): Decimal("0.30"), ("app", "EUR"): Decimal(7)}
    assert (sums.rows["atm", "JPY"], sums.uncounted) == (2, 1)


def test_a_held_row_that_is_not_in_doubt_is_in_no_sum(works: Works) -> None:
    """It stands in the same group of the index as those that are."""
    works.fail("F", body=b'{"amount":5,"currency":"JPY"}')
    works.move(Event.HELD, "F", hold=Hold.OPERATOR)
    found = look(works)
    assert (found.in_doubt.by, found.rows[HELD]) == ({}, 1)


def test_the_oldest_age_counts_from_the_acceptance(works: Works) -> None:
    """Not from when it is due: a row that is asked about again and again is as old as it is."""
    doubt(works, "U1", "1")
    works.clock.advance(100)
    doubt(works, "U2", "1")
    works.clock.advance(50)
    assert look(works).oldest_age_ms == {"UNKNOWN": 150_000}


def test_the_gauges_are_by_channel_and_by_currency_alone(works: Works) -> None:
    """An alarm needs a metric whose dimensions it can name."""
    doubt(works, "U1", "3")
    doubt(works, "U2", "4", channel="app")
    gauges = survey.gauges(look(works))
    assert Gauge("MoneyInDoubt", 7.0, {"currency": "JPY"}) in gauges
    assert Gauge("MoneyInDoubt", 4.0, {"channel": "app", "currency": "JPY"}) in gauges
    assert len(gauges) == 3


def test_a_shard_that_cannot_be_read_hides_no_other(works: Works) -> None:
    """And the survey says that it is not whole."""
    doubt(works, "U1", "3")
    works.dynamo.faults["query"] += [refused("AccessDeniedException")]
    found = look(works)
    assert (found.rows[State.UNKNOWN], found.complete) == (1, False)


def test_rows_that_cannot_be_read_make_it_incomplete(works: Works) -> None:
    """The counts stand all the same."""
    doubt(works, "U1", "3")
    works.dynamo.faults["batch_get_item"] += [refused("AccessDeniedException")]
    found = look(works)
    assert (found.rows[State.UNKNOWN], found.in_doubt.by, found.complete) == (1, {}, False)


def test_without_time_nothing_is_read(works: Works) -> None:
    """The function must still write what its run came to."""
    doubt(works, "U1", "3")
    before = len(works.dynamo.calls)
    found = look(works, left_ms=7_000)
    assert (found.rows, found.complete) == ({}, False)
    assert len(works.dynamo.calls) == before


def test_a_currency_that_is_none_spoils_no_other_sum(works: Works) -> None:
    """A metric takes no text as it comes; what the rows bear is as it was written."""
    doubt(works, "U1", "3", "€")
    doubt(works, "U2", "4", "   ")
    doubt(works, "U3", "5", channel="app/münchen")
    gauges = survey.gauges(look(works))
    assert Gauge("MoneyInDoubt", 7.0, {"currency": "other"}) in gauges
    assert Gauge("MoneyInDoubt", 5.0, {"currency": "JPY"}) in gauges
    assert all(value.isascii() for each in gauges for value in each.about.values())


def test_a_row_that_moved_between_two_looks_is_counted_once(works: Works) -> None:
    """It stood in doubt, then on hold, and the reading takes no GUID twice."""
    doubt(works, "U1", "3")

    def held() -> None:
        works.move(Event.HELD, "U1", hold=Hold.FORGOTTEN)

    shards = works.hub.settings.read_shards
    works.dynamo.before["query"] += [*([lambda: None] * 2 * shards), held]
    found = look(works)
    assert (found.rows[State.UNKNOWN], found.rows[HELD], found.complete) == (1, 1, True)
    assert found.in_doubt.by == {("atm", "JPY"): Decimal(3)}


@pytest.mark.parametrize("is_complete", [True, False])
def test_an_age_of_nothing_is_told_only_where_all_was_seen(
    capsys: pytest.CaptureFixture[str], *, is_complete: bool
) -> None:
    """Else a survey without time would end the alarm in the middle of an incident."""
    telemetry.surveyed(survey.Survey(complete=is_complete), core_is_closed=False)
    telemetry.metrics.flush_metrics()
    assert ("OldestAge.UNKNOWN" in capsys.readouterr().out) is is_complete

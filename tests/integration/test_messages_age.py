"""The ledger's memory ends, a topic does not: what is older than the memory is never executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from relayhub.core import Answered, Doubt, NotSent
from relayhub.message import rfc3339
from relayhub.settings import MESSAGE_AHEAD_S, SettingsError, checked
from tests.maintenance import purger
from tests.message_events import (
    TOPIC,
    Event,
    deliver,
    is_taken,
    kafka_event,
    kafka_record,
    put_aside,
    sqs_event,
    sqs_message,
)
from tests.plant import Works
from tests.world import EXECUTED, START_MS, never_arrives, refused

DAY_S = 86_400
DAY_MS = DAY_S * 1000
LIMIT_MS = 28 * DAY_MS  # The retention of 30 days less the margin of 2.
LEAST_MARGIN_S = DAY_S + MESSAGE_AHEAD_S + 5  # By the longest resend, the time ahead, the skew.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


def by_sqs(sent_ms: int, **more: Any) -> Event:
    """Return the event of a message sent then."""
    return sqs_event(sqs_message(sent_ms=sent_ms, **more))


def by_kafka(sent_ms: int, **more: Any) -> Event:
    """Return the event of a record sent then."""
    return kafka_event([kafka_record(sent_ms=sent_ms, **more)])


BY = pytest.mark.parametrize("event_at", [by_sqs, by_kafka], ids=["sqs", "kafka"])


@BY
def test_a_message_past_the_memory_and_without_a_row_is_put_aside(
    works: Works, event_at: Callable[[int], Event]
) -> None:
    """E907 a millisecond past the limit: one read, nothing is written or sent."""
    assert is_taken(works, event_at(START_MS - LIMIT_MS - 1))
    (aside,) = put_aside(works)
    assert (aside["code"], aside["guid"]) == ("E907", "G-1")
    assert "may have been executed then" in aside["reason"]
    assert (works.row(), works.core.sent, works.dynamo.calls) == (None, [], ["get_item"])


@BY
def test_a_message_within_the_memory_costs_no_read(
    works: Works, event_at: Callable[[int], Event]
) -> None:
    """At the limit itself it is still taken as new."""
    assert is_taken(works, event_at(START_MS - LIMIT_MS))
    assert (len(works.core.sent), put_aside(works)) == (1, [])
    assert works.dynamo.calls == ["put_item", "update_item"]


def test_a_purged_topic_that_is_read_from_the_beginning_executes_nothing(works: Works) -> None:
    """The group lost its offsets: each record is put aside and counted, each time it is read."""
    records = [kafka_record(f"r-{n}", sent_ms=START_MS + n * 1000) for n in range(20)]
    topic = kafka_event(records[:12], records[12:])
    works.clock.ms = START_MS + 20_000
    assert is_taken(works, topic)
    assert is_taken(works, topic)
    assert len(works.core.sent) == 20
    works.clock.ms += 30 * DAY_MS
    assert purger(works).deleted == 20
    for times in (1, 2):
        assert is_taken(works, topic)
        assert (len(works.core.sent), works.noted("message_rejected")) == (20, 20 * times)
    aside = put_aside(works)
    assert {each["code"] for each in aside} == {"E907"}
    places = [(each["origin"]["partition"], each["origin"]["offset"]) for each in aside]
    assert set(places) == {(0, n) for n in range(12)} | {(1, n) for n in range(8)}


def test_rows_that_are_past_their_time_but_there_still_answer(works: Works) -> None:
    """TTL is days late: a replay, not E907; no message of the topic is put aside."""
    topic = kafka_event([kafka_record(f"r-{number}") for number in range(5)])
    is_taken(works, topic)
    works.clock.ms += 45 * DAY_MS
    assert is_taken(works, topic)
    assert (len(works.core.sent), put_aside(works)) == (5, [])


STATES: list[Any] = [
    pytest.param(Answered(EXECUTED), {}, "DONE", 1, id="done"),
    pytest.param(Doubt("no_answer", aborted=True), {}, "UNKNOWN", 1, id="unknown"),
    pytest.param(NotSent("refused"), {}, "FAILED", 1, id="left_to_the_hub"),
    pytest.param(NotSent("refused"), {"delivery": "interactive"}, "FAILED", 1, id="interactive"),
]


@pytest.mark.parametrize(("outcome", "attributes", "state", "sends"), STATES)
def test_an_old_message_that_has_a_row_is_answered_from_it(
    works: Works, outcome: Any, attributes: dict[str, str], state: str, sends: int
) -> None:
    """Whatever its age, it does as a young one does."""
    event = by_sqs(START_MS, attributes=attributes)
    works.core.outcomes.append(outcome)
    deliver(works, event)
    works.edit(valid_until=START_MS + 100 * DAY_MS)
    works.clock.ms += LIMIT_MS + 1
    assert deliver(works, event) == []
    assert (works.held().state, len(works.core.sent), put_aside(works)) == (state, sends, [])


@BY
def test_another_request_of_an_old_message_is_told_by_its_row(
    works: Works, event_at: Callable[[int], Event]
) -> None:
    """E904, not E907: that one belongs to another request, whatever its age."""
    is_taken(works, event_at(START_MS))
    works.edit(fingerprint=b"f" * 32)
    works.clock.ms += LIMIT_MS + 1
    assert is_taken(works, event_at(START_MS))
    assert [each["code"] for each in put_aside(works)] == ["E904"]


@pytest.mark.parametrize("fault", [refused("ThrottlingException"), never_arrives])
def test_an_old_message_whose_row_cannot_be_read_comes_again(works: Works, fault: Any) -> None:
    """A ledger that does not answer is not taken for one without the row."""
    works.dynamo.faults["get_item"] += [fault] * 2
    event = by_sqs(START_MS - LIMIT_MS - 1)
    assert deliver(works, event) == ["m-1"]
    assert (put_aside(works), works.core.sent) == ([], [])
    assert deliver(works, event) == []
    assert [each["code"] for each in put_aside(works)] == ["E907"]


MARGINS: list[Any] = [
    pytest.param({}, 0, id="default"),
    pytest.param({"age_margin_s": LEAST_MARGIN_S}, MESSAGE_AHEAD_S, id="least_and_clock_ahead"),
]


@pytest.mark.parametrize(("margin", "ahead_s"), MARGINS)
@BY
def test_the_last_duplicate_of_a_channel_is_never_executed_again(
    aws: None, event_at: Callable[[int], Event], margin: dict[str, int], ahead_s: int
) -> None:
    """It bears its own time, as late as the channel resends; before its row is gone, and after."""
    del aws
    works = Works(**margin)
    checked(works.hub.settings)
    is_taken(works, event_at(START_MS))
    duplicate = event_at(START_MS + DAY_MS + ahead_s * 1000)
    expires_ms = (works.held().expires_at or 0) * 1000
    works.clock.ms = expires_ms - 1
    assert purger(works).deleted == 0
    assert is_taken(works, duplicate)
    assert put_aside(works) == []
    works.clock.ms = expires_ms
    assert purger(works).deleted == 1
    assert is_taken(works, duplicate)
    assert [each["code"] for each in put_aside(works)] == ["E907"]
    assert len(works.core.sent) == 1


def test_a_margin_below_the_longest_resend_would_execute_twice(aws: None) -> None:
    """Which is why such settings do not start."""
    del aws
    works = Works(age_margin_s=DAY_S - 1)
    with pytest.raises(SettingsError, match="AGE_MARGIN_S"):
        checked(works.hub.settings)
    with pytest.raises(SettingsError, match=f"at least {LEAST_MARGIN_S}"):
        checked(replace(works.hub.settings, age_margin_s=LEAST_MARGIN_S - 1))
    is_taken(works, by_kafka(START_MS))
    works.clock.ms = START_MS + 30 * DAY_MS
    purger(works)
    assert is_taken(works, by_kafka(START_MS + DAY_MS))
    assert len(works.core.sent) == 2


REDRIVEN: list[Any] = [
    pytest.param(START_MS - LIMIT_MS - 1, START_MS, ["E907"], id="sent_anew"),
    pytest.param(START_MS - LIMIT_MS, START_MS, [], id="within_the_memory"),
    pytest.param(START_MS, START_MS - LIMIT_MS - 1, ["E907"], id="never_made_younger"),
    pytest.param("yesterday", START_MS, ["E905"], id="no_time"),
    pytest.param("-1", START_MS, ["E905"], id="negative"),
]


@pytest.mark.parametrize(("first_ms", "sent_ms", "aside"), REDRIVEN)
def test_a_redriven_message_is_as_old_as_its_first_sending(
    works: Works, first_ms: Any, sent_ms: int, aside: list[str]
) -> None:
    """A redrive sends it anew, with a new time of the queue's: the older of the two counts."""
    attributes = {"first-sent-at": str(first_ms)}
    assert deliver(works, by_sqs(sent_ms, attributes=attributes)) == []
    assert [each["code"] for each in put_aside(works)] == aside
    assert len(works.core.sent) == (0 if aside else 1)


def test_a_records_own_header_of_that_name_does_not_make_it_older(works: Works) -> None:
    """It is the hub's own mark, by SQS alone."""
    is_taken(works, by_kafka(START_MS, headers=[("first-sent-at", b"1")]))
    assert len(works.core.sent) == 1


UUID7 = f"{START_MS - LIMIT_MS - 1:012x}7abc8def0123456789ab"


@BY
@pytest.mark.parametrize(("guid_time", "sends"), [(True, 0), (False, 1)], ids=["auto", "off"])
def test_a_guids_own_birth_counts_beside_the_messages_time(
    aws: None, event_at: Callable[..., Event], *, guid_time: bool, sends: int
) -> None:
    """A message of now about an act of then: E907, unless GUIDs only look like times."""
    del aws
    works = Works(guid_time=guid_time)
    assert is_taken(works, event_at(START_MS, guid=UUID7))
    assert (len(works.core.sent), len(put_aside(works))) == (sends, 1 - sends)


def test_a_messages_time_counts_where_guids_bear_none(aws: None) -> None:
    """The setting about GUIDs says nothing of messages."""
    del aws
    works = Works(guid_time=False)
    assert is_taken(works, by_kafka(START_MS - LIMIT_MS - 1))
    (aside,) = put_aside(works)
    assert (aside["code"], aside["origin"]["topic"], works.core.sent) == ("E907", TOPIC, [])


def test_a_raised_retention_does_not_bring_back_what_is_gone(aws: None) -> None:
    """The shortest retention ever in force counts, as long as the settings say so."""
    del aws
    works = Works(retention_s=60 * DAY_S, age_horizon_s=30 * DAY_S)
    assert is_taken(works, by_kafka(START_MS - LIMIT_MS - 1))
    assert is_taken(works, by_kafka(START_MS - LIMIT_MS, guid="G-2"))
    assert ([each.guid for each in works.core.sent], len(put_aside(works))) == (["G-2"], 1)


UNTIL = rfc3339(START_MS + DAY_MS)
BOTH: list[Any] = [
    pytest.param(by_sqs(START_MS, attributes={"valid-until": UNTIL}), id="sqs"),
    pytest.param(by_kafka(START_MS, headers=[("valid-until", UNTIL.encode())]), id="kafka"),
]


@pytest.mark.parametrize("event", BOTH)
def test_what_is_older_than_the_memory_and_over_is_too_old(works: Works, event: Event) -> None:
    """Never E905, whose words ask for it once more: it may have been executed then."""
    assert is_taken(works, event)
    works.clock.ms += 60 * DAY_MS
    purger(works)
    assert works.row() is None
    assert is_taken(works, event)
    assert ([each["code"] for each in put_aside(works)], len(works.core.sent)) == (["E907"], 1)

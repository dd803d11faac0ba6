"""A message's own time, by which the ledger's memory is guarded; and the hub's own marks in SQS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.message_event_kit import (
    KEY,
    NOW_MS,
    SENT_MS,
    SETTINGS,
    UUID,
    WITH_KEY,
    asked_of,
    by_kafka,
    by_sqs,
    fault_of,
    kafka_one,
    request_of,
)

ACCEPTED = "relayhub-accepted"
NO_TIME = "The message bears no time of its own"
AHEAD = "The message's time lies over an hour ahead"
AHEAD_MS = 3_600_000 + SETTINGS.clock_skew_s * 1000


@pytest.mark.parametrize("sent_ms", [0, 1, SENT_MS, NOW_MS, NOW_MS + AHEAD_MS])
def test_a_message_bears_its_own_time(sent_ms: int) -> None:
    """Of any age, and up to an hour and the clocks' skew ahead; what is too old, the flow says."""
    assert request_of(by_kafka(timestamp=sent_ms)).sent_ms == sent_ms
    attributes = {"SentTimestamp": str(sent_ms)}
    assert request_of(by_sqs(attributes=attributes)).sent_ms == sent_ms


@pytest.mark.parametrize("sent_ms", [NOW_MS + AHEAD_MS + 1, 999_999_999_999_999])
def test_a_time_far_ahead_is_refused(sent_ms: int) -> None:
    """It would keep a message young for ever."""
    assert AHEAD in fault_of(by_kafka(timestamp=sent_ms))
    assert AHEAD in fault_of(by_sqs(attributes={"SentTimestamp": str(sent_ms)}))


def test_the_clocks_skew_is_the_settings() -> None:
    """Without one the hour is the hour."""
    exact = replace(SETTINGS, clock_skew_s=0)
    hour_ms = NOW_MS + 3_600_000
    assert request_of(by_kafka(timestamp=hour_ms, settings=exact)).sent_ms == hour_ms
    assert AHEAD in fault_of(by_kafka(timestamp=hour_ms + 1, settings=exact))


NO_TIMES: list[Any] = [
    *(None, "", "-1", -1, "x", 1.5, "1.5", " 1", "1 ", "1\n", "+1", "1e3", "\u0661", "\u00b2"),
    *(True, [1], {"ms": 1}, 10**15, "1" * 16, "1" * 5_000, "1800000000000, 1800000000000"),
]


@pytest.mark.parametrize("time", NO_TIMES, ids=[str(at) for at in range(len(NO_TIMES))])
def test_a_message_without_a_time_is_refused(time: Any) -> None:
    """-1 is what Kafka has for none; how old the message is, nobody could tell."""
    assert NO_TIME in fault_of(by_kafka(timestamp=time))
    assert NO_TIME in fault_of(by_sqs(attributes={"SentTimestamp": time}))
    assert NO_TIME in fault_of(by_sqs({**WITH_KEY, "first-sent-at": str(time)}))


@pytest.mark.parametrize("held", [None, {}, [], [1], "SentTimestamp", 7])
def test_a_message_without_attributes_has_no_time(held: Any) -> None:
    """Nor does a record without a timestamp."""
    assert NO_TIME in fault_of(by_sqs(attributes=held))
    raw = kafka_one()
    del raw["records"]["receipts-0"][0]["timestamp"]
    assert NO_TIME in fault_of(asked_of(raw))


@pytest.mark.parametrize(
    ("first", "sent_ms"),
    [
        pytest.param(str(SENT_MS - 1), SENT_MS - 1, id="smaller"),
        pytest.param("0", 0, id="zero"),
        pytest.param(str(SENT_MS), SENT_MS, id="equal"),
        pytest.param(str(SENT_MS + 1), SENT_MS, id="larger"),
        pytest.param(str(NOW_MS + AHEAD_MS + 1), SENT_MS, id="far_ahead"),
        pytest.param(str(SENT_MS - 1).encode(), SENT_MS - 1, id="binary"),
    ],
)
@pytest.mark.parametrize("name", ["first-sent-at", "First-Sent-At"])
def test_what_was_put_back_is_as_old_as_its_first_sending(
    name: str, first: str | bytes, sent_ms: int
) -> None:
    """SQS gives it a new time when it is sent anew; nobody makes a message younger by the mark."""
    assert request_of(by_sqs({**WITH_KEY, name: first})).sent_ms == sent_ms


def test_a_first_sending_twice_is_refused() -> None:
    """As any header that counts."""
    headers = {**WITH_KEY, "first-sent-at": str(SENT_MS), "First-Sent-At": str(SENT_MS)}
    assert "The header first-sent-at came twice" in fault_of(by_sqs(headers))


@pytest.mark.parametrize("value", [b"0", b"x", b"\xff", None])
def test_the_hubs_own_marks_do_not_count_by_kafka(value: bytes | None) -> None:
    """Nobody but SQS bears them, so a producer's headers of those names are its own."""
    headers = [(KEY, b"G-1"), ("first-sent-at", value), (ACCEPTED, value)]
    assert request_of(by_kafka(headers)).sent_ms == SENT_MS


@pytest.mark.parametrize(
    ("body", "guid"),
    [
        pytest.param('{"guid":"G-2"}', "G-2", id="as_the_hub_sends_it"),
        pytest.param(f' {{"guid": "{UUID.upper()}"}}', UUID, id="folded"),
    ],
)
@pytest.mark.parametrize("name", [ACCEPTED, ACCEPTED.title()])
def test_an_accepted_requests_message_is_its_turn(name: str, body: str, guid: str) -> None:
    """It bears no request: the row does, and the row's time; a key beside the mark says nothing."""
    asked = by_sqs({name: "1", **WITH_KEY}, body, attributes={})
    assert (asked.guid, asked.request, asked.fault) == (guid, None, "")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param("", "not valid", id="empty"),
        pytest.param("G-1", "not valid", id="no_json"),
        pytest.param('{"guid":"G-1","guid":"G-1"}', "same key twice", id="twice"),
        pytest.param("{}", "Only the hub itself sends", id="no_guid"),
        pytest.param('["G-1"]', "Only the hub itself sends", id="list"),
        pytest.param('"G-1"', "Only the hub itself sends", id="text"),
        pytest.param('{"guid":7}', "The GUID is a number", id="number"),
        pytest.param('{"guid":"G-1","amount":1}', "Only the hub itself sends", id="a_request"),
        pytest.param('{"guid":"!gate"}', "The GUID holds a character", id="own_row"),
        pytest.param('{"guid":"a\ufffd"}', "outside ASCII", id="mangled"),
        pytest.param("[" * 70, "nested", id="deep"),
        pytest.param(None, "not valid", id="null"),
        pytest.param("\ud800", "The body is not text", id="lone_surrogate"),
    ],
)
def test_a_mark_without_a_guid_is_refused(body: Any, says: str) -> None:
    """Anybody who may send to the queue can write one."""
    assert says in fault_of(by_sqs({ACCEPTED: "1", **WITH_KEY}, body))

"""Times on the wire: written with milliseconds in UTC, read only with an offset."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayhub.message import MalformedError, parse_rfc3339, rfc3339

# 2026-11-29T19:10:59Z
BASE_MS = 1_795_979_459_000
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        pytest.param(BASE_MS + 123, "2026-11-29T19:10:59.123Z", id="milliseconds"),
        pytest.param(BASE_MS, "2026-11-29T19:10:59.000Z", id="zeros-are-written"),
        pytest.param(0, "1970-01-01T00:00:00.000Z", id="epoch"),
        pytest.param(-1, "1969-12-31T23:59:59.999Z", id="before-the-epoch"),
        pytest.param(FIRST_MS, "0001-01-01T00:00:00.000Z", id="first"),
        pytest.param(LAST_MS, "9999-12-31T23:59:59.999Z", id="last"),
    ],
)
def test_a_time_is_written_in_utc_with_milliseconds(ms: int, text: str) -> None:
    """Every time on the wire has the same form."""
    assert rfc3339(ms) == text


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        pytest.param("2026-11-29T19:10:59Z", BASE_MS, id="utc"),
        pytest.param("2026-11-29t19:10:59z", BASE_MS, id="lower-case"),
        pytest.param("2026-11-30T04:10:59+09:00", BASE_MS, id="east"),
        pytest.param("2026-11-29T15:40:59-03:30", BASE_MS, id="west-by-half-an-hour"),
        pytest.param("2026-11-29T19:10:59-00:00", BASE_MS, id="utc-with-unknown-place"),
        pytest.param("2026-11-29T19:10:59.1Z", BASE_MS + 100, id="tenths"),
        pytest.param("2026-11-29T19:10:59.123Z", BASE_MS + 123, id="milliseconds"),
        pytest.param("2026-11-29T19:10:59.9999999Z", BASE_MS + 999, id="finer-is-cut-off"),
        pytest.param("2024-02-29T00:00:00Z", 1_709_164_800_000, id="leap-day"),
        pytest.param("1969-12-31T23:59:59.5Z", -500, id="before-the-epoch"),
        pytest.param("2016-12-31T23:59:60Z", 1_483_228_800_000, id="leap-second"),
        pytest.param("2017-01-01T08:59:60+09:00", 1_483_228_800_000, id="leap-second-in-the-east"),
        pytest.param("2016-12-31T23:59:60.25Z", 1_483_228_800_250, id="within-a-leap-second"),
    ],
)
def test_a_time_with_an_offset_is_read(text: str, ms: int) -> None:
    """RFC 3339 is read whole; a leap second counts as the second after it, as in POSIX."""
    assert parse_rfc3339(text) == ms


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("2026-11-29T19:10:59", "no offset", id="naive"),
        pytest.param("2026-11-29T19:10:59.123", "no offset", id="naive-with-fraction"),
        pytest.param("", "not RFC 3339", id="empty"),
        pytest.param("tomorrow", "not RFC 3339", id="word"),
        pytest.param("1795979459", "not RFC 3339", id="epoch-seconds"),
        pytest.param("2026-11-29", "not RFC 3339", id="date-alone"),
        pytest.param("2026-11-29 19:10:59Z", "not RFC 3339", id="space-for-t"),
        pytest.param("20261129T191059Z", "not RFC 3339", id="basic-form"),
        pytest.param("2026-W48-7T19:10:59Z", "not RFC 3339", id="week-date"),
        pytest.param("2026-11-29T19:10Z", "not RFC 3339", id="no-seconds"),
        pytest.param("2026-11-29T19:10:59,5Z", "not RFC 3339", id="comma-fraction"),
        pytest.param("2026-11-29T19:10:59.Z", "not RFC 3339", id="empty-fraction"),
        pytest.param("2026-11-29T19:10:59+0900", "not RFC 3339", id="offset-without-colon"),
        pytest.param("2026-11-29T19:10:59+09", "not RFC 3339", id="offset-without-minutes"),
        pytest.param("2026-11-29T19:10:59+24:00", "not RFC 3339", id="offset-of-a-day"),
        pytest.param("2026-11-29T19:10:59+09:60", "not RFC 3339", id="offset-of-60-minutes"),
        pytest.param("2026-11-29T19:10:59 JST", "not RFC 3339", id="zone-name"),
        pytest.param("2026-11-29T19:10:59Z\n", "not RFC 3339", id="line-feed-at-the-end"),
        pytest.param("\uff12\uff10\uff12\uff16-11-29T19:10:59Z", "not RFC 3339", id="wide-digits"),
        pytest.param("+2026-11-29T19:10:59Z", "not RFC 3339", id="sign-before-the-year"),
        pytest.param("2026-02-29T00:00:00Z", "does not exist", id="no-leap-year"),
        pytest.param("2026-13-01T00:00:00Z", "does not exist", id="month-13"),
        pytest.param("2026-11-29T24:00:00Z", "does not exist", id="hour-24"),
        pytest.param("2026-11-29T19:60:00Z", "does not exist", id="minute-60"),
        pytest.param("2026-11-29T19:10:61Z", "does not exist", id="second-61"),
        pytest.param("0000-01-01T00:00:00Z", "does not exist", id="year-0"),
        pytest.param("2026-11-29T19:10:60Z", "leap second", id="leap-second-in-mid-day"),
        pytest.param("2016-12-31T23:59:60+09:00", "leap second", id="leap-second-of-local-time"),
        pytest.param("9999-12-31T23:59:59-01:00", "outside the years", id="past-the-last"),
        pytest.param("9999-12-31T23:59:60Z", "outside the years", id="leap-past-the-last"),
        pytest.param("0001-01-01T00:00:00+01:00", "outside the years", id="before-the-first"),
    ],
)
def test_a_time_that_could_be_guessed_at_is_refused(text: str, says: str) -> None:
    """What is no RFC 3339 time with an offset gets a sentence, never a guess."""
    with pytest.raises(MalformedError, match=says):
        parse_rfc3339(text)


@given(ms=st.integers(FIRST_MS, LAST_MS))
@settings(deadline=None)
def test_a_written_time_is_read_back(ms: int) -> None:
    """Writing and reading lose nothing."""
    assert parse_rfc3339(rfc3339(ms)) == ms


TIME_PIECES = st.sampled_from([*"0123456789-+:.TtZz ", "2026-", "-11-", "T23:59:60", "+23:59"])


@given(text=st.one_of(st.text(), st.lists(TIME_PIECES, max_size=30).map("".join)))
@settings(deadline=None)
def test_any_text_is_a_time_or_malformed(text: str) -> None:
    """No text makes the reader fail in another way, and what it reads can be written."""
    try:
        ms = parse_rfc3339(text)
    except MalformedError:
        return
    assert parse_rfc3339(rfc3339(ms)) == ms

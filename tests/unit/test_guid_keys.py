"""The key of a row under either scope of GUIDs: one for each act, and always a GUID by its form."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayhub.guids import GuidScope, check_guid, guid_of, key_of
from relayhub.strict_json import MalformedError
from relayhub.upkeep import OWN

CHANNEL = GuidScope.CHANNEL
GUIDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:-]{0,30}\Z")
# Whatever a token's claim or a setting may name a channel; also what is no text.
CHANNELS = st.text(min_size=1, max_size=8)
LIKE_GUIDS = st.from_regex(r"\A[A-Za-z0-9._:-]{1,8}\Z")


@given(GUIDS, CHANNELS)
def test_in_the_global_scope_the_guid_is_the_key(guid: str, channel: str) -> None:
    """Whoever sends it."""
    assert key_of(guid, channel, GuidScope.GLOBAL) == guid
    assert guid_of(guid, GuidScope.GLOBAL) == guid


@given(GUIDS, st.one_of(CHANNELS, LIKE_GUIDS))
def test_a_key_is_a_guid_by_its_form_and_is_spelt_one_way(guid: str, channel: str) -> None:
    """Ledger, core, hints and command line take it as it is; never a key of the project's own."""
    key = key_of(check_guid(guid), channel, CHANNEL)
    assert check_guid(key) == key
    assert key[0] != OWN
    assert key.startswith(check_guid(guid))
    assert guid_of(key, CHANNEL) == check_guid(guid)


PAIRS = st.tuples(GUIDS, st.one_of(CHANNELS, LIKE_GUIDS))


@given(PAIRS, PAIRS)
def test_two_acts_never_have_one_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Neither by their channels nor by their GUIDs."""
    is_same = key_of(*one, CHANNEL) == key_of(*other, CHANNEL)
    assert is_same == (one == other)


@pytest.mark.parametrize(
    ("guid", "channel", "key"),
    [
        ("C1", "AB", "C1:AB"),
        ("BC1", "A", "BC1:A"),
        ("C1", "A:B", "C1:A_3AB"),
        ("C1:A", "B", "C1:A:B"),
        ("C1", "partner-1.example", "C1:partner-1.example"),
        ("C1", "a_b", "C1:a_5Fb"),
        ("C1", "a@b/c|d", "C1:a_40b_2Fc_7Cd"),
        ("C1", "sqs:hub-intake", "C1:sqs_3Ahub-intake"),
        ("C1", "\u00e9", "C1:_C3_A9"),
        ("C1", "\ud800", "C1:_ED_A0_80"),
        ("C1", "\n", "C1:_0A"),
        ("C1", "!gate", "C1:_21gate"),
    ],
)
def test_a_key_can_be_read_and_its_form_stays(guid: str, channel: str, key: str) -> None:
    """The rows of a table bear it: another form would be another key for the same act."""
    assert key_of(guid, channel, CHANNEL) == key


@pytest.mark.parametrize(("guid", "channel"), [("G" * 120, "channel"), ("G", "c" * 126)])
def test_a_key_has_the_length_of_a_guid_at_the_most(guid: str, channel: str) -> None:
    """128 characters are taken, one more is refused."""
    assert len(key_of(guid, channel, CHANNEL)) == 128
    with pytest.raises(MalformedError, match=r"longer than the \d+ characters"):
        key_of(guid + "G", channel, CHANNEL)


def test_what_is_too_long_is_told_with_what_would_do() -> None:
    """By the number of characters, and never by the name or the GUID themselves."""
    with pytest.raises(MalformedError) as caught:
        key_of("G" * 125, "a@b", CHANNEL)
    assert "122 characters" in str(caught.value)
    assert re.search("GG|a@b|_40", str(caught.value)) is None


@pytest.mark.parametrize("channel", ["c" * 127, "@" * 43, "c" * 1000])
def test_a_name_without_room_for_a_guid_is_the_operators_matter(channel: str) -> None:
    """The channel cannot mend it."""
    with pytest.raises(MalformedError, match="no room for a GUID: let the hub's operator"):
        key_of("G", channel, CHANNEL)


@pytest.mark.parametrize("key", ["G-1", "0" * 128])
def test_a_key_of_before_is_told_as_it_is(key: str) -> None:
    """A row that bears no channel's name has no other GUID."""
    assert guid_of(key, CHANNEL) == key


def test_every_scope_is_one_that_a_setting_can_name() -> None:
    """Two words, in lower case."""
    words: list[Any] = [str(each) for each in GuidScope]
    assert words == ["global", "channel"]

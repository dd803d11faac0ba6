"""The GUID's alphabet, its one spelling, its birth, and a sentence for every bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from relayhub.guids import guid_of_record_key
from relayhub.message import MalformedError, Number, born_ms, check_guid

if TYPE_CHECKING:
    from collections.abc import Callable

UUID4 = "3f2b8c1e-7d4a-4e0b-9a5c-0123456789ab"
UUID7 = "01932c07-a8d3-7c3e-8f00-0123456789ab"
UUID7_BORN_MS = 0x01932C07A8D3
ULID = "01JCP0FA6K0123456789ABCDEF"
NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
FIRST_MS = 1_577_836_800_000


def uuid7_born(ms: int) -> str:
    """Return a UUIDv7 that says it was made then."""
    digits = f"{ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7c3e-8f00-0123456789ab"


def ulid_born(ms: int) -> str:
    """Return a ULID that says it was made then."""
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    time = "".join(alphabet[ms >> shift & 31] for shift in range(45, -1, -5))
    return time + "0123456789ABCDEF"


@pytest.mark.parametrize(
    "guid",
    [
        pytest.param("7", id="one-digit"),
        pytest.param("z", id="one-letter"),
        pytest.param("A" * 128, id="128-characters"),
        pytest.param("atm:0001_2.b-C", id="every-kind-of-character"),
        pytest.param("Order-42-A", id="mixed-case-of-no-known-shape"),
        pytest.param(UUID4, id="uuid"),
        pytest.param(ULID, id="ulid"),
    ],
)
def test_a_good_guid_is_returned_as_it_came(guid: str) -> None:
    """What is in the alphabet and in its own spelling is not touched."""
    assert check_guid(guid) == guid


@pytest.mark.parametrize(
    ("guid", "folded"),
    [
        pytest.param(UUID4.upper(), UUID4, id="upper-case-uuid"),
        pytest.param("3F2b8C1E-7d4A-4e0b-9a5c-0123456789AB", UUID4, id="mixed-case-uuid"),
        pytest.param(UUID4.replace("-", "").upper(), UUID4.replace("-", ""), id="32-hex"),
        pytest.param(ULID.lower(), ULID, id="lower-case-ulid"),
        pytest.param("01jcP0fA6k0123456789abcdEF", ULID, id="mixed-case-ulid"),
    ],
)
def test_a_uuid_or_ulid_has_one_spelling(guid: str, folded: str) -> None:
    """The same UUID or ULID in another case is the same key."""
    assert check_guid(guid) == folded


@pytest.mark.parametrize(
    "guid",
    [
        pytest.param("3F2B8C1E-7D4A-4E0B-9A5C-0123456789A", id="uuid-one-short"),
        pytest.param("3F2B8C1E-7D4A4E0B-9A5C-0123456789ABC", id="uuid-dash-missing"),
        pytest.param("3G2B8C1E-7D4A-4E0B-9A5C-0123456789AB", id="uuid-with-a-g"),
        pytest.param("A" * 31, id="31-hex"),
        pytest.param("8" + "a" * 25, id="ulid-past-the-last-time"),
        pytest.param("01jcp0fa6k0123456789abcdel", id="ulid-with-an-l"),
        pytest.param("01jcp0fa6k0123456789abcdeu", id="ulid-with-a-u"),
        pytest.param("01jcp0fa6k0123456789abcde", id="ulid-one-short"),
    ],
)
def test_what_only_resembles_a_uuid_or_ulid_keeps_its_case(guid: str) -> None:
    """A key of the channel's own making may well tell upper from lower case."""
    assert check_guid(guid) == guid


BAD_GUIDS = [
    pytest.param(None, "is null", id="null"),
    pytest.param([UUID4], "is a list", id="list"),
    pytest.param({"v": UUID4}, "is an object", id="object"),
    pytest.param(Number("42"), "is a number", id="json-number"),
    pytest.param(42, "is a number", id="integer"),
    pytest.param(4.2, "is a number", id="float"),
    pytest.param(True, "is true or false", id="boolean"),
    pytest.param(b"abc", "is of another kind", id="bytes"),
    pytest.param("", "is empty", id="empty"),
    pytest.param("a" * 129, "is longer than 128 characters", id="129-characters"),
    pytest.param("abc\rdef", "holds a line break at place 4", id="carriage-return"),
    pytest.param("abc\n", "holds a line break at place 4", id="line-feed-at-the-end"),
    pytest.param("abc\r\nX-A: b", "holds a line break at place 4", id="header-injection"),
    pytest.param("abcé", "outside ASCII at place 4", id="latin-letter"),
    pytest.param("取引1", "outside ASCII at place 1", id="kanji"),
    pytest.param("a\u0661", "outside ASCII at place 2", id="arabic-digit"),
    pytest.param("a\u212a", "outside ASCII at place 2", id="kelvin-sign"),
    pytest.param("a\ud800", "outside ASCII at place 2", id="lone-surrogate"),
    pytest.param("ab cd", "not allowed at place 3", id="space"),
    pytest.param(" abc", "not allowed at place 1", id="space-in-front"),
    pytest.param("ab\tcd", "not allowed at place 3", id="tab"),
    pytest.param("ab\x00cd", "not allowed at place 3", id="nul"),
    pytest.param("ab/cd", "not allowed at place 3", id="slash"),
    pytest.param("a!gate", "not allowed at place 2", id="the-hubs-own-rows"),
    pytest.param("a#b", "not allowed at place 2", id="number-sign"),
    pytest.param("-abc", "does not start with a letter or digit", id="dash-in-front"),
    pytest.param(".abc", "does not start with a letter or digit", id="dot-in-front"),
    pytest.param("_abc", "does not start with a letter or digit", id="underscore-in-front"),
    pytest.param(":abc", "does not start with a letter or digit", id="colon-in-front"),
]


@pytest.mark.parametrize(("guid", "says"), BAD_GUIDS)
def test_a_bad_guid_is_refused_by_its_own_sentence(guid: object, says: str) -> None:
    """The refusal says what is wrong, and what to send instead."""
    with pytest.raises(MalformedError) as refusal:
        check_guid(guid)
    assert says in str(refusal.value)
    assert "send 1 to 128 characters of A-Z a-z 0-9 . _ : -" in str(refusal.value)
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "guid",
    [
        pytest.param("4111111111111111 secret", id="string"),
        pytest.param(["4111111111111111"], id="list"),
        pytest.param({"4111111111111111": "secret"}, id="object"),
        pytest.param(Number("4111111111111111"), id="number"),
    ],
)
def test_a_refused_guid_is_not_repeated(guid: object) -> None:
    """What somebody sent by mistake in place of a GUID does not get into answers and logs."""
    with pytest.raises(MalformedError) as refusal:
        check_guid(guid)
    assert "4111" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "guid",
    [
        pytest.param(UUID7, id="dashed"),
        pytest.param(UUID7.upper(), id="upper-case"),
        pytest.param(UUID7.replace("-", ""), id="32-hex"),
    ],
)
def test_a_uuid7_tells_when_it_was_made(guid: str) -> None:
    """The first 48 bits of a UUIDv7 are its time in milliseconds."""
    assert born_ms(guid, NOW_MS) == UUID7_BORN_MS


@pytest.mark.parametrize(
    "guid", [pytest.param(ULID, id="upper-case"), pytest.param(ULID.lower(), id="lower-case")]
)
def test_a_ulid_tells_when_it_was_made(guid: str) -> None:
    """The first ten digits of a ULID are its time in milliseconds, in Crockford's base 32."""
    digits = [0, 1, 18, 12, 22, 0, 15, 10, 6, 19]
    expected = 0
    for digit in digits:
        expected = expected * 32 + digit
    assert born_ms(guid, NOW_MS) == expected


@pytest.mark.parametrize(
    "guid",
    [
        pytest.param(UUID4, id="uuid4"),
        pytest.param(UUID7[:14] + "6" + UUID7[15:], id="version-6"),
        pytest.param(UUID7[:19] + "7" + UUID7[20:], id="variant-below"),
        pytest.param(UUID7[:19] + "c" + UUID7[20:], id="variant-above"),
        pytest.param(UUID7[:-1], id="uuid7-one-short"),
        pytest.param("8" + ULID[1:], id="ulid-past-the-last-time"),
        pytest.param("ORDER-42", id="no-shape"),
        pytest.param("", id="empty"),
    ],
)
def test_other_guids_have_no_birth(guid: str) -> None:
    """A time is read only from the shapes that surely bear one."""
    assert born_ms(guid, NOW_MS) is None


@pytest.mark.parametrize(
    "make", [pytest.param(uuid7_born, id="uuid7"), pytest.param(ulid_born, id="ulid")]
)
@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        pytest.param(FIRST_MS - 1, None, id="just-before-2020"),
        pytest.param(FIRST_MS, FIRST_MS, id="first-of-2020"),
        pytest.param(NOW_MS, NOW_MS, id="now"),
        pytest.param(NOW_MS + DAY_MS, NOW_MS + DAY_MS, id="a-day-ahead"),
        pytest.param(NOW_MS + DAY_MS + 1, None, id="over-a-day-ahead"),
        pytest.param((1 << 48) - 1, None, id="the-last-time-there-is"),
        pytest.param(0, None, id="zero"),
    ],
)
def test_an_absurd_birth_is_none(make: Callable[[int], str], ms: int, expected: int | None) -> None:
    """A time before 2020 or over a day ahead is chance or a wrong clock, so it counts for none."""
    assert born_ms(make(ms), NOW_MS) == expected


@pytest.mark.parametrize(
    ("key", "guid"),
    [
        pytest.param(b"r1001", "r1001", id="as-it-came"),
        pytest.param(UUID4.upper().encode(), UUID4, id="upper-case-uuid"),
        pytest.param(ULID.lower().encode(), ULID, id="lower-case-ulid"),
    ],
)
def test_a_records_key_has_the_guids_one_spelling(key: bytes, guid: str) -> None:
    """The same act by another way in is the same row."""
    assert guid_of_record_key(key) == guid


@pytest.mark.parametrize(
    ("key", "says"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"a" * 129, "is longer than 128 characters", id="129-characters"),
        pytest.param(b"4111 secret", "not allowed at place 5", id="space"),
        pytest.param("4111\u00e9secret".encode(), "outside ASCII at place 5", id="latin-letter"),
        pytest.param(b"4111\xffsecret", "is not UTF-8 text", id="not-utf-8"),
        pytest.param(b"\xef\xbb\xbf4111", "outside ASCII at place 1", id="byte-order-mark"),
        pytest.param(b'"4111"', "not allowed at place 1", id="quoted-as-in-a-header"),
    ],
)
def test_a_records_key_that_is_no_guid_is_refused(key: bytes, says: str) -> None:
    """Named as the key, and not repeated."""
    with pytest.raises(MalformedError) as refusal:
        guid_of_record_key(key)
    assert str(refusal.value).startswith("The record's key ")
    assert says in str(refusal.value)
    assert "send 1 to 128 characters of A-Z a-z 0-9 . _ : -" in str(refusal.value)
    assert "4111" not in str(refusal.value)
    assert "secret" not in str(refusal.value)

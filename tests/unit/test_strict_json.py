"""JSON is read so that no two readers can see two things in the same bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayhub.strict_json import MalformedError, Number, canonical_json, strict_json


def nested(depth: int, *, opening: str = "[", inner: str = "", closing: str = "]") -> bytes:
    """Return JSON with that many containers within each other."""
    return (opening * depth + inner + closing * depth).encode()


@pytest.mark.parametrize(
    ("body", "value"),
    [
        pytest.param(b"null", None, id="null"),
        pytest.param(b"true", True, id="true"),
        pytest.param(b' \t\r\n"a"\n', "a", id="white-space-around"),
        pytest.param(b"[]", [], id="empty-list"),
        pytest.param(b'{"a":[1,{"b":null}]}', {"a": [Number("1"), {"b": None}]}, id="nested"),
        pytest.param('"金額"'.encode(), "金額", id="utf-8"),
        pytest.param(b'"\\ud83d\\ude00"', "😀", id="escaped-pair"),
        pytest.param(b'"\\ufffd"', "\ufffd", id="escaped-replacement-character"),
        pytest.param(
            b'{"a":{"k":"x"},"b":{"k":"y"}}',
            {"a": {"k": "x"}, "b": {"k": "y"}},
            id="same-key-in-two-objects",
        ),
    ],
)
def test_json_is_read(body: bytes, value: object) -> None:
    """What the standard has is read as it stands."""
    assert strict_json(body) == value


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0", id="zero"),
        pytest.param("-0", id="minus-zero"),
        pytest.param("1.00", id="trailing-zeros"),
        pytest.param("1E+2", id="exponent"),
        pytest.param("1e400", id="past-a-double"),
        pytest.param("0.1000000000000000055511151231257827", id="finer-than-a-double"),
        pytest.param("9" * 5000, id="5000-digits"),
    ],
)
def test_a_number_keeps_its_source_text(text: str) -> None:
    """No number passes through a float or an integer on its way."""
    assert strict_json(text.encode()) == Number(text)


BAD_JSON = [
    pytest.param(b"", "not valid", id="empty"),
    pytest.param(b"   ", "not valid", id="white-space-alone"),
    pytest.param(b"{", "not valid", id="open-object"),
    pytest.param(b'{"a":1,}', "not valid", id="trailing-comma"),
    pytest.param(b"{'a':1}", "not valid", id="single-quotes"),
    pytest.param(b"{a:1}", "not valid", id="bare-key"),
    pytest.param(b'{"a":1} {"a":2}', "not valid", id="two-documents"),
    pytest.param(b'{"a":1}\x00', "not valid", id="nul-after-it"),
    pytest.param(b"// c\n1", "not valid", id="comment"),
    pytest.param(b"01", "not valid", id="leading-zero"),
    pytest.param(b"+1", "not valid", id="plus-sign"),
    pytest.param(b"1.", "not valid", id="bare-point"),
    pytest.param(b".5", "not valid", id="no-integer-part"),
    pytest.param(b"0x1F", "not valid", id="hexadecimal"),
    pytest.param("\u0661".encode(), "not valid", id="arabic-digit"),
    pytest.param(b'"a\nb"', "not valid", id="line-break-in-a-string"),
    pytest.param(b'"\\x41"', "not valid", id="escape-that-is-none"),
    pytest.param(b'"\\u12"', "not valid", id="short-escape"),
    pytest.param(b'"a', "not valid", id="open-string"),
    pytest.param(b'"a\\', "not valid", id="open-escape"),
    pytest.param("\u00a01".encode(), "not valid", id="other-white-space"),
    pytest.param(b"NaN", "NaN or Infinity", id="nan"),
    pytest.param(b'{"a":Infinity}', "NaN or Infinity", id="infinity"),
    pytest.param(b"[-Infinity]", "NaN or Infinity", id="minus-infinity"),
    pytest.param(b'{"a":1,"a":1}', "same key twice", id="same-key-same-value"),
    pytest.param(b'{"a":1,"\\u0061":2}', "same key twice", id="same-key-escaped"),
    pytest.param(b'[{"b":{"a":1,"c":2,"a":3}}]', "same key twice", id="same-key-deep-inside"),
    pytest.param(b"\xef\xbb\xbf{}", "byte order mark", id="byte-order-mark"),
    pytest.param("{}".encode("utf-16"), "not UTF-8", id="utf-16-with-mark"),
    pytest.param("{}".encode("utf-16-be"), "not valid", id="utf-16-bare"),
    pytest.param('"金額"'.encode("shift_jis"), "not UTF-8", id="shift-jis"),
    pytest.param(b'"\xc0\xaf"', "not UTF-8", id="overlong"),
    pytest.param(b'"\xed\xa0\x80"', "not UTF-8", id="encoded-surrogate"),
    pytest.param(b'"\xe9"', "not UTF-8 \\(byte 2\\)", id="latin-1"),
    pytest.param(nested(65), "more than 64 levels", id="65-lists"),
    pytest.param(
        nested(65, opening='{"a":', inner="1", closing="}"), "more than 64", id="65-objects"
    ),
    pytest.param(nested(100_000), "more than 64 levels", id="100000-lists"),
    pytest.param(b"[" * 200_000, "more than 64 levels", id="200000-open-lists"),
    pytest.param(b'{"a":' * 50_000, "more than 64 levels", id="50000-open-objects"),
    pytest.param(b'["\\"",' + b"[" * 70, "more than 64 levels", id="deep-after-an-escaped-quote"),
    pytest.param(b'["\\\\",' + b"[" * 70, "more than 64 levels", id="deep-after-a-backslash"),
]


@pytest.mark.parametrize(("body", "says"), BAD_JSON)
def test_bad_json_is_refused_by_its_own_sentence(body: bytes, says: str) -> None:
    """Whatever readers disagree about is refused, with what to do."""
    with pytest.raises(MalformedError, match=says) as refusal:
        strict_json(body)
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(nested(64), id="64-lists"),
        pytest.param(b"[" + b",".join([b"{}"] * 60_000) + b"]", id="many-side-by-side"),
        pytest.param(b'"' + b"[" * 1000 + b'"', id="brackets-in-a-string"),
        pytest.param(b'{"\\"[[[":"' + b'\\"[' * 100 + b'"}', id="brackets-after-escaped-quotes"),
    ],
)
def test_depth_counts_containers_within_each_other_only(body: bytes) -> None:
    """Brackets side by side or in strings do not make a document deep."""
    strict_json(body)


def test_a_refusal_does_not_repeat_the_payload() -> None:
    """A syntax error is named by place: neither keys nor values get into answers and logs."""
    for body in (b'{"4111": tr', b'{"4111":1,"4111":2}', b'["4111", 4111x]'):
        with pytest.raises(MalformedError) as refusal:
            strict_json(body)
        assert "4111" not in str(refusal.value)


def plain(value: object) -> object:
    """Return the value as the standard library's own reader would have made it."""
    match value:
        case Number():
            return json.loads(value.text)
        case dict():
            return {key: plain(member) for key, member in value.items()}
        case list():
            return [plain(item) for item in value]
        case _:
            return value


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(value=JSON_VALUES, ascii_only=st.booleans(), indent=st.none() | st.just(2))
@settings(deadline=None)
def test_the_strict_reader_sees_what_the_lenient_one_sees(
    *, value: object, ascii_only: bool, indent: int | None
) -> None:
    """For good JSON the strictness changes nothing but the form of numbers."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert plain(strict_json(text.encode())) == value


@given(value=JSON_VALUES)
@settings(deadline=None)
def test_the_canonical_spelling_is_its_own(value: object) -> None:
    """To read the canonical spelling and write it again changes nothing."""
    canonical = canonical_json(strict_json(json.dumps(value).encode()))
    assert canonical.isascii()
    assert canonical_json(strict_json(canonical.encode())) == canonical


JSON_TOKENS = [b"{", b"}", b"[", b"]", b'"', b":", b",", b'"a"', b'{"a":', b"null", b"NaN"]
JSON_SCRAPS = [b"1", b"-", b".", b"e", b" ", b"\n", b"\\", b"\\u", b"d800", b"[" * 70]
NOT_JSON = [b"\xef\xbb\xbf", b"\xff", b"\x00"]
JSON_PIECES = st.sampled_from([*JSON_TOKENS, *JSON_SCRAPS, *NOT_JSON])


@given(body=st.one_of(st.binary(), st.lists(JSON_PIECES, max_size=40).map(b"".join)))
@settings(deadline=None, max_examples=500)
def test_any_bytes_are_json_or_malformed(body: bytes) -> None:
    """No bytes make the reader fail in another way, and what it reads can be spelt."""
    try:
        value = strict_json(body)
    except MalformedError:
        return
    assert strict_json(canonical_json(value).encode()) == value

"""What of a JSON body is compared: the fields that are declared, in one canonical spelling."""

from __future__ import annotations

import pytest

from relayhub.strict_json import (
    MalformedError,
    Number,
    at_pointer,
    canonical_json,
    is_pointer,
    strict_json,
)


@pytest.mark.parametrize(
    ("body", "canonical"),
    [
        pytest.param(b'{ "b" : 1 , "a" : [ true , null ] }', '{"a":[true,null],"b":1}', id="order"),
        pytest.param('"金"'.encode(), '"\\u91d1"', id="ascii"),
        pytest.param(b'"\\u0041\\/"', '"A/"', id="escapes-that-need-not-be"),
        pytest.param(b'"\\ud800"', '"\\ud800"', id="lone-surrogate"),
        pytest.param(b"[1.0,1.00,1e0]", "[1.0,1.00,1e0]", id="numbers-by-their-text"),
        pytest.param(b'{"a":{"d":{},"c":[]}}', '{"a":{"c":[],"d":{}}}', id="order-inside"),
    ],
)
def test_a_value_has_one_canonical_spelling(body: bytes, canonical: str) -> None:
    """Order, spaces and escapes do not count; the text of a number does."""
    assert canonical_json(strict_json(body)) == canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(b"1.0", b"1.00", id="trailing-zero"),
        pytest.param(b"1", b"1.0", id="integer-and-decimal"),
        pytest.param(b"100", b"1e2", id="exponent"),
        pytest.param(b"0", b"-0", id="sign-of-zero"),
        pytest.param(b"1", b'"1"', id="number-and-string"),
        pytest.param(b"true", b'"true"', id="boolean-and-string"),
        pytest.param(b"null", b'"null"', id="null-and-string"),
        pytest.param(b"0", b"false", id="number-and-boolean"),
        pytest.param(b"[]", b"{}", id="list-and-object"),
        pytest.param(b"[1,2]", b"[2,1]", id="order-of-a-list"),
        pytest.param(b"9007199254740993", b"9007199254740992", id="past-a-double"),
        pytest.param('"\u00e9"'.encode(), '"e\u0301"'.encode(), id="composed-and-decomposed"),
    ],
)
def test_values_that_a_core_may_tell_apart_stay_apart(one: bytes, other: bytes) -> None:
    """Nothing is made equal that some core could treat as two requests."""
    assert canonical_json(strict_json(one)) != canonical_json(strict_json(other))


DOCUMENT = strict_json(
    b'{"a":{"b":[10,{"c":"x"}]},"":1,"m~n":2,"s/t":3,"~1":4,"nil":null,"0":5,"a b":6}'
)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        pytest.param("/a/b/1/c", "x", id="through-a-list"),
        pytest.param("/a/b/0", Number("10"), id="element"),
        pytest.param("/", Number("1"), id="empty-name"),
        pytest.param("/m~0n", Number("2"), id="tilde"),
        pytest.param("/s~1t", Number("3"), id="slash"),
        pytest.param("/~01", Number("4"), id="tilde-then-one"),
        pytest.param("/nil", None, id="null-is-there"),
        pytest.param("/0", Number("5"), id="digit-as-a-name"),
        pytest.param("/a b", Number("6"), id="space"),
    ],
)
def test_a_pointer_names_a_value(pointer: str, value: object) -> None:
    """Pointers are read as RFC 6901 has them."""
    assert at_pointer(DOCUMENT, pointer) == value


@pytest.mark.parametrize(
    "pointer",
    [
        pytest.param("/z", id="no-such-member"),
        pytest.param("/A", id="other-case"),
        pytest.param("/a/b/2", id="past-the-end"),
        pytest.param("/a/b/-", id="after-the-end"),
        pytest.param("/a/b/-1", id="from-the-end"),
        pytest.param("/a/b/00", id="leading-zero"),
        pytest.param("/a/b/" + "9" * 5000, id="huge-index"),
        pytest.param("/a/b/1/c/0", id="into-a-string"),
        pytest.param("/nil/x", id="into-null"),
        pytest.param("/m~0n/text", id="into-a-number"),
        pytest.param("/a/b/", id="empty-name-in-a-list"),
    ],
)
def test_a_missing_field_is_named_by_its_pointer(pointer: str) -> None:
    """The refusal names the field, as the setting spells it."""
    with pytest.raises(MalformedError) as refusal:
        at_pointer(DOCUMENT, pointer)
    assert pointer in str(refusal.value)


@pytest.mark.parametrize("body", [b"[1]", b"1", b"null", b'"a"'], ids=lambda body: body.decode())
def test_a_field_is_missing_where_there_is_no_object(body: bytes) -> None:
    """A document of another kind lacks every named field."""
    with pytest.raises(MalformedError, match="/amount"):
        at_pointer(strict_json(body), "/amount")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("/amount", True, id="member"),
        pytest.param("/a/0/b~0c~1d", True, id="path"),
        pytest.param("/", True, id="empty-name"),
        pytest.param("", False, id="whole-document"),
        pytest.param("amount", False, id="no-slash"),
        pytest.param("$.amount", False, id="json-path"),
        pytest.param("/a~", False, id="bare-tilde"),
        pytest.param("/a~2", False, id="unknown-escape"),
        pytest.param("/a,b", False, id="comma"),
    ],
)
def test_only_a_pointer_to_a_field_may_be_declared(*, text: str, expected: bool) -> None:
    """A bad pointer in the settings is told from a good one."""
    assert is_pointer(text) is expected

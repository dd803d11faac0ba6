"""The fingerprint: equal for the same request, different for any other."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayhub.message import MalformedError, MessageRules, fingerprint, scheme_of

FIELDS = "fields:/amount,/to/account"
BODY = b'{"amount":100.00,"to":{"account":"0012"},"sent_at":"2026-11-29T19:10:59Z","trace":"a"}'


def test_the_body_scheme_hashes_operation_line_feed_and_bytes() -> None:
    """The form is fixed: stored fingerprints must stay comparable for as long as rows live."""
    expected = hashlib.sha256(b"transfer\n\x00\xffraw ").hexdigest()
    assert fingerprint("transfer", b"\x00\xffraw ", "body") == expected


def test_the_fields_scheme_hashes_operation_line_feed_and_canonical_fields() -> None:
    """The form is fixed here too: sorted, no spaces, a number by its source text."""
    canonical = b'{"/amount":100.00,"/to/account":"0012"}'
    expected = hashlib.sha256(b"transfer\n" + canonical).hexdigest()
    assert fingerprint("transfer", BODY, FIELDS) == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BODY.replace(b"19:10:59", b"19:12:00"), id="another-sent-at"),
        pytest.param(BODY.replace(b'"trace":"a"', b'"trace":"b"'), id="another-trace"),
        pytest.param(BODY.replace(b',"trace":"a"', b""), id="no-trace"),
        pytest.param(BODY.replace(b",", b" ,\n "), id="other-white-space"),
        pytest.param(
            b'{"to":{"account":"0012"},"trace":"c","amount":100.00}', id="another-order-of-members"
        ),
        pytest.param(BODY.replace(b'"0012"', b'"\\u0030012"'), id="another-escape"),
    ],
)
def test_what_is_not_declared_does_not_count(body: bytes) -> None:
    """A resend with another time stamp or trace is the same request where fields are declared."""
    assert fingerprint("transfer", body, FIELDS) == fingerprint("transfer", BODY, FIELDS)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BODY.replace(b"100.00", b"200.00"), id="another-amount"),
        pytest.param(BODY.replace(b"100.00", b"100.0"), id="another-text-of-the-amount"),
        pytest.param(BODY.replace(b"100.00", b'"100.00"'), id="the-amount-as-a-string"),
        pytest.param(BODY.replace(b'"0012"', b'"0013"'), id="another-account"),
        pytest.param(BODY.replace(b'"0012"', b"null"), id="no-account"),
    ],
)
def test_what_is_declared_counts(body: bytes) -> None:
    """Another amount or account is another request."""
    assert fingerprint("transfer", body, FIELDS) != fingerprint("transfer", BODY, FIELDS)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BODY + b" ", id="a-space-more"),
        pytest.param(BODY.replace(b'"a"', b'"b"'), id="another-trace"),
        pytest.param(BODY[::-1], id="another-order"),
    ],
)
def test_every_byte_counts_where_nothing_is_declared(body: bytes) -> None:
    """Without declared fields the hub does not guess which bytes matter."""
    assert fingerprint("transfer", body, "body") != fingerprint("transfer", BODY, "body")


@pytest.mark.parametrize("scheme", ["body", FIELDS])
@pytest.mark.parametrize("operation", ["", "Transfer", "withdraw"])
def test_another_operation_is_another_request(operation: str, scheme: str) -> None:
    """The same body under another operation has another fingerprint."""
    assert fingerprint(operation, BODY, scheme) != fingerprint("transfer", BODY, scheme)


def test_values_do_not_move_between_fields() -> None:
    """The same values under exchanged names are another request."""
    one = fingerprint("", b'{"a":"1","b":"2"}', "fields:/a,/b")
    other = fingerprint("", b'{"a":"2","b":"1"}', "fields:/a,/b")
    assert one != other


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b'{"amount":1}', "/to/account", id="missing-member"),
        pytest.param(b'{"amount":1,"to":"0012"}', "/to/account", id="string-for-an-object"),
        pytest.param(b"[1]", "/amount", id="list"),
        pytest.param(b"amount=1", "not valid", id="no-json"),
        pytest.param(b'{"amount":1,"amount":2}', "same key twice", id="same-key-twice"),
    ],
)
def test_a_body_without_its_declared_fields_is_malformed(body: bytes, says: str) -> None:
    """A field that is compared must be there."""
    with pytest.raises(MalformedError, match=says):
        fingerprint("", body, FIELDS)


def test_a_declared_null_is_not_a_missing_field() -> None:
    """A member that is null is there, and differs from the string."""
    one = fingerprint("", b'{"a":null}', "fields:/a")
    assert one != fingerprint("", b'{"a":"null"}', "fields:/a")


@pytest.mark.parametrize("scheme", ["", "Body", "fields", "sha512", "fields2:/a"])
def test_an_unknown_scheme_is_no_fault_of_the_channel(scheme: str) -> None:
    """A row of a newer version must not turn its resend into a malformed request."""
    with pytest.raises(ValueError, match="unknown fingerprint scheme") as error:
        fingerprint("", BODY, scheme)
    assert not isinstance(error.value, MalformedError)


@pytest.mark.parametrize(
    ("fields", "scheme"),
    [
        pytest.param((), "body", id="nothing-declared"),
        pytest.param(("/a",), "fields:/a", id="one"),
        pytest.param(("/a", "/b/c"), "fields:/a,/b/c", id="two"),
        pytest.param(("/a~1b", "/c~0d"), "fields:/a~1b,/c~0d", id="escaped"),
    ],
)
def test_the_scheme_names_what_is_compared(fields: tuple[str, ...], scheme: str) -> None:
    """A row bears its scheme, so that it is compared by it after a deploy changed the fields."""
    assert scheme_of(fields) == scheme


@pytest.mark.parametrize("field", ["", "amount", "$.amount", "/a,b", "/a~2", " /a"])
def test_a_bad_pointer_in_the_settings_stops_the_start(field: str) -> None:
    """A wrong setting is found when the rules are made, and no channel is blamed for it."""
    with pytest.raises(ValueError, match="not a JSON pointer") as error:
        MessageRules(fingerprint_fields=("/amount", field))
    assert not isinstance(error.value, MalformedError)


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@given(
    one=st.fixed_dictionaries({"a": SCALARS, "b": SCALARS}),
    other=st.fixed_dictionaries({"a": SCALARS, "b": SCALARS}),
    noise=st.text(max_size=5),
)
@settings(deadline=None)
def test_fingerprints_are_equal_exactly_when_the_declared_values_are(
    one: dict[str, object], other: dict[str, object], noise: str
) -> None:
    """Equal inputs give equal fingerprints and different inputs different ones."""
    sent = json.dumps(one).encode()
    resent = json.dumps({"noise": noise, **dict(reversed(other.items()))}, indent=1).encode()
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    scheme = scheme_of(("/a", "/b"))
    assert (fingerprint("x", sent, scheme) == fingerprint("x", resent, scheme)) is same

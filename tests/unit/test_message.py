"""A channel's request is read whole or refused with a sentence; nothing is in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from relayhub.message import (
    MalformedError,
    MessageRules,
    Submission,
    fingerprint,
    parse_rfc3339,
    read_submission,
)
from relayhub.states import Delivery

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW_MS = parse_rfc3339("2026-11-29T19:10:59.123Z")
KEY = "order-42"
WITH_KEY = {"idempotency-key": KEY}
UUID = "3f2b8c1e-7d4a-4e0b-9a5c-0123456789ab"
JSON_TYPE = "application/json"
DECLARED = MessageRules(fingerprint_fields=("/amount",))


def read(
    body: bytes = b'{"amount":1}',
    headers: Mapping[str, str] | None = None,
    rules: MessageRules | None = None,
) -> Submission:
    """Read a request as it comes from a channel at `NOW_MS`."""
    return read_submission(
        headers=headers or {},
        body=body,
        is_text=True,
        channel="atm",
        rules=rules or MessageRules(),
        now_ms=NOW_MS,
    )


def refusal(
    body: bytes = b'{"amount":1}', headers: Mapping[str, str] | None = None
) -> MalformedError:
    """Read a request that must be refused, and return the refusal."""
    with pytest.raises(MalformedError) as caught:
        read(body, headers)
    return caught.value


def test_a_request_is_read_whole() -> None:
    """Everything that the row and the core need is in the submission, the bytes untouched."""
    body = b' {"amount": 1.00, "guid": "order-42"}\n'
    submission = read(
        body,
        {
            "idempotency-key": KEY,
            "content-type": "application/json; charset=utf-8",
            "x-operation": "Transfer_2.b-c",
            "delivery": "interactive",
            "valid-until": "2026-11-30T04:11:59+09:00",
        },
    )
    assert submission == Submission(
        guid=KEY,
        channel="atm",
        operation="Transfer_2.b-c",
        body=body,
        content_type="application/json; charset=utf-8",
        fingerprint=fingerprint("Transfer_2.b-c", body, "body"),
        scheme="body",
        delivery=Delivery.INTERACTIVE,
        valid_until_ms=parse_rfc3339("2026-11-29T19:11:59Z"),
    )


def test_what_is_left_out_has_its_default() -> None:
    """A request with a key and a body is enough."""
    submission = read(headers=WITH_KEY)
    assert submission.operation == ""
    assert submission.delivery is Delivery.DEFERRED
    assert submission.valid_until_ms is None


def test_the_fingerprint_covers_the_declared_fields() -> None:
    """The rules choose the scheme, and the submission bears both."""
    submission = read(b'{"amount":1,"at":2}', WITH_KEY, DECLARED)
    assert submission.scheme == "fields:/amount"
    assert submission.fingerprint == fingerprint("", b'{"amount":1}', "fields:/amount")


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(UUID, id="bare"),
        pytest.param(f'"{UUID}"', id="quoted"),
        pytest.param(f' "{UUID}"\t', id="quoted-with-spaces-around"),
        pytest.param(UUID.upper(), id="upper-case"),
        pytest.param(f'"{UUID.upper()}"', id="quoted-upper-case"),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"amount":1}', id="header-alone"),
        pytest.param(f'{{"guid":"{UUID}"}}'.encode(), id="the-same-in-the-body"),
        pytest.param(f'{{"guid":"{UUID.upper()}"}}'.encode(), id="other-case-in-the-body"),
    ],
)
def test_every_spelling_of_the_key_is_one_guid(header: str, body: bytes) -> None:
    """Bare or quoted, in either case, alone or with the body: the same row."""
    assert read(body, {"idempotency-key": header, "content-type": JSON_TYPE}).guid == UUID


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no-type"),
        pytest.param({"content-type": JSON_TYPE}, id="json"),
        pytest.param({"content-type": "text/plain"}, id="text"),
    ],
)
def test_the_bodys_guid_is_enough(headers: dict[str, str]) -> None:
    """Without the header the guid is read from the body, whatever its type says."""
    assert read(b'{"guid":"order-42"}', headers).guid == KEY


def test_only_the_top_level_guid_is_the_guid() -> None:
    """A guid further inside is the channel's own business."""
    assert read(b'{"a":{"guid":"x"}}', WITH_KEY).guid == KEY


@pytest.mark.parametrize(
    ("header", "says"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param('""', "is empty", id="empty-quotes"),
        pytest.param("a" * 129, "longer than 128", id="129-characters"),
        pytest.param("a\r\nb", "line break at place 2", id="line-break"),
        pytest.param("é", "outside ASCII at place 1", id="non-ascii"),
        pytest.param("a b", "not allowed at place 2", id="space"),
        pytest.param("a,b", "Two Idempotency-Key headers", id="two-keys"),
        pytest.param("a, a", "Two Idempotency-Key headers", id="the-same-key-twice"),
        pytest.param("a,", "Two Idempotency-Key headers", id="a-key-and-an-empty-one"),
        pytest.param('"a","b"', "Two Idempotency-Key headers", id="two-quoted-keys"),
        pytest.param('"a" , b', "Two Idempotency-Key headers", id="quoted-and-bare"),
        pytest.param('a,"b"', "Two Idempotency-Key headers", id="bare-and-quoted"),
        pytest.param('"a,b"', "not allowed at place 2", id="comma-within-the-quotes"),
        pytest.param('"a";v=1', "bears parameters", id="parameters"),
        pytest.param('"a', "not one quoted string", id="open-quote"),
        pytest.param('"', "not one quoted string", id="quote-alone"),
        pytest.param('"a"b', "not one quoted string", id="text-after-the-quotes"),
        pytest.param('a"', "not allowed at place 2", id="quote-at-the-end"),
        pytest.param('"a\\"b"', "not one quoted string", id="escaped-quote"),
        pytest.param('" a"', "not allowed at place 1", id="space-within-the-quotes"),
        pytest.param(":abc:", "letter or digit", id="byte-sequence"),
    ],
)
def test_a_bad_key_header_is_refused_by_its_own_sentence(header: str, says: str) -> None:
    """The refusal names the header, what is wrong with it and what to send."""
    error = refusal(headers={"idempotency-key": header})
    assert says in str(error)
    assert "Idempotency-Key" in str(error)
    assert error.status == 400


@pytest.mark.parametrize(
    "key",
    [pytest.param({}, id="alone"), pytest.param(WITH_KEY, id="beside-the-header")],
)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        pytest.param("null", "is null", id="null"),
        pytest.param('["order-42"]', "is a list", id="list"),
        pytest.param('{"v":1}', "is an object", id="object"),
        pytest.param("42", "is a number", id="number"),
        pytest.param("true", "is true or false", id="boolean"),
        pytest.param('""', "is empty", id="empty"),
        pytest.param(f'"{"a" * 129}"', "longer than 128", id="129-characters"),
        pytest.param('"a\\r\\nb"', "line break at place 2", id="line-break"),
        pytest.param('"\\u00e9"', "outside ASCII at place 1", id="non-ascii"),
        pytest.param('"a,b"', "not allowed at place 2", id="comma"),
        pytest.param('" order-42"', "not allowed at place 1", id="space-in-front"),
        pytest.param('"\\"order-42\\""', "not allowed at place 1", id="quoted-twice"),
    ],
)
def test_a_bad_guid_in_the_body_is_refused(value: str, says: str, key: dict[str, str]) -> None:
    """A guid that cannot be read is never passed over, not even beside a good header."""
    error = refusal(f'{{"guid":{value}}}'.encode(), {"content-type": JSON_TYPE, **key})
    assert str(error).startswith("The body's guid ")
    assert says in str(error)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"guid":"order-43"}', id="another"),
        pytest.param(b'{"guid":"Order-42"}', id="other-case-of-no-known-shape"),
    ],
)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no-type"),
        pytest.param({"content-type": "application/vnd.bank+json"}, id="json"),
    ],
)
def test_two_different_guids_are_refused(body: bytes, headers: dict[str, str]) -> None:
    """Where header and body differ, neither is believed."""
    assert "differ" in str(refusal(body, {"idempotency-key": KEY, **headers}))


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(b"{}", {}, id="empty-object"),
        pytest.param(b'{"GUID":"a"}', {}, id="other-case"),
        pytest.param(b'{"a":{"guid":"b"}}', {"content-type": JSON_TYPE}, id="not-at-the-top"),
        pytest.param(b'["guid"]', {"content-type": JSON_TYPE}, id="list"),
        pytest.param(b'"guid"', {"content-type": JSON_TYPE}, id="string"),
        pytest.param(b"null", {}, id="null"),
    ],
)
def test_a_request_without_a_guid_is_refused(body: bytes, headers: dict[str, str]) -> None:
    """Without a GUID nothing could be recognised again; the refusal says where it belongs."""
    assert "The GUID is missing: send the Idempotency-Key header" in str(refusal(body, headers))


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(b"guid=a", {"content-type": "application/x-www-form-urlencoded"}, id="form"),
        pytest.param(b"<guid>a</guid>", {}, id="xml-without-a-type"),
    ],
)
def test_a_body_that_cannot_hold_a_guid_is_told_about_the_header(
    body: bytes, headers: dict[str, str]
) -> None:
    """A sender of something else than JSON is told about the header, not about JSON alone."""
    assert "There is no Idempotency-Key header" in str(refusal(body, headers))

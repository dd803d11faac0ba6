"""What a message's source adds to a request: a key, an operation, a time. HTTP adds nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from relayhub.message import (
    AlreadyOverError,
    Carrier,
    MalformedError,
    MessageRules,
    Submission,
    fingerprint,
    is_operation,
    read_submission,
)

NOW_MS = 1_800_000_000_000
UUID = "3f2b8c1e-7d4a-4e0b-9a5c-0123456789ab"
BODY = b'{"amount":1}'
WITH_KEY = {"idempotency-key": "G-1"}
PLAIN = MessageRules()


def read(
    carrier: Carrier,
    headers: Mapping[str, str] = WITH_KEY,
    body: bytes = BODY,
    rules: MessageRules = PLAIN,
) -> Submission:
    """Read a message that came so."""
    return read_submission(
        headers=headers,
        body=body,
        is_text=False,
        channel="kafka:receipts",
        rules=rules,
        now_ms=NOW_MS,
        carrier=carrier,
    )


def refusal(carrier: Carrier, headers: Mapping[str, str], body: bytes = BODY) -> str:
    """Read a message that must be refused, and return the sentence."""
    with pytest.raises(MalformedError) as caught:
        read(carrier, headers, body)
    assert caught.value.status == 400
    return str(caught.value)


def test_a_source_that_adds_nothing_is_as_http() -> None:
    """The default, by which a request by HTTP is read; it has no time of its own."""
    by_http = read_submission(
        headers=WITH_KEY,
        body=BODY,
        is_text=False,
        channel="kafka:receipts",
        rules=PLAIN,
        now_ms=NOW_MS,
    )
    assert read(Carrier()) == by_http
    assert (by_http.operation, by_http.sent_ms) == ("", None)


def test_a_messages_time_is_kept() -> None:
    """As it is: whether it is too old is not decided here."""
    assert read(Carrier(sent_ms=0)).sent_ms == 0
    assert read(Carrier(sent_ms=NOW_MS + 1)).sent_ms == NOW_MS + 1


def test_a_message_that_is_over_keeps_its_time_too() -> None:
    """Its row may have to be told of all the same."""
    with pytest.raises(AlreadyOverError) as caught:
        read(Carrier(sent_ms=7), {**WITH_KEY, "valid-until": "2026-01-01T00:00:00Z"})
    assert caught.value.submission.sent_ms == 7


@pytest.mark.parametrize(
    ("headers", "body", "guid"),
    [
        pytest.param(WITH_KEY, BODY, "G-1", id="header"),
        pytest.param({}, b'{"guid":"G-2"}', "G-2", id="body"),
        pytest.param({}, BODY, UUID, id="key"),
        pytest.param({}, b"\x00 0200", UUID, id="key_of_an_opaque_body"),
        pytest.param({"content-type": "application/json"}, b"[1]", UUID, id="key_of_a_list"),
    ],
)
def test_header_body_key_is_the_order(headers: dict[str, str], body: bytes, guid: str) -> None:
    """The key counts only where neither of the others names a GUID; then it is folded as they."""
    assert read(Carrier(key=UUID.upper().encode()), headers, body).guid == guid


@pytest.mark.parametrize("key", [b"", b"a b", b"\xff"])
def test_a_key_that_is_not_needed_is_not_read(key: bytes) -> None:
    """Whatever it is."""
    assert read(Carrier(key=key)).guid == "G-1"
    assert "The record's key " in refusal(Carrier(key=key), {})


def test_a_key_does_not_excuse_a_guid_that_cannot_be_read() -> None:
    """Neither a bad one, nor one in JSON that is not valid, nor two that differ."""
    keyed = Carrier(key=b"r1001")
    assert "The body's guid is a number" in refusal(keyed, {}, b'{"guid":7}')
    assert "The JSON is not valid" in refusal(keyed, {}, b'{"guid":"G-2"')
    assert "differ" in refusal(keyed, WITH_KEY, b'{"guid":"G-2"}')
    assert "Idempotency-Key header is empty" in refusal(keyed, {"idempotency-key": ""})


def test_a_source_without_a_key_adds_no_guid() -> None:
    """Then it is missing, as by HTTP."""
    assert "The GUID is missing" in refusal(Carrier(operation="receipt", sent_ms=1), {})
    assert "no guid can be read" in refusal(Carrier(), {}, b"0200")


@pytest.mark.parametrize("headers", [{}, {"x-operation": "receipt"}, {"x-operation": " receipt "}])
def test_a_sources_operation_is_its_messages(headers: dict[str, str]) -> None:
    """The header may say the same; the fingerprint covers it either way."""
    submission = read(Carrier(operation="receipt"), {**WITH_KEY, **headers})
    assert submission.operation == "receipt"
    assert submission.fingerprint == fingerprint("receipt", BODY, "body")


@pytest.mark.parametrize("text", ["refund", "Receipt", "receipt2"])
def test_a_source_takes_no_other_operation(text: str) -> None:
    """The sentence says the source's own, and not what was sent."""
    said = refusal(Carrier(operation="receipt"), {**WITH_KEY, "x-operation": text})
    assert "X-Operation differs from what this source is for, receipt: " in said


@pytest.mark.parametrize("text", ["", "a b", "receipt, receipt"])
def test_an_operation_that_is_none_is_told_as_such(text: str) -> None:
    """Whatever the source's own is."""
    says = "X-Operation must be 1 to 64"
    assert says in refusal(Carrier(operation="receipt"), {**WITH_KEY, "x-operation": text})


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("a", True),
        ("Z9_.-", True),
        ("x" * 64, True),
        ("", False),
        ("x" * 65, False),
        ("a b", False),
        ("a\n", False),
        ("\u00e9", False),
        (" a", False),
    ],
)
def test_an_operations_alphabet(text: str, *, may: bool) -> None:
    """One for the header and for the setting."""
    assert is_operation(text) is may

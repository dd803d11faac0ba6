"""The headers by which a channel steers its request: validity, delivery, operation."""

from __future__ import annotations

import pytest

from relayhub.message import (
    AlreadyOverError,
    MalformedError,
    MessageRules,
    Submission,
    parse_rfc3339,
    read_submission,
)
from relayhub.states import Delivery

NOW_MS = parse_rfc3339("2026-11-29T19:10:59.123Z")
KEY = "order-42"


def read(name: str, value: str, *, default: Delivery = Delivery.DEFERRED) -> Submission:
    """Read a request that bears a key and one more header at `NOW_MS`."""
    return read_submission(
        headers={"idempotency-key": KEY, name: value},
        body=b"0200",
        is_text=True,
        channel="atm",
        rules=MessageRules(delivery=default),
        now_ms=NOW_MS,
    )


def refusal(name: str, value: str) -> str:
    """Read a request that must be refused, and return the sentence."""
    with pytest.raises(MalformedError) as caught:
        read(name, value)
    assert caught.value.status == 400
    return str(caught.value)


def test_an_expired_request_is_refused_but_can_still_be_recognised() -> None:
    """A resend whose time has passed is not sent, and its GUID's state can still be told."""
    with pytest.raises(AlreadyOverError, match="Valid-Until has passed") as caught:
        read("valid-until", "2026-11-29T19:10:59.123Z")
    assert caught.value.submission.guid == KEY
    assert caught.value.submission.valid_until_ms == NOW_MS


def test_a_request_is_valid_until_its_last_millisecond() -> None:
    """One millisecond ahead is still ahead."""
    submission = read("valid-until", "2026-11-29T19:10:59.124Z")
    assert submission.valid_until_ms == NOW_MS + 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("2026-12-01T00:00:00", "no offset", id="naive"),
        pytest.param("tomorrow", "not RFC 3339", id="word"),
        pytest.param("", "not RFC 3339", id="empty"),
        pytest.param("2026-02-30T00:00:00Z", "does not exist", id="no-such-day"),
        pytest.param("2026-12-01T00:00:00Z,2026-12-02T00:00:00Z", "not RFC 3339", id="two"),
    ],
)
def test_a_bad_valid_until_is_refused(text: str, says: str) -> None:
    """The refusal names the header and what is wrong with its time."""
    error = refusal("valid-until", text)
    assert error.startswith("Valid-Until")
    assert says in error


@pytest.mark.parametrize(
    ("text", "delivery"),
    [
        pytest.param("deferred", Delivery.DEFERRED, id="deferred"),
        pytest.param("Interactive", Delivery.INTERACTIVE, id="capital"),
        pytest.param(" INTERACTIVE ", Delivery.INTERACTIVE, id="upper-case-with-spaces"),
    ],
)
def test_the_delivery_is_the_channels_choice(text: str, delivery: Delivery) -> None:
    """The header overrides the setting, in any case of letters."""
    other = next(choice for choice in Delivery if choice is not delivery)
    assert read("delivery", text, default=other).delivery is delivery


@pytest.mark.parametrize("delivery", list(Delivery))
def test_the_setting_decides_where_the_channel_does_not(delivery: Delivery) -> None:
    """Without the header the setting counts."""
    assert read("x-operation", "transfer", default=delivery).delivery is delivery


@pytest.mark.parametrize(
    "text", ["", "later", "deferred,interactive", "deferred; q=1", "d\u00e9f\u00e9r\u00e9"]
)
def test_a_bad_delivery_is_refused(text: str) -> None:
    """Whether the hub may send later is not guessed."""
    error = refusal("delivery", text)
    assert "Delivery must be deferred or interactive" in error


@pytest.mark.parametrize("text", ["a", "Z9_.-", "x" * 64, "-", " transfer "])
def test_an_operation_is_taken(text: str) -> None:
    """1 to 64 characters of the alphabet pass; the space around a header is not part of it."""
    assert read("x-operation", text).operation == text.strip()


@pytest.mark.parametrize(
    "text", ["", "x" * 65, "a b", "a/b", "a:b", "a,b", "é", "a\n", "\na", "a\r\nX-GUID: b"]
)
def test_a_bad_operation_is_refused(text: str) -> None:
    """It is sent to the core in a header, so nothing strange may be in it."""
    assert "X-Operation must be 1 to 64" in refusal("x-operation", text)

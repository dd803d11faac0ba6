"""The declared money fields: kept as they were written, and never a reason to refuse."""

from __future__ import annotations

from decimal import Decimal

import pytest

from relayhub.money import LENGTH_MAX, declared, number

POINTERS = {"amount": "/money/amount", "currency": "/money/currency", "reference": "/ref"}


def test_the_fields_are_kept_by_their_source_text() -> None:
    """No number is turned into another one on the way."""
    body = b'{"money":{"amount":1000.10,"currency":"JPY"},"ref":"R-1"}'
    found = declared(body, POINTERS)
    assert found == {"amount": "1000.10", "currency": "JPY", "reference": "R-1"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"ref":"\\ud83d"}',
        b"{}",
        b"<amount>1</amount>",
        b"\xff",
        b"[]",
        b'{"money":1,"ref":null}',
        b'{"ref":{"a":1}}',
    ],
)
def test_a_body_without_them_has_none(body: bytes) -> None:
    """It is another operation's, or no JSON."""
    assert declared(body, POINTERS) == {}


def test_without_a_declaration_the_body_is_not_read() -> None:
    """Not even one that could not be."""
    assert declared(b"\xff", {}) == {}


def test_what_is_too_long_for_a_reference_is_none() -> None:
    """It would cost write units, and nobody reads it out."""
    kept = declared(b'{"ref":"%s"}' % (b"x" * LENGTH_MAX), POINTERS)
    assert len(kept["reference"]) == LENGTH_MAX
    assert declared(b'{"ref":"%s"}' % (b"x" * (LENGTH_MAX + 1)), POINTERS) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", Decimal(1000)),
        ("1000.00", Decimal(1000)),
        ("-0.1", Decimal("-0.1")),
        ("1e3", Decimal(1000)),
        ("1,000", None),
        ("NaN", None),
        ("Infinity", None),
        ("", None),
        (None, None),
    ],
)
def test_an_amount_is_an_exact_number_or_none(text: str | None, value: Decimal | None) -> None:
    """What is no number is counted apart, never guessed."""
    assert number(text) == value

"""The declared fields that tell which money moves: kept in the row, and nowhere else. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import Final

from relayhub.strict_json import MalformedError, Number, at_pointer, strict_json

FIELDS: Final = ("amount", "currency", "reference")
_DIGITS_MAX: Final = 40  # Before the point, and behind it.
_EXACT: Final = Context(prec=3 * _DIGITS_MAX)
LENGTH_MAX: Final = 64  # A longer one is no amount, and no reference that a person reads out.


def declared(body: bytes, pointers: Mapping[str, str]) -> dict[str, str]:
    """Return the declared fields that the body has, numbers by their source text.

    One that is missing, or is neither text nor number, is left out: a request is never refused for
    what only helps a person to find it.
    """
    if not pointers:
        return {}
    try:
        document = strict_json(body)
    except MalformedError:
        return {}
    found = {name: _text(document, pointer) for name, pointer in pointers.items()}
    return {name: text for name, text in found.items() if text and len(text) <= LENGTH_MAX}


def _text(document: object, pointer: str) -> str:
    try:
        value = at_pointer(document, pointer)
    except MalformedError:
        return ""
    if isinstance(value, Number):
        return value.text
    # Half a character, as of a text that was cut, could not be stored.
    return value if isinstance(value, str) and value.isprintable() else ""


def number(text: str | None) -> Decimal | None:
    """Return the amount as an exact number; None for what is none, or nobody's amount of money."""
    try:
        value = Decimal(text or "")
    except InvalidOperation:
        return None
    is_money = value.is_finite() and int(value.as_tuple().exponent) > -_DIGITS_MAX
    return value if is_money and value.adjusted() < _DIGITS_MAX else None


def total(one: Decimal, other: Decimal) -> Decimal:
    """Return the exact sum: no digit of an amount is ever rounded away."""
    return _EXACT.add(one, other)

"""How a setting's text becomes its value; raises ValueError, which says what is wrong. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from relayhub.message import GuidScope, is_operation, parse_rfc3339, scheme_of
from relayhub.money import FIELDS
from relayhub.place import place_of
from relayhub.states import Code, Delivery
from relayhub.strict_json import is_pointer

_SOURCE: Final = re.compile(r"(sqs|kafka):[A-Za-z0-9._-]+")


def parse_number(text: str, low: int, high: int) -> int:
    """Return the whole number, which lies within the bounds."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"must be a whole number, not {text!r}")
    if not low <= (value := int(text)) <= high:
        raise ValueError(f"must be from {low} to {high}, not {value}")
    return value


def parse_text(text: str) -> str:
    """Return the text without the white space around it, which is not empty."""
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _parse_codes(text: str) -> tuple[str, ...]:
    patterns = _parse_list(text)
    if not patterns:
        raise ValueError("must name at least one code")
    for pattern in patterns:
        if any(fnmatchcase(code, pattern) for code in Code):
            raise ValueError(f"must not match the hub's own codes, as {pattern!r} does")
    return patterns


def _parse_word(text: str, words: Mapping[str, Any]) -> Any:
    try:
        return words[text.strip().lower()]
    except KeyError:
        raise ValueError(f"must be one of {', '.join(words)}, not {text!r}") from None


def _parse_pointers(text: str) -> tuple[str, ...]:
    pointers = _parse_list(text)
    scheme_of(pointers)  # Raises ValueError, which names the bad ones.
    return pointers


def _parse_url(text: str) -> str:
    place_of(text)  # Raises ValueError, which says what is wrong.
    return text


def _parse_time(text: str) -> str:
    parse_rfc3339(text)  # Raises MalformedError, a ValueError, which says what is wrong.
    return text


def _parse_names(text: str, what: str) -> tuple[tuple[str, str], ...]:
    fault = f"must be a JSON object of {what}, each name once"
    try:
        names = json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        raise ValueError(fault) from None
    if not isinstance(names, dict) or not all(isinstance(v, str) and v for v in names.values()):
        raise ValueError(fault)
    return tuple(sorted(names.items()))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; raises ValueError for a name that stands in it twice."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError
    return found


def _parse_money(text: str) -> tuple[tuple[str, str], ...]:
    found = _parse_names(text, "amount, currency, reference to JSON pointer")
    for name, pointer in found:
        if name not in FIELDS:
            raise ValueError(f"must name only {', '.join(FIELDS)}, not {name!r}")
        if not is_pointer(pointer):
            raise ValueError(f"must name JSON pointers such as /amount, not {pointer!r}")
    return found


def _parse_operations(text: str) -> tuple[tuple[str, str], ...]:
    found = _parse_names(text, "source to operation")
    for source, operation in found:
        if not _SOURCE.fullmatch(source):
            raise ValueError(f"must name sources as sqs:<queue> or kafka:<topic>, not {source!r}")
        if not is_operation(operation):
            raise ValueError(f"must name operations of 1 to 64 of A-Z a-z 0-9 _ . -: {operation!r}")
    return found


PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "delivery": partial(_parse_word, words={str(each): each for each in Delivery}),
    "guid_scope": partial(_parse_word, words={str(each): each for each in GuidScope}),
    "guid_time": partial(_parse_word, words={"auto": True, "off": False}),
    "channel_claim": partial(_parse_word, words={"sub": "sub", "client_id": "client_id"}),
    "channel_names": partial(_parse_names, what="identity to channel name"),
    "money_fields": _parse_money,
    "source_operations": _parse_operations,
    "core_url": _parse_url,
    "executed_codes": _parse_codes,
    # On the way to true: the source takes partial answers already, the function gives none yet.
    "kafka_partial_batches": partial(
        _parse_word, words={"false": False, "source": False, "true": True}
    ),
    "refused_codes": _parse_codes,
    "fingerprint_fields": _parse_pointers,
    "hold_not_found_until": _parse_time,
}
BY_TYPE: Final[Mapping[str, Callable[[str], Any]]] = {
    "tuple[str, ...]": _parse_list,
    "bool": partial(_parse_word, words={"true": True, "false": False}),
}

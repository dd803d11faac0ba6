"""Read JSON so that two readers can never see two things in the same bytes.

It imports the standard library only. The rule that it protects: what the hub compares is what the
core will read. So a repeated key, a mark before the text or a value outside the standard is
refused, and a number stays the text that was sent: 1.0 and 1.00 are two different requests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

DEPTH_MAX: Final = 64  # Far above any real request, far below what a parser's stack can bear.

_ESCAPE: Final = re.compile(rb"\\.", re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_POINTER: Final = re.compile(r"(?:/(?:[^~/,]|~[01])*)+")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class MalformedError(ValueError):
    """Input that breaks the wire format (E905); says what is wrong and what to do about it.

    The text never repeats the payload. `status` is the HTTP status to answer with: 400 or 413.
    """

    def __init__(self, detail: str, *, status: int = 400) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number as the text that was sent, never converted."""

    text: str


def strict_json(body: bytes) -> object:
    """Return the JSON value, its numbers as `Number`; raises MalformedError for anything else."""
    if body.startswith(_BYTE_ORDER_MARK):
        raise MalformedError("The JSON starts with a byte order mark: send it without one.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(
            f"The JSON is not UTF-8 (byte {error.start + 1}): send it in UTF-8."
        ) from None
    _check_depth(body)
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise MalformedError(
            f"The JSON is not valid at line {error.lineno}, column {error.colno}: mend it."
        ) from None


def canonical_json(value: object) -> str:
    """Return the one spelling of a value of `strict_json`: sorted, no spaces, ASCII."""
    match value:
        case Number():
            return value.text
        case dict():
            members = (f"{json.dumps(key)}:{canonical_json(value[key])}" for key in sorted(value))
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(canonical_json(item) for item in value) + "]"
        case _:
            return json.dumps(value)


def is_pointer(text: str) -> bool:
    """Tell whether the text is a JSON pointer (RFC 6901) to a field, without a comma.

    The empty pointer, which means the whole document, is not a field; a comma separates pointers
    in the settings and in a row's scheme.
    """
    return _POINTER.fullmatch(text) is not None


def at_pointer(document: object, pointer: str) -> object:
    """Return the value that the pointer names; raises MalformedError when it is not there."""
    value = document
    for token in pointer.split("/")[1:]:
        # The order is RFC 6901's: the other way round, ~01 would become a slash.
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise MalformedError(
                f"The JSON lacks the field {pointer}, which this hub compares: send it."
            )
    return value


def _check_depth(body: bytes) -> None:
    """Refuse a body that is nested too deeply, before a recursive parser sees it.

    Up to the first error of syntax the count is exact: outside of strings JSON has no backslash,
    so that without the escapes every second piece between the quotes is structure.
    """
    structure = b"".join(_ESCAPE.sub(b"", body).split(b'"')[::2])
    depth = 0
    for bracket in _BRACKET.findall(structure):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            raise MalformedError(
                f"The JSON is nested more than {DEPTH_MAX} levels deep: flatten it."
            )


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise MalformedError("An object in the JSON has the same key twice: send each key once.")
    return members


def _refuse_constant(_name: str) -> object:
    raise MalformedError("The JSON holds NaN or Infinity, which are not JSON: send a number.")

"""The GUID: its alphabet, its one spelling, its key, and the time of birth that some shapes bear.

It imports the standard library only. The rule that it protects: one act has one key, however the
same GUID is spelt on a resend, and two acts never have the same one.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NoReturn

from relayhub.strict_json import MalformedError, Number

GUID_LENGTH_MAX: Final = 128

_HEADER: Final = "The Idempotency-Key header"
_MEMBER: Final = "The body's guid"
_RECORD_KEY: Final = "The record's key"
_WHAT_TO_DO: Final = f"send 1 to {GUID_LENGTH_MAX} characters of A-Z a-z 0-9 . _ : -"
_FAULTS: Final = (
    (re.compile(r"\A\Z"), "is empty"),
    (re.compile(r"[\r\n]"), "holds a line break at place {place}"),
    (re.compile(r"[^\x00-\x7f]"), "holds a character outside ASCII at place {place}"),
    (re.compile(r"[^A-Za-z0-9._:-]"), "holds a character that is not allowed at place {place}"),
    (re.compile(rf"\A.{{{GUID_LENGTH_MAX + 1}}}"), f"is longer than {GUID_LENGTH_MAX} characters"),
    (re.compile(r"\A[^A-Za-z0-9]"), "does not start with a letter or digit"),
)
_QUOTED: Final = re.compile(r'"([^"]*)"')

# A channel's name in a key: what is not a letter, a digit, `.` or `-` is `_` and its UTF-8 in hex.
# So no name holds the `:` that stands before it, and two names are never spelt alike.
_NOT_PLAIN: Final = re.compile(rb"[^A-Za-z0-9.-]")

_HEX: Final = "[0-9a-f]"
_UUID: Final = re.compile(
    rf"{_HEX}{{32}}|{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
    re.IGNORECASE | re.ASCII,
)
_UUID7: Final = re.compile(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}")  # RFC 9562 5.7.
_ULID_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: no I, L, O, U.
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE | re.ASCII)

_BORN_FIRST_MS: Final = 1_577_836_800_000  # 2020-01-01: what seems older is chance, not a birth.
_BORN_AHEAD_MS: Final = 86_400_000  # A day: no clock that is run with care is further ahead.


class GuidScope(StrEnum):
    """Within what no two acts may have the same GUID."""

    GLOBAL = "global"  # The key of a row is the GUID.
    CHANNEL = "channel"  # It is the GUID, a colon and the channel's name.


def key_of(guid: str, channel: str, scope: GuidScope) -> str:
    """Return the key of the GUID's row, by which the core knows it too; raises MalformedError.

    It is a GUID by its alphabet, first character and length.
    """
    if scope is GuidScope.GLOBAL:
        return guid
    key = f"{guid}:{spelt(channel)}"
    if len(key) > GUID_LENGTH_MAX:
        raise MalformedError(_too_long(len(key) - len(guid)))
    return key


def guid_of(key: str, scope: GuidScope) -> str:
    """Return the GUID that the channel knows the key by."""
    return key if scope is GuidScope.GLOBAL else key.rpartition(":")[0] or key


def spelt(channel: str) -> str:
    """Return the channel's name in letters, digits, `.`, `-` and `_`; two names never alike."""
    # A claim of a token may hold what is no text; it is a name like any other.
    name = channel.encode("utf-8", "surrogatepass")
    return _NOT_PLAIN.sub(lambda found: b"_%02X" % found[0][0], name).decode("ascii")


def _too_long(taken: int) -> str:
    room = GUID_LENGTH_MAX - taken
    if room < 1:
        return "The channel's name leaves no room for a GUID: let the hub's operator shorten it."
    return f"The GUID is longer than the {room} characters that this channel may use: shorten it."


def check_guid(text: object) -> str:
    """Return the GUID in its one spelling; raises MalformedError for what is none."""
    return _checked(text, "The GUID")


def guid_of_header(value: str | None) -> str | None:
    """Return the GUID of the Idempotency-Key header, bare or quoted; None without a header."""
    if value is None:
        return None
    if value.startswith('"'):
        return _checked(_unquoted(value), _HEADER)
    if "," in value:
        _refuse_two_keys()
    return _checked(value, _HEADER)


def guid_of_member(value: object) -> str:
    """Return the GUID of the JSON body's member `guid`."""
    return _checked(value, _MEMBER)


def guid_of_record_key(key: bytes) -> str:
    """Return the GUID that a Kafka record's key is."""
    try:
        return _checked(key.decode(), _RECORD_KEY)
    except UnicodeDecodeError:
        raise MalformedError(f"{_RECORD_KEY} is not UTF-8 text: {_WHAT_TO_DO}.") from None


def born_ms(guid: str, now_ms: int) -> int | None:
    """Return when a UUIDv7 or ULID was made, in epoch ms; None for any other, or absurd, GUID."""
    if _ULID.fullmatch(guid):
        born = 0
        for digit in guid[:10].upper():
            born = born * len(_ULID_DIGITS) + _ULID_DIGITS.index(digit)
    elif _UUID.fullmatch(guid) and _UUID7.fullmatch(guid.lower().replace("-", "")):
        born = int(guid.replace("-", "")[:12], 16)
    else:
        return None
    return born if _BORN_FIRST_MS <= born <= now_ms + _BORN_AHEAD_MS else None


def _unquoted(text: str) -> str:
    """Return what stands in an RFC 8941 string; its escapes are outside a GUID's alphabet."""
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[1]
    after = text[1:].partition('"')[2].lstrip(" \t")
    if after.startswith(","):
        _refuse_two_keys()
    if after.startswith(";"):
        raise MalformedError(f"{_HEADER} bears parameters: send the quoted GUID alone.")
    raise MalformedError(
        f"{_HEADER} is not one quoted string: send the GUID bare, or in one pair of quotes."
    )


def _refuse_two_keys() -> NoReturn:
    raise MalformedError(
        "Two Idempotency-Key headers were sent (or one with a comma): send exactly one key."
    )


def _checked(text: object, subject: str) -> str:
    if not isinstance(text, str):
        raise MalformedError(f"{subject} is {_kind(text)}, not a string: {_WHAT_TO_DO}.")
    fault = _fault(text)
    if fault is not None:
        raise MalformedError(f"{subject} {fault}: {_WHAT_TO_DO}, the first a letter or digit.")
    return _folded(text)


def _fault(text: str) -> str | None:
    """Say what is wrong with a GUID, by place and never by value; None when nothing is."""
    for pattern, fault in _FAULTS:
        found = pattern.search(text)
        if found:
            return fault.format(place=found.start() + 1)
    return None


def _folded(guid: str) -> str:
    """Return the one spelling of the shapes that are the same in either case."""
    if _UUID.fullmatch(guid):
        return guid.lower()
    return guid.upper() if _ULID.fullmatch(guid) else guid


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case Number() | int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "of another kind"

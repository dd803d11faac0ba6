"""Write and read times as RFC 3339 has them; inside, a time is UTC epoch milliseconds.

It imports the standard library only. The rule that it protects: a time without an offset is
never guessed at.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from relayhub.strict_json import MalformedError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S: Final = 86_400
_LEAP_SECOND: Final = 60  # RFC 3339 5.7: the one after 23:59:59.
_FIRST_MS: Final = -62_135_596_800_000  # 0001-01-01T00:00:00Z, the first that datetime can hold.
_LAST_MS: Final = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last.

# `datetime.fromisoformat` takes more than RFC 3339 has (week dates, no separators), hence this.
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)


def rfc3339(ms: int) -> str:
    """Return the time in UTC with milliseconds; raises OverflowError outside years 1 to 9999."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_rfc3339(text: str) -> int:
    """Return epoch milliseconds, a finer fraction cut off; raises MalformedError."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise MalformedError("The time is not RFC 3339: write it as 2030-01-31T18:30:00+09:00.")
    *numbers, fraction, offset = found.groups()
    if offset is None:
        raise MalformedError("The time has no offset from UTC: add Z or one such as +09:00.")
    year, month, day, hour, minute, second = (int(number) for number in numbers)
    is_leap = second == _LEAP_SECOND
    try:
        moment = datetime(year, month, day, hour, minute, 59 if is_leap else second, tzinfo=UTC)
    except ValueError:
        raise MalformedError("The time does not exist: no such date or hour.") from None
    whole_s = (moment - _EPOCH) // timedelta(seconds=1) + is_leap - _offset_s(offset)
    if is_leap and whole_s % _DAY_S:
        raise MalformedError("The time does not exist: a leap second ends a day in UTC.")
    ms = whole_s * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    if not _FIRST_MS <= ms <= _LAST_MS:
        raise MalformedError("The time lies outside the years 1 to 9999: send one within.")
    return ms


def _offset_s(offset: str) -> int:
    if offset in "Zz":
        return 0
    seconds = int(offset[1:3]) * 3600 + int(offset[4:6]) * 60
    return -seconds if offset.startswith("-") else seconds

"""The moments at which something becomes due, believable or over: where the virtual time may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from relayhub.settings import Settings

Offset = Callable[[Settings], int]


def _skew_ms(settings: Settings) -> int:
    return settings.clock_skew_s * 1000


# By name: the attribute that it goes by, and how long after it something changes; ms.
_MOMENTS: Final[dict[str, tuple[str, Offset]]] = {
    "due": ("due_at", lambda _: 0),
    "holder gone": ("dead_at", lambda s: _skew_ms(s) + 1),
    "may ask": ("ask_after", lambda _: 1),
    "old enough": ("ended_at", lambda s: s.min_age_s * 1000 + 1),
    "far enough apart": ("not_found_at", lambda s: s.not_found_apart_s * 1000),
    "not seen for long": ("processing_at", lambda s: s.core_longest_s * 1000 + _skew_ms(s) + 1),
    "over": ("valid_until", lambda _: 0),
    "probe": ("probe_at", lambda _: 0),
    "last byte": ("sent_at", lambda s: s.core_deadline_s * 1000 - 1),
    "forgotten": ("sent_at", lambda s: s.core_memory_s * 1000 - _skew_ms(s)),
}
ALL: Final = tuple(_MOMENTS)
DEFAULT: Final = ALL[:8]
# What a NOT_FOUND goes through before it is believed.
PROOF: Final = ("holder gone", "may ask", "far enough apart")


@cache
def _offsets(deploys: tuple[Settings, ...], names: tuple[str, ...]) -> list[tuple[str, int]]:
    moments = [_MOMENTS[name] for name in names]
    return sorted({(name, offset(each)) for name, offset in moments for each in deploys})


def following(
    items: Iterable[Mapping[str, Any]],
    deploys: tuple[Settings, ...],
    names: tuple[str, ...],
    after_ms: int,
) -> int | None:
    """Return the first of the named moments after `after_ms`, epoch ms; None without one.

    Each deploy's settings have moments of their own.
    """
    found: int | None = None
    wanted = _offsets(deploys, names)
    for item in items:
        for attribute, offset_ms in wanted:
            value = item.get(attribute)
            # A row in an index key's form has a number; one that is removed has none.
            if value is None or "N" not in value:
                continue
            moment = int(value["N"]) + offset_ms
            if moment > after_ms and (found is None or moment < found):
                found = moment
    return found

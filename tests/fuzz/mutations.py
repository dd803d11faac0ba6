"""Events of the platform, spoilt: keys dropped, renamed and nested, values of other kinds.

What comes out is still JSON, as every event is, with what Python's reader takes beyond it: NaN,
Infinity and lone surrogates.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from hypothesis import strategies as st

Path = tuple[str | int, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_TEXT: Final = st.text(st.characters(exclude_categories=()), max_size=12)
_SCALARS: Final = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT | st.just(10**400)
_SMALL: Final = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)


def _nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


# Texts that are hard to read: as bodies, header values, GUIDs, times, base64.
_HARD_TEXTS: Final = (
    *(
        "",
        " ",
        "\x00",
        "\ud800",
        "\ufffd",
        "\u202e",
        "\r\nX-Evil: 1",
        "!gate",
        "-1",
        "1e400",
        "NaN",
    ),
    *("null", "[]", '{"guid":NaN}', '{"guid":"G-1","guid":"G-2"}', '{"guid":"G-1"', '{"guid":1e9}'),
    *(
        '{"guid":"\\ud800"}',
        '\ufeff{"guid":"G-1"}',
        "[" * 10_000,
        '{"a":' * 5_000,
        "=",
        "%%%",
        "YQ",
    ),
    *("0000-00-00T00:00:00Z", "9999-12-31T23:59:60Z", "2030-01-01T00:00:00", "a" * 129, "G-1,G-2"),
    *('"G-1"', '"G-1', "g\u0131", "\u0661", "x" * 300_000, "application/json; charset=shift_jis"),
)
_HARD: Final = (
    st.sampled_from(_HARD_TEXTS)
    | st.sampled_from(
        [float("nan"), float("inf"), 2**63, -(2**63), 1.5, True, [], {}, [{}], [None]]
    )
    | st.sampled_from([_nested(70), _nested(150), ["x"] * 5_000, {"x" * 5_000: 1}])
)
_ODD_NAMES: Final = st.sampled_from(
    [
        *("Idempotency-Key", "idempotency-key ", "valid-until", "delivery", "prefer", "guid", ""),
        *("relayhub-accepted", "first-sent-at", "content-type", "x-operation", "\ud800"),
    ]
)


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Return where every value stands, the whole event first."""
    yield at
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*at, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*at, index))


def held(event: Any, at: Path) -> Any:
    """Return the value at the place."""
    for part in at:
        event = event[part]
    return event


def _put(event: Any, at: Path, value: Any) -> Any:
    if not at:
        return value
    held(event, at[:-1])[at[-1]] = value
    return event


def _dropped(draw: Draw, event: Any, at: Path) -> Any:
    del draw
    if at:
        del held(event, at[:-1])[at[-1]]
    return event


def _replaced(draw: Draw, event: Any, at: Path) -> Any:
    return _put(event, at, draw(_SMALL))


def _hardened(draw: Draw, event: Any, at: Path) -> Any:
    return _put(event, at, copy.deepcopy(draw(_HARD)))


def _retyped(draw: Draw, event: Any, at: Path) -> Any:
    """Say the same in another kind: its text, its JSON, a list of it, its truth."""
    value = held(event, at)
    ways: tuple[Any, ...] = (str(value), json.dumps(value), [value], {"value": value}, bool(value))
    return _put(event, at, draw(st.sampled_from(ways)))


def _renamed(draw: Draw, event: Any, at: Path) -> Any:
    parent = held(event, at[:-1]) if at else None
    if isinstance(parent, dict):
        name = str(at[-1])
        odd = draw(st.sampled_from([name.title(), name.upper(), f"{name} "]) | _ODD_NAMES)
        parent[odd] = parent.pop(at[-1])
    return event


def _added(draw: Draw, event: Any, at: Path) -> Any:
    value = held(event, at)
    if isinstance(value, dict):
        value[draw(_ODD_NAMES)] = copy.deepcopy(draw(_HARD | _SMALL))
    elif isinstance(value, list):
        value.append(copy.deepcopy(value[0]) if value else draw(_SMALL))
    return event


def _damaged(draw: Draw, event: Any, at: Path) -> Any:
    """Cut a text, change a letter of it, put it in base64 once more, in other letters or bytes."""
    value = held(event, at)
    if not isinstance(value, str) or not value:
        return event
    cut = draw(st.integers(0, len(value) - 1))
    coded = value.encode("utf-8", "surrogatepass")
    ways = (
        value[:cut],
        value[:cut] + draw(st.characters(exclude_categories=())) + value[cut + 1 :],
        base64.b64encode(coded).decode(),
        base64.b64encode(coded + b"\xff\xfe").decode(),
        value.encode("utf-16", "surrogatepass").decode("latin-1"),
        value + value,
        value.swapcase(),
    )
    return _put(event, at, draw(st.sampled_from(ways)))


_WAYS: Final = (_dropped, _replaced, _hardened, _retyped, _renamed, _added, _damaged)


@st.composite
def spoilt(draw: Draw, samples: list[dict[str, Any]], kept: str = "") -> Any:
    """Return one of the events with up to three faults; `kept` names a part that is mostly whole.

    Whoever spoils the caller each time never gets past the door.
    """
    sample = draw(st.sampled_from(samples))
    event: Any = copy.deepcopy(sample)
    for _ in range(draw(st.integers(0, 7)) % 4):
        at = draw(st.sampled_from(list(places(event))))
        event = draw(st.sampled_from(_WAYS))(draw, event, at)
    if isinstance(event, dict) and kept in sample and draw(st.integers(0, 7)):
        event[kept] = copy.deepcopy(sample[kept])
    return event

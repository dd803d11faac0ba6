"""Requests that can be read in two ways, or not at all: refused before anything is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from verify import expect
from verify.play import JSON, Act, Play, require
from verify.scenario import Scenario, make

_BODY_BYTES_MAX: Final = 262_144
_GUID_CHARS_MAX: Final = 128
_BAD_GUIDS: Final = ("x" * (_GUID_CHARS_MAX + 1), "a b", "-a", "a/b", "a*b", "\u00fc-1", "a,b")
_BORN: Final = datetime(2021, 1, 1, tzinfo=UTC)  # Older than any ledger that forgets remembers.

Key = tuple[str, str]

_BLANKS: Final[Key] = ("X-Operation", "a transfer")


@dataclass(frozen=True)
class Bad:
    """A request that must be refused: what makes its header lines, body and type of an act."""

    slug: str
    name: str
    lines: Callable[[Act], list[Key]]
    body: Callable[[Act], bytes]


def _key(act: Act) -> list[Key]:
    return [("Idempotency-Key", act.guid)]


def _with(act: Act, **more: object) -> bytes:
    return json.dumps({**json.loads(act.body), **more}).encode()


def _plain(act: Act) -> bytes:
    return act.body


BAD: Final = (
    Bad("no-guid", "no GUID at all", lambda _: [], _plain),
    Bad("guid-null", "a GUID that is null", lambda _: [], partial(_with, guid=None)),
    Bad("guid-number", "a GUID that is a number", lambda _: [], partial(_with, guid=7)),
    Bad("two-keys", "two GUIDs in two headers", lambda a: [*_key(a), *_key(a)[:1]], _plain),
    Bad("keys-differ", "another GUID in the body", _key, partial(_with, guid="another")),
    Bad("not-json", "a body that is no JSON", _key, lambda a: a.body[:-1]),
    Bad(
        "names-twice",
        "a name twice in the body",
        _key,
        lambda a: a.body[:-1] + b',"amount":2}',
    ),
    Bad("nan", "NaN in the body", _key, lambda a: a.body[:-1] + b',"rate":NaN}'),
    Bad("not-utf8", "a body that is not UTF-8", _key, lambda a: a.body[:-1] + b',"x":"\x8c"}'),
    Bad("too-large", "a body over 256 KiB", _key, partial(_with, filler="x" * _BODY_BYTES_MAX)),
    Bad("bad-operation", "an operation with blanks", lambda a: [*_key(a), _BLANKS], _plain),
)


def _refused(play: Play, bad: Bad) -> None:
    act = play.act(amount=play.amount())
    amount = json.loads(act.body)["amount"]
    before = play.executed_amount(amount)
    answer = play.submit(bad.body(act), bad.lines(act), JSON)
    expect.malformed(answer)
    require(play.executed_amount(amount) == before, "the core executed the request")
    expect.code(play.post(act), "0000", what="the corrected request")


def bad_guids(play: Play) -> None:
    """A GUID of other characters, or longer than 128, is refused, and the core is not called."""
    amount = play.amount()
    before = play.executed_amount(amount)
    act = play.act(executed=0, amount=amount)
    for guid in _BAD_GUIDS:
        answer = play.submit(act.body, [("Idempotency-Key", guid)], JSON)
        expect.malformed(answer, f"the GUID {guid[:20]!r}")
    is_same = play.executed_amount(amount) == before
    require(is_same, "the core executed a request with a bad GUID")


def old_guid(play: Play) -> None:
    """A UUIDv7 that is older than the ledger's memory is not executed: reconcile first (E907)."""
    act = play.act(executed=0, guid=_uuid7(_BORN, play.table.run_id))
    answer = play.post(act)
    told = expect.code(answer, "E907", what="the request")
    words = (told.executed, told.resend, told.new_guid)
    require(words == ("unknown", "no", "no"), f"E907 says executed, resend, new_guid: {words}")


def _uuid7(born: datetime, run_id: str) -> str:
    """Return a UUIDv7 born then; the rest of it is the run's own."""
    rest = (7 << 76) | (2 << 62) | (int(run_id, 16) & ((1 << 62) - 1))
    return str(UUID(int=(int(born.timestamp() * 1000) << 80) | rest))


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("bad-guids", "GUIDs of other characters", bad_guids),
    *(
        make(
            bad.slug,
            bad.name,
            partial(_refused, bad=bad),
            "Refused (E905), nothing is recorded, and the corrected request is executed once.",
        )
        for bad in BAD
    ),
    make("old-guid", "a UUIDv7 from 2021", old_guid, case=32),
)

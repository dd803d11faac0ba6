"""Answers that are hard to keep: each comes back as it first came, and the core is not asked."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from verify import expect
from verify.play import Play, require
from verify.scenario import Scenario, make

BIG_BYTES: Final = 500_000  # More than an item of DynamoDB holds.
_TOO_MUCH: Final = 10**9  # More than any account of the core has.


def _replayed(play: Play, fault: dict[str, Any], type_: str, ending: bytes, size: int) -> None:
    act = play.act()
    play.faults({**fault, "guid": act.guid})
    first = play.post(act)
    require(first.status == 200, f"the core's answer came as status {first.status}")  # noqa: PLR2004
    told = first.content_type
    require(told == type_, f"the answer came as {told!r}, and not as the core's {type_!r}")
    is_whole = len(first.body) >= size and first.body.endswith(ending)
    require(
        is_whole, f"the answer came with other bytes than the core's: {len(first.body)} of them"
    )
    expect.same(first, play.post(act))


def _refusal(play: Play, code: str, fault: dict[str, Any] | None, amount: int) -> None:
    act = play.act(executed=0, amount=amount)
    if fault:
        play.faults({**fault, "guid": act.guid})
    first = play.post(act)
    expect.code(first, code, what="the first answer")
    expect.same(first, play.post(act))
    require(play.core.received(act.guid) == 1, "the resend of a refused request reached the core")


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make(
        "replay-shift-jis",
        "a telegram in Shift_JIS",
        partial(
            _replayed,
            fault={"kind": "shift_jis"},
            type_="text/plain; charset=Shift_JIS",
            ending=b"\0",
            size=200,
        ),
        "Shift_JIS, trailing blanks and a NUL come back byte for byte, content type included.",
        case=20,
    ),
    make(
        "replay-500kb",
        "an answer of 500 KB",
        partial(
            _replayed,
            fault={"kind": "big", "bytes": BIG_BYTES},
            type_="application/json",
            ending=b'"}',
            size=BIG_BYTES,
        ),
        "An answer that no item holds reaches the first caller and every resend whole.",
        case=25,
    ),
    make(
        "replay-chunked",
        "an answer in chunks",
        partial(
            _replayed,
            fault={"kind": "chunked"},
            type_="application/json",
            ending=b'"}',
            size=1,
        ),
        "A chunked answer that came to its end is an answer like any other.",
    ),
    make(
        "replay-refusal",
        "a business refusal (B201)",
        partial(_refusal, code="B201", fault=None, amount=_TOO_MUCH),
        "A definite refusal is the answer: a resend gets it again, and the core is not asked.",
    ),
    make(
        "replay-e500",
        "a refusal for good (E500)",
        partial(_refusal, code="E500", fault={"kind": "e500"}, amount=1),
        "The core's E500 means not executed: a resend gets it again, and the core is not asked.",
    ),
)

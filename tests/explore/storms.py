"""Storms: set-ups that a number draws, with many actors, up to four faults, and all kinds of them.

They are not exhausted; a seed picks each schedule by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from relayhub.settings import Settings
from tests.explore import casts, moments, rows
from tests.explore.bank import EXECUTES, GATEWAY, REFUSES, SILENT, WAITS, Habits
from tests.explore.customer import customer
from tests.explore.scheduler import Bounds
from tests.explore.setup import Setup
from tests.explore.world import START_MS, World

Part = Callable[[World], object]
COUNT: Final = 64
_ACTORS: Final = (
    *("post", "post", "post", "cancel", "status", "customer", "customer", "messages", "kafka"),
    *("resolver", "resolver", "resolver", "reprocessor", "reprocessor", "sweep", "purger"),
)
_ROWS: Final = (
    *("none", "none", "none", "failed", "interactive", "doubted", "unknown", "sent"),
    *("received", "parked", "old"),
)
_OFF_MS: Final = (0, 2_400, -2_400)


@dataclass
class _Draft:
    """A storm that is being drawn."""

    chance: Random
    parts: list[Part] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    guids: list[str] = field(default_factory=list)
    has_clocks: bool = False
    has_later: bool = False

    def guid(self) -> str:
        """Draw one of the GUIDs."""
        return self.chance.choice(self.guids)

    def more(self) -> dict[str, Any]:
        """Draw the clock and the deploy of an actor."""
        more: dict[str, Any] = {}
        if self.has_clocks:
            more["clock_ms"] = self.chance.choice(_OFF_MS)
        if self.has_later and self.chance.random() < 0.5:
            more["deploy"] = "later"
        return more

    def add(self, name: str, part: Part) -> None:
        """Let a part belong to the storm."""
        self.names.append(name)
        self.parts.append(part)


def storm(number: int) -> Setup:
    """Return the storm of that number; the same number, the same storm."""
    chance = Random(f"storm {number}")
    draft = _Draft(chance, has_clocks=chance.random() < 0.2, has_later=chance.random() < 0.2)
    for guid in ("G", "H")[: chance.choice((1, 1, 2))]:
        _draw_row(draft, guid)
    for _ in range(chance.randint(3, 7)):
        _draw_actor(draft, chance.choice(_ACTORS))
    faults, keeps_refusals = chance.randint(1, 4), chance.random() < 0.85
    settings = _settings(chance, keeps_refusals=keeps_refusals)
    return Setup(
        name=f"storm-{number}",
        about=", ".join(draft.names),
        cast=partial(_cast, tuple(draft.parts), has_later=draft.has_later),
        bounds=Bounds(faults, None, chance.randint(2, 8)),
        settings=settings,
        habits=Habits(
            ways=(EXECUTES, SILENT, WAITS, REFUSES, GATEWAY),
            lags=chance.random() < 0.3,
            keeps_refusals=keeps_refusals,
            caches=chance.random() < 0.3,
        ),
        later=_later(chance, keeps_refusals=keeps_refusals) if draft.has_later else None,
        moments=(*moments.DEFAULT, "last byte"),
        reads_index_at_points=chance.random() < 0.3,
        late_ms=600_000 if chance.random() < 0.2 else 0,
    )


def _cast(parts: tuple[Part, ...], world: World, *, has_later: bool) -> None:
    for part in parts:
        part(world)
    world.deploy = "later" if has_later else ""


def _settings(chance: Random, *, keeps_refusals: bool) -> Settings:
    names = (("sqs:relayhub-intake", "atm"), ("kafka:receipts", "atm"))
    return casts.settings(
        resends_max=chance.randint(1, 4),
        core_keeps_refusals=keeps_refusals,
        channel_names=names if chance.random() < 0.7 else (),
        kafka_partial_batches=chance.random() < 0.5,
    )


def _later(chance: Random, *, keeps_refusals: bool) -> Settings:
    longest_s = chance.choice((20, 120))
    return casts.settings(
        core_longest_s=longest_s,
        min_age_s=longest_s + 5,
        core_deadline_s=15,
        core_keeps_refusals=keeps_refusals,
        channel_names=(("sqs:relayhub-intake", "atm"), ("kafka:receipts", "atm")),
    )


def _draw_row(draft: _Draft, guid: str) -> None:
    kind = draft.chance.choice(_ROWS)
    valid_until = START_MS + draft.chance.choice((20_000, 120_000, 86_400_000))
    hints = draft.chance.randint(0, 2)
    kinds: dict[str, Part] = {
        "failed": partial(rows.failed, guid=guid, valid_until=valid_until, hints=hints),
        "interactive": partial(rows.failed, guid=guid, delivery="interactive", hints=hints),
        "doubted": partial(rows.doubted, guid=guid, valid_until=valid_until, hints=hints),
        "unknown": partial(rows.unknown, guid=guid, arrived=draft.chance.random() < 0.7),
        "sent": partial(rows.sent, guid=guid, arrived=draft.chance.random() < 0.7),
        "received": partial(rows.received, guid=guid, messages=hints, valid_until=valid_until),
        "parked": partial(rows.failed, guid=guid, parked="cap", open_shard="PARKED#0"),
        "old": partial(rows.done, ago_ms=31 * 86_400_000, expires_in_ms=-1_000),
    }
    draft.guids.append(rows.OLD if kind == "old" and not draft.guids else guid)
    if kind == "old" and draft.guids[-1] != rows.OLD:
        return
    if kind in kinds:
        draft.add(f"row {draft.guids[-1]} {kind}", kinds[kind])


def _draw_actor(draft: _Draft, kind: str) -> None:
    chance, guid, more = draft.chance, draft.guid(), draft.more()
    match kind:
        case "post":
            headers = chance.choice(
                ({}, {}, {"prefer": "respond-async"}, {"delivery": "interactive"})
            )
            body = chance.choice((rows.BODY, rows.BODY, rows.BODY, rows.OTHER_BODY))
            part: Part = partial(casts.post, guid=guid, body=body, headers=headers, **more)
        case "cancel":
            part = partial(casts.cancel, guid=guid, **more)
        case "status":
            part = partial(casts.status, guid=guid, **more)
        case "customer":
            name = f"A{len(draft.parts)}-"
            headers = chance.choice(({}, {"prefer": "respond-async"}, {"delivery": "interactive"}))
            part = partial(customer, name=name, steps=chance.randint(2, 5), headers=headers)
        case "messages":
            part = partial(_messages, guid=guid, count=chance.randint(0, 2), **more)
        case "kafka":
            part = partial(casts.topic, guids=f"{guid} {draft.guid()}", readers=2, **more)
        case _:
            part = partial(casts.jobs, names=kind, **more)
    draft.add(f"{kind} {guid}", part)


def _messages(world: World, *, guid: str, count: int, **more: Any) -> None:
    for _ in range(count):
        casts.request_message(world, guid)
    casts.jobs(world, "messages", **more)

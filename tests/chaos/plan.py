"""What a run does, drawn from its seed: acts, the steps of their channels, and what strikes. Pure.

The same seed gives the same GUIDs, bodies, duplicates, faults of the core and strikes, in the same
order. When each of them happens is up to the machine, so no two runs are the same.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from tests.chaos import weather

ACCOUNTS: Final = 10
BATCH_MAX: Final = 10  # SQS takes no more messages at once.
_AMOUNT_MAX: Final = 200  # 20,000 of these never empty an account of a million.
_SOON: Final = 25  # Steps; the row is then in work, or just done.
_LATE: Final = 800


class Way(StrEnum):
    """How a request comes to the hub."""

    HTTP = "HTTP"
    ASYNC = "respond-async"
    MESSAGE = "message"


class Does(StrEnum):
    """What a step does."""

    POST = "post"  # The act's own request; the channel resends it until it is settled.
    AGAIN = "again"  # A resend out of season: most acts are done by then.
    OTHER = "other"  # The same GUID by a channel that it does not belong to.
    CANCEL = "cancel"
    ASK = "ask"  # For the status; the plan has none, a channel asks when it has no answer.
    MESSAGES = "messages"  # One batch into the intake queue.


class Strike(StrEnum):
    """What strikes the hub from outside."""

    KILL_RELAY = "kill relay"
    KILL_MESSAGES = "kill messages"
    KILL_RESOLVER = "kill resolver"
    KILL_REPROCESSOR = "kill reprocessor"
    KILL_PURGER = "kill purger"
    CORE_REFUSES = "core refuses"
    CORE_PAUSES = "core pauses"
    THROTTLED = "throttled"
    HINTS_AGAIN = "hints again"
    ACCEPTED_AGAIN = "accepted again"


KILLS: Final = tuple(each for each in Strike if each.startswith("kill"))

# The least in any run, and one for so many acts.
_HOW_OFTEN: Final = {
    Strike.KILL_RELAY: (4, 150),
    Strike.KILL_MESSAGES: (1, 600),
    Strike.KILL_RESOLVER: (1, 800),
    Strike.KILL_REPROCESSOR: (1, 1_000),
    Strike.KILL_PURGER: (0, 2_000),
    Strike.CORE_REFUSES: (1, 1_000),
    Strike.CORE_PAUSES: (1, 1_000),
    Strike.THROTTLED: (1, 1_000),
    Strike.HINTS_AGAIN: (2, 100),
    Strike.ACCEPTED_AGAIN: (1, 400),
}
_HELD_PER: Final = 220  # One request that the core holds for so many acts.


@dataclass(frozen=True)
class Transfer:
    """What an act moves; `amount` is in the currency's minor unit."""

    source: str
    target: str
    amount: int


@dataclass(frozen=True)
class Act:
    """One business act: one GUID, one transfer, and how its channel behaves."""

    number: int
    guid: str
    way: Way
    channel: str
    transfer: Transfer
    pad_bytes: int = 0
    interactive: bool = False
    valid_s: float | None = None
    at_once: int = 1  # Copies that are sent side by side.
    ignores: int = 0  # Answers that never reach the channel.
    patience: int = 0  # Resends before it gives up.

    def body(self) -> bytes:
        """Return the request's bytes, the same for every copy."""
        moved = self.transfer
        fields = {"guid": self.guid, "from": moved.source, "to": moved.target}
        pad = {"text": "x" * self.pad_bytes} if self.pad_bytes else {}
        return json.dumps(fields | {"amount": moved.amount} | pad).encode()

    def headers(self) -> dict[str, str]:
        """Return what the channel says beside the GUID; a validity counts from now."""
        said = {"Delivery": "interactive"} if self.interactive else {}
        if self.way is Way.ASYNC:
            said["Prefer"] = "respond-async"
        if self.valid_s is not None:
            said["Valid-Until"] = (datetime.now(UTC) + timedelta(seconds=self.valid_s)).isoformat()
        return said

    @property
    def other_channel(self) -> str:
        """The channel that the GUID does not belong to."""
        return "app" if self.channel == "atm" else "atm"


@dataclass(frozen=True)
class Step:
    """One thing that a client does; steps are taken in the order of `at`."""

    at: float
    does: Does
    acts: Sequence[Act]


@dataclass(frozen=True)
class Timed:
    """A strike, and after how many begun steps it comes."""

    at: float
    strike: Strike


@dataclass(frozen=True)
class Plan:
    """A whole run."""

    seed: int
    acts: Sequence[Act]
    steps: Sequence[Step]
    strikes: Sequence[Timed]
    by_guid: dict[str, Act] = field(default_factory=dict)


def draw(n: int, seed: int) -> Plan:
    """Draw a run of n acts."""
    chance = random.Random(seed)
    acts = [_act(chance, number, seed, n) for number in range(n)]
    steps = sorted(_steps(chance, acts), key=lambda step: step.at)
    strikes = sorted(_strikes(chance, n, len(steps)), key=lambda each: each.at)
    return Plan(seed, acts, steps, strikes, {act.guid: act for act in acts})


def held_count(n: int) -> int:
    """Return how many requests the core holds so that their sender can be killed meanwhile."""
    return max(4, n // _HELD_PER)


def _act(chance: random.Random, number: int, seed: int, n: int) -> Act:
    """Draw an act; every few are held by the core, and are plain in all else."""
    every = max(1, n // held_count(n))
    moved = _transfer(chance)
    channel = chance.choice(("atm", "app"))
    if number % every == every // 2:
        prefix = chance.choice(weather.HELD).prefix
        return Act(number, f"{prefix}{seed}-{number:06d}", Way.HTTP, channel, moved, patience=2)
    way = chance.choices((Way.HTTP, Way.ASYNC, Way.MESSAGE), (80, 10, 10))[0]
    return Act(
        number,
        _guid(chance, seed, number),
        way,
        channel if way is not Way.MESSAGE else "intake",
        moved,
        pad_bytes=chance.choices((0, 300, 6_000), (80, 17, 3))[0],
        interactive=way is Way.HTTP and chance.random() < 0.08,
        valid_s=8.0 if chance.random() < 0.015 else None,
        at_once=chance.choices((1, 2, 3), (94, 5, 1))[0],
        ignores=chance.choices((0, 1, 2), (90, 9, 1))[0],
        patience=chance.choices((0, 1, 2, 4), (15, 25, 30, 30))[0],
    )


def _guid(chance: random.Random, seed: int, number: int) -> str:
    """Draw a GUID: a name of the channel's own, or a UUID that says nothing."""
    drawn = uuid.UUID(int=chance.getrandbits(128), version=4)
    return str(drawn) if chance.random() < 0.4 else f"chaos-{seed}-{number:06d}"


def _transfer(chance: random.Random) -> Transfer:
    source, target = chance.sample(range(1, ACCOUNTS + 1), 2)
    return Transfer(f"A{source:03d}", f"A{target:03d}", chance.randint(1, _AMOUNT_MAX))


def _steps(chance: random.Random, acts: Sequence[Act]) -> Iterator[Step]:
    batch: list[Act] = []
    for act in acts:
        if act.way is Way.MESSAGE:
            batch += [act] * act.at_once
            yield from _echoes(chance, act, Does.MESSAGES)
        else:
            for copy in range(act.at_once):
                yield Step(act.number + copy / 10, Does.POST, (act,))
            yield from _echoes(chance, act, Does.AGAIN)
            yield from _disturbances(chance, act)
        if batch and (len(batch) >= BATCH_MAX - 2 or act is acts[-1]):
            yield Step(act.number, Does.MESSAGES, tuple(batch))
            batch = []


def _echoes(chance: random.Random, act: Act, does: Does) -> Iterator[Step]:
    """Yield duplicates long after: the queue delivers again, a channel resends what is done."""
    for _ in range(chance.choices((0, 1, 2), (88, 9, 3))[0]):
        yield Step(act.number + chance.uniform(1, _LATE), does, (act,))


def _disturbances(chance: random.Random, act: Act) -> Iterator[Step]:
    """Yield what others do with the GUID; never of a held act, whose first answer is watched."""
    if act.guid.startswith(weather.HELD_MARK):
        return
    if chance.random() < 0.015:
        yield Step(act.number + chance.uniform(-2, _SOON), Does.CANCEL, (act,))
    if chance.random() < 0.01:
        yield Step(act.number + chance.uniform(1, _LATE), Does.OTHER, (act,))
    if chance.random() < 0.005:
        yield Step(act.number + chance.uniform(1, _LATE), Does.MESSAGES, (act,))


def _strikes(chance: random.Random, n: int, steps: int) -> Iterator[Timed]:
    """Yield every strike at a place of its own, none in the last steps."""
    for strike, count in counts(n).items():
        for _ in range(count):
            yield Timed(chance.uniform(0.03, 0.95) * steps, strike)


def counts(n: int) -> dict[Strike, int]:
    """Return how often each strike comes in a run of n acts."""
    return {strike: max(least, n // per) for strike, (least, per) in _HOW_OFTEN.items()}

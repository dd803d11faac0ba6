"""A person at the commands: the acts of `flows/operate.py`, chosen by the explorer.

The person is honest: evidence is what the core's journal says at that moment. What the commands
refuse is not done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from relayhub.flows import operate
from relayhub.flows.operate import Person, RefusedError, UnwrittenError
from relayhub.hub import Hub
from relayhub.message import Answer
from relayhub.row import Row
from tests.explore.bank import EXECUTES
from tests.explore.rows import G
from tests.explore.world import FOR_EVER_MS, World

PARKS: Final = "parks"
HOLDS: Final = "holds"
RELEASES: Final = "releases"
REDRIVES: Final = "redrives"
CLOSES: Final = "closes"
EXECUTED: Final = "attests executed"
NOT_EXECUTED: Final = "attests not executed"
_WHO: Final = Person("alice", "looked at it")
_SIMPLE: Final[dict[str, Callable[[Hub, Row, Person], object]]] = {
    PARKS: operate.park,
    HOLDS: operate.hold,
    RELEASES: operate.release,
    CLOSES: operate.close,
}
_VALID_MS: Final = 86_400_000


def person(world: World, *acts: str, guid: str = G, **more: Any) -> None:
    """Let a person do one of these to the row."""
    act = partial(_act, world, acts, guid)
    world.add("person", act, timeout_ms=FOR_EVER_MS, **more)


def _act(world: World, acts: tuple[str, ...], guid: str) -> None:
    chosen = world.scheduler.choose("the person", acts)
    hub = world.hub
    try:
        row = operate.read(hub, guid)
        if chosen in _SIMPLE:
            _SIMPLE[chosen](hub, row, _WHO)
        elif chosen == REDRIVES:
            operate.redrive(hub, row, _WHO, hub.now_ms() + _VALID_MS)
        else:
            _attest(world, row, chosen)
    except (RefusedError, UnwrittenError) as error:
        world.scheduler.tell("the command", str(error))


def _attest(world: World, row: Row, chosen: str) -> None:
    answer = _evidence(world, row.guid)
    if chosen == EXECUTED and answer is not None:
        operate.attest_executed(world.hub, row, _WHO, answer)
    elif chosen == NOT_EXECUTED and answer is None:
        operate.attest_not_executed(world.hub, row, _WHO, world.hub.now_ms())


def _evidence(world: World, guid: str) -> Answer | None:
    """Return what the core's journal has of the GUID's execution."""
    for attempt in world.bank.attempts:
        if attempt.guid == guid and attempt.fate == EXECUTES:
            return Answer(200, "application/json", attempt.answer, "0000")
    return None

"""The end of a schedule: time passes, the jobs run without a fault, and everything must come out.

How a world settles depends on what `fingerprint` returns, and on nothing else: the end makes no
choice. So equal worlds of one set-up are settled once.
"""

from __future__ import annotations

from typing import Final

from relayhub.row import Row, from_item
from relayhub.states import Hold, State
from tests.explore.hubs import HINTS, INTAKE
from tests.explore.world import World

_ROUNDS_MAX: Final = 80
_TURNS: Final = ("due", "over", "probe")  # When the jobs may find something new to do.
_ROUND_MS: Final = 60_000  # Where no moment is known: the schedule of the jobs.


def settle(world: World) -> None:
    """Let time pass and the jobs run until nothing is open. Raises ViolationError."""
    world.scheduler.tell_of_environment("the actors have ended: time passes, the jobs run")
    for _ in range(_ROUNDS_MAX):
        if _is_something_due(world):
            world.resolver()
            world.sweep()
        for _ in range(len(world.aws.queues.get(HINTS, ()))):
            world.reprocessor()
        while world.aws.queues.get(INTAKE):
            world.messages()
        is_busy = [other.goes_on() for other in world.others]
        if not (any(is_busy) or _open_rows(world) or world.bank.waiting()):
            break
        _pass_time(world)
    world.rules.ended(world.table.items)
    for other in world.others:
        other.check_end()


def _is_something_due(world: World) -> bool:
    """Tell whether the jobs find anything; where nothing is due, they read the index only."""
    return any(
        int(item["due_at"]["N"]) <= world.ms
        for item in world.table.items.values()
        if "due_at" in item
    )


def _pass_time(world: World) -> None:
    """Go to the next turn of a row; what the core still has is executed at its last moment."""
    moment = world.next_moment(_TURNS) or world.ms + _ROUND_MS
    for attempt in world.bank.waiting():
        if attempt.until <= moment:
            world.advance_to(attempt.until)
            world.bank.execute(attempt)
    world.advance_to(moment)


def _open_rows(world: World) -> list[Row]:
    """Return the rows that some function, and not a person, will move on."""
    return [
        row
        for guid, item in world.table.items.items()
        if not guid.startswith("!") and _is_open(row := from_item(item))
    ]


def _is_open(row: Row) -> bool:
    if row.hold:
        return row.hold is Hold.RESTORED and row.state is State.UNKNOWN
    return row.state is not State.DONE and not row.parked


def fingerprint(world: World) -> int:
    """Return what decides how the world settles.

    Rows, the core's requests, messages, topics and customers, the words that were told, the time.
    Left out is what no longer counts: actors (all have ended), late writes (decided), connections
    (nobody listens), what a call saw or heard (a new call begins anew).
    """
    rows = tuple(sorted((guid, repr(item)) for guid, item in world.table.items.items()))
    bank = tuple(
        (each.guid, each.number, each.until, each.arrived_at, each.fate)
        for each in world.bank.attempts
    )
    messages = tuple(
        (name, each.body, repr(each.attributes), each.sent_ms)
        for name, queue in sorted(world.aws.queues.items())
        for each in queue
    )
    rules = world.rules
    told = (frozenset(rules.never), frozenset(rules.known), tuple(sorted(rules.first.items())))
    others = tuple(other.state() for other in world.others)
    return hash(
        (world.ms, world.deploy, rows, bank, messages, told, frozenset(rules.purged), others)
    )

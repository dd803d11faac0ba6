"""An operator who restores the ledger from a backup, by the rules that hold for that."""

from __future__ import annotations

from functools import partial
from typing import Any

from relayhub.row import Row
from relayhub.states import Code, Event, Hold, State
from tests.explore.rows import G
from tests.explore.world import FOR_EVER_MS, World


def operator(world: World, **more: Any) -> None:
    """Let an operator restore the ledger to an earlier moment, by the rules for that."""
    world.add("operator", partial(_restore, world), timeout_ms=FOR_EVER_MS, **more)


def _restore(world: World) -> None:
    """Roll back, and take every open row into doubt; nothing else runs meanwhile.

    The senders have been stopped for as long as the core and the longest function may take.
    """
    past = [items for items in (world.first, *world.past) if G in items]
    if not past:
        return
    names = tuple(f"as after write {number}" for number in range(len(past)))
    chosen = names.index(world.scheduler.choose("restores", names))
    waits_ms = (world.hub.settings.core_longest_s + world.hub.settings.longest_timeout_s) * 1000
    world.advance_to(world.ms + waits_ms + 1)
    world.aws.late.clear()
    world.table.items = dict(past[chosen])
    world.scheduler.is_free = True
    for guid in past[chosen]:
        row = world.hub.ledger.read(guid)
        assert isinstance(row, Row)
        _take_into_doubt(world, row, waits_ms)
    world.scheduler.is_free = False


def _take_into_doubt(world: World, row: Row, waits_ms: int) -> None:
    if row.state is State.DONE:
        return
    skew_ms = world.hub.settings.clock_skew_s * 1000
    event = Event.HELD if row.state is State.UNKNOWN else Event.RESTORED
    world.hub.ledger.move(
        row,
        event,
        "operator",
        world.ms,
        code=Code.E901,
        why=None,
        hold=Hold.RESTORED,
        parked=None,
        doubted=True,
        core=world.hub.settings.core_name,
        sent_at=world.ms,
        ended_at=world.ms,
        ask_after=world.ms + waits_ms + skew_ms,
        due_at=world.ms,
    )

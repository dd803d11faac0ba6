"""The bounded set-ups of reprocessor and purger, and of what goes wrong around them."""

from __future__ import annotations

from typing import Final

from tests.explore import casts, rows
from tests.explore.bank import EXECUTES, Habits
from tests.explore.casts import cancel, jobs, post, setup
from tests.explore.scheduler import KILLED
from tests.explore.world import START_MS, World

_DAY_MS: Final = 86_400_000
_PLAIN: Final = Habits(ways=(EXECUTES,))


def _failed(world: World) -> None:
    rows.failed(world)
    post(world)
    jobs(world, "reprocessor")


def _failed_cancelled(world: World) -> None:
    rows.failed(world)
    cancel(world)
    jobs(world, "reprocessor")


def _doubted(world: World) -> None:
    rows.doubted(world)
    post(world)
    jobs(world, "reprocessor")


def _cap(world: World) -> None:
    rows.failed(world, hints=2)
    jobs(world, "reprocessor")
    jobs(world, "resolver reprocessor", after="reprocessor-1")
    post(world, after="reprocessor-1")


def _parked(world: World) -> None:
    rows.failed(world, parked="cap", open_shard="PARKED#0", resends=4)
    post(world)
    jobs(world, "reprocessor sweep")


def _hint_twice(world: World) -> None:
    rows.failed(world, hints=2)
    jobs(world, "sweep reprocessor reprocessor")


def _gate(world: World) -> None:
    rows.doubted(world, hints=2)
    jobs(world, "reprocessor reprocessor sweep")


def _gate_closed(world: World) -> None:
    rows.close_gate(world, START_MS + 5_000)
    rows.doubted(world, hints=2)
    jobs(world, "reprocessor reprocessor sweep")


def _purge(world: World) -> None:
    rows.done(world, ago_ms=31 * _DAY_MS, expires_in_ms=-1_000)
    jobs(world, "purger purger")
    post(world, rows.OLD)


def _repairs(world: World) -> None:
    rows.wrong_rows(world)
    jobs(world, "purger")
    post(world, "GF")
    jobs(world, "resolver")


def _breach(world: World) -> None:
    rows.doubted(world)
    rows.executed_before(world, rows.G, 1)
    post(world)
    jobs(world, "reprocessor")


def _breach_at_it(world: World) -> None:
    rows.doubted(world, hints=2)
    rows.request_arrived(world, rows.G)
    post(world)
    jobs(world, "reprocessor")
    jobs(world, "reprocessor", after="reprocessor-1")
    cancel(world, after="post-1 reprocessor-1")


REPROCESSOR: Final = (
    setup("failed", "a resend and the reprocessor", _failed, preemptions=2),
    setup("failed-cancel", "a cancel and the reprocessor", _failed_cancelled, preemptions=3),
    setup("doubted", "a resend and the reprocessor, asking first", _doubted, preemptions=2),
    setup(
        "cap",
        "the last resend of the hub itself, killed anywhere, and what comes then",
        _cap,
        preemptions=1,
        time_moves=1,
        settings=casts.settings(resends_max=1),
        habits=_PLAIN,
    ),
    setup(
        "parked",
        "a resend of a parked row, the reprocessor, the sweep",
        _parked,
        habits=_PLAIN,
        preemptions=2,
    ),
    setup(
        "hint-twice",
        "two hints of one row, two reprocessors, the sweep",
        _hint_twice,
        preemptions=1,
        habits=_PLAIN,
    ),
    setup(
        "gate",
        "two reprocessors and the sweep; the core goes away",
        _gate,
        kinds=("away", "refused", "lost", KILLED),
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
    setup(
        "gate-closed",
        "two reprocessors and the sweep; the core was away",
        _gate_closed,
        kinds=("away", "refused", "lost", KILLED),
        preemptions=1,
        time_moves=1,
        habits=_PLAIN,
    ),
    setup(
        "breach",
        "a row believed not executed whose request was: the inquiry before a resend finds it",
        _breach,
        only_doubles=True,
        habits=_PLAIN,
        preemptions=2,
    ),
    setup(
        "breach-at-it",
        "a row believed not executed while the core is at it: it is held",
        _breach_at_it,
        preemptions=1,
        only_doubles=True,
        habits=Habits(ways=(EXECUTES,), admits=True),
    ),
)

PURGER: Final = (
    setup("purge", "two purges of an expired row, a resend of it", _purge, preemptions=1),
    setup(
        "repairs",
        "the purge of rows with a wrong expiry or index, a resend, the resolver",
        _repairs,
        preemptions=0,
        habits=_PLAIN,
    ),
)

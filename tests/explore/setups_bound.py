"""The bound of `ask_after` alone: second NOT_FOUND and inquiry before a resend are switched off.

Those two are no substitute for the bound, but they would hide that it is too small.
"""

from __future__ import annotations

from typing import Final

from tests.explore import casts, moments
from tests.explore.bank import EXECUTES, WAITS, Habits
from tests.explore.casts import jobs, post, setup
from tests.explore.scheduler import KILLED, KILLED_AFTER
from tests.explore.world import World

_KINDS: Final = (KILLED, KILLED_AFTER, "lost")
_WAITS: Final = Habits(ways=(WAITS,))
_TO_THE_LAST_BYTE: Final = (*moments.DEFAULT, "last byte")
# Two clocks that are off by as much as no check can see, each to the other side.
_OFF_MS: Final = 2_400


def _resent(world: World, *, sender_ms: int = 0, resolver_ms: int = 0, deploy: str = "") -> None:
    post(world, clock_ms=sender_ms)
    jobs(world, "resolver resolver", clock_ms=resolver_ms, deploy=deploy)
    post(world, after="resolver-1 resolver-2", clock_ms=resolver_ms, deploy=deploy)


def _resent_by_clocks(world: World) -> None:
    _resent(world, sender_ms=-_OFF_MS, resolver_ms=_OFF_MS)


def _resent_by_the_later(world: World) -> None:
    _resent(world, deploy="later")
    world.deploy = "later"


def _resent_by_the_hub(world: World) -> None:
    post(world)
    jobs(world, "resolver resolver")
    jobs(world, "reprocessor", after="resolver-1 resolver-2")


BOUND: Final = (
    setup(
        "alone-last-byte",
        "a request sent at the last moment, two runs of the resolver, a resend",
        _resent,
        kinds=_KINDS,
        preemptions=1,
        time_moves=4,
        moments=(*moments.PROOF, "last byte"),
        habits=_WAITS,
        has_nets=False,
    ),
    setup(
        "alone-reprocessor",
        "the same with a resend by the hub itself",
        _resent_by_the_hub,
        kinds=_KINDS,
        preemptions=1,
        time_moves=4,
        moments=(*moments.PROOF, "last byte"),
        habits=_WAITS,
        has_nets=False,
    ),
    setup(
        "alone-clocks",
        "the same with clocks that differ by as much as no check sees",
        _resent_by_clocks,
        kinds=_KINDS,
        preemptions=1,
        time_moves=4,
        habits=_WAITS,
        has_nets=False,
        moments=moments.PROOF,
    ),
    setup(
        "alone-lagging",
        "the same with an inquiry that lags",
        _resent,
        kinds=_KINDS,
        preemptions=0,
        time_moves=4,
        habits=Habits(ways=(EXECUTES, WAITS), lags=True),
        has_nets=False,
        moments=moments.PROOF,
    ),
    setup(
        "alone-faster",
        "a request; resolver and resend of the next deploy, whose core is faster",
        _resent_by_the_later,
        kinds=_KINDS,
        preemptions=1,
        time_moves=4,
        later=casts.settings(core_longest_s=20, min_age_s=25),
        habits=_WAITS,
        has_nets=False,
        moments=moments.PROOF,
    ),
    setup(
        "alone-wiser",
        "the same; the next deploy knows that the core is slower than was believed",
        _resent_by_the_later,
        kinds=_KINDS,
        preemptions=1,
        time_moves=4,
        later=casts.settings(core_longest_s=120, min_age_s=125),
        habits=Habits(ways=(WAITS,), longest_s=120),
        has_nets=False,
        moments=(*moments.PROOF, "old enough"),
    ),
)

# The core takes a minute, and the settings say ten seconds: what the bound is for.
_WRONG: Final = casts.settings(core_longest_s=10, min_age_s=15)
_LATE: Final = Habits(ways=(WAITS, EXECUTES), longest_s=60)


def _planted(world: World) -> None:
    post(world)
    jobs(world, "resolver", after="post-1")
    jobs(world, "resolver", after="resolver-1")
    post(world, after="resolver-2")


PLANTED: Final = (
    setup(
        "plant-min_age",
        "core_longest and min_age below the core's real longest time, everything else as shipped",
        _planted,
        kinds=("lost",),
        preemptions=1,
        time_moves=2,
        moments=("may ask", "far enough apart"),
        has_end=False,
        settings=_WRONG,
        habits=_LATE,
        only_doubles=True,
    ),
    setup(
        "plant-min_age-alone",
        "the same without a second NOT_FOUND and without the inquiry before a resend",
        _planted,
        faults=0,
        preemptions=1,
        time_moves=2,
        moments=("may ask", "far enough apart"),
        has_end=False,
        settings=_WRONG,
        habits=_LATE,
        only_doubles=True,
        has_nets=False,
    ),
)

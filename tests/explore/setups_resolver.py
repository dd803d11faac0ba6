"""The bounded set-ups of the resolver: what a NOT_FOUND must go through before it is believed."""

from __future__ import annotations

from typing import Final

from tests.explore import casts, moments, operators, rows
from tests.explore.bank import EXECUTES, REFUSES, SILENT, WAITS, Habits
from tests.explore.casts import cancel, jobs, post, setup
from tests.explore.scheduler import KILLED, KILLED_AFTER
from tests.explore.world import World

_PLAIN: Final = Habits(ways=(EXECUTES,))
_DOUBTS: Final = (KILLED, KILLED_AFTER, "lost", "reply_lost", "late", "away")
# Two clocks that are off by as much as no check can see, each to the other side.
_OFF_MS: Final = 2_400


def _cancel_in_doubt(world: World) -> None:
    rows.unknown(world)
    cancel(world)
    jobs(world, "resolver resolver")


def _cancel_at_the_end(world: World) -> None:
    rows.unknown(world, **rows.nearly_believed())
    cancel(world)
    jobs(world, "resolver")


def _unknown(world: World) -> None:
    rows.unknown(world)
    jobs(world, "resolver resolver resolver")


def _lagging(world: World) -> None:
    rows.sent(world)
    jobs(world, "resolver resolver resolver")


def _cached(world: World) -> None:
    rows.unknown(world)
    jobs(world, "resolver resolver resolver")
    jobs(world, "reprocessor", after="resolver-1 resolver-2 resolver-3")


def _forgetful(world: World) -> None:
    rows.unknown(world)
    jobs(world, "resolver resolver resolver")
    post(world, after="resolver-1 resolver-2 resolver-3")


def _late_holder(world: World) -> None:
    post(world)
    jobs(world, "resolver resolver")
    cancel(world)


def _late_refusal(world: World) -> None:
    post(world)
    jobs(world, "resolver resolver")
    jobs(world, "reprocessor", after="resolver-1 resolver-2")


def _restored(world: World) -> None:
    post(world)
    cancel(world, after="post-1")
    operators.operator(world, after="post-1 cancel-1")
    post(world, after="operator-1")
    jobs(world, "resolver", after="operator-1")
    jobs(world, "resolver", after="operator-1")


def _restored_later(world: World) -> None:
    rows.received(world)
    jobs(world, "messages")
    operators.operator(world, after="messages-1")
    jobs(world, "messages", after="operator-1")
    jobs(world, "resolver", after="operator-1")
    cancel(world, after="operator-1")


def _deployed(world: World) -> None:
    post(world)
    post(world, deploy="later")
    jobs(world, "resolver")
    jobs(world, "resolver", deploy="later")
    world.deploy = "later"


def _clocks(world: World) -> None:
    post(world, clock_ms=-_OFF_MS)
    jobs(world, "resolver resolver resolver", clock_ms=_OFF_MS)
    post(world, after="resolver-1 resolver-2 resolver-3", clock_ms=_OFF_MS)


def _wrong_clock(world: World) -> None:
    post(world)
    jobs(world, "resolver resolver", clock_ms=600_000)


def _wrong_sender(world: World) -> None:
    post(world, clock_ms=-20_000)
    post(world)
    jobs(world, "resolver")


RESOLVER: Final = (
    setup(
        "cancel-in-doubt",
        "a cancel of a row in doubt, two runs of the resolver",
        _cancel_in_doubt,
        faults=0,
        preemptions=2,
        time_moves=3,
        moments=moments.PROOF,
        habits=_PLAIN,
    ),
    setup(
        "cancel-at-the-end",
        "a cancel of a row in doubt, and the resolver that may believe its NOT_FOUND",
        _cancel_at_the_end,
    ),
    setup(
        "unknown",
        "three runs of the resolver on a row whose request may still be executed",
        _unknown,
        preemptions=0,
        time_moves=3,
        habits=_PLAIN,
        moments=moments.PROOF,
    ),
    setup(
        "lagging",
        "three runs of the resolver after a dead holder; the inquiry lags",
        _lagging,
        preemptions=0,
        time_moves=3,
        habits=Habits(ways=(EXECUTES,), lags=True),
        moments=moments.PROOF,
    ),
    setup(
        "cached",
        "three runs of the resolver and a resend; old verdicts come back",
        _cached,
        kinds=("cached",),
        faults=2,
        preemptions=0,
        time_moves=5,
        habits=Habits(ways=(EXECUTES,), caches=True),
    ),
    setup(
        "forgetful",
        "three runs of the resolver and a resend; the core forgets what it executed",
        _forgetful,
        kinds=(KILLED, "lost", "late", "away"),
        preemptions=0,
        time_moves=3,
        moments=(*moments.PROOF, "forgotten"),
        settings=casts.settings(core_memory_s=400, inquiry_backoff_max_s=60),
        habits=Habits(ways=(EXECUTES,), memory_ms=400_000),
    ),
    setup(
        "late-holder",
        "a holder whose writes come late, a cancel, two runs of the resolver",
        _late_holder,
        faults=0,
        preemptions=2,
        time_moves=3,
        late_ms=600_000,
        habits=Habits(ways=(EXECUTES, REFUSES)),
    ),
    setup(
        "late-refusal",
        "the same with a core that keeps no refusals, and the reprocessor",
        _late_refusal,
        faults=0,
        preemptions=2,
        time_moves=5,
        late_ms=600_000,
        settings=casts.settings(core_keeps_refusals=False),
        habits=Habits(ways=(EXECUTES, REFUSES), keeps_refusals=False),
    ),
    setup(
        "restored",
        "a request, its cancel, a restore to any moment, a resend, the resolver twice",
        _restored,
        kinds=(KILLED, "refused", "lost"),
        preemptions=0,
        time_moves=2,
        keeps_past=True,
        habits=Habits(ways=(EXECUTES, SILENT)),
    ),
    setup(
        "restored-later",
        "the same of a request that was accepted for later",
        _restored_later,
        kinds=(KILLED, "refused", "lost"),
        preemptions=0,
        time_moves=2,
        keeps_past=True,
        habits=Habits(ways=(EXECUTES, SILENT)),
    ),
    setup(
        "deployed",
        "requests and resolvers of two deploys, the later one's core slower",
        _deployed,
        kinds=(KILLED_AFTER, "lost"),
        preemptions=1,
        time_moves=3,
        later=casts.settings(core_longest_s=120, min_age_s=125, core_deadline_s=15),
        habits=Habits(ways=(WAITS,)),
        moments=moments.PROOF,
    ),
    setup(
        "deployed-faster",
        "the same, the later one's core faster",
        _deployed,
        kinds=(KILLED_AFTER, "lost"),
        preemptions=1,
        time_moves=3,
        later=casts.settings(core_longest_s=20, min_age_s=25, core_deadline_s=15),
        habits=Habits(ways=(WAITS,)),
        moments=moments.PROOF,
    ),
    setup(
        "clocks",
        "a request, three runs of the resolver, a resend, with clocks that differ",
        _clocks,
        kinds=(KILLED, KILLED_AFTER, "lost"),
        preemptions=0,
        time_moves=3,
        habits=Habits(ways=(WAITS,)),
        moments=moments.PROOF,
    ),
    setup(
        "wrong-clock",
        "a request and two runs of a resolver whose clock is ten minutes ahead",
        _wrong_clock,
        preemptions=1,
        time_moves=1,
        has_wrong_clock=True,
        habits=Habits(ways=(EXECUTES, WAITS)),
    ),
    setup(
        "wrong-sender",
        "a request by a clock that is 20 s behind, one by a right clock, the resolver",
        _wrong_sender,
        preemptions=1,
        time_moves=1,
        has_wrong_clock=True,
        habits=_PLAIN,
    ),
)

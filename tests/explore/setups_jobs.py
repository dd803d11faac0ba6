"""The bounded set-ups of resolver, reprocessor and purger, and of what goes wrong around them."""

from __future__ import annotations

from typing import Final

from tests.explore import casts, moments
from tests.explore.bank import EXECUTES, REFUSES, SILENT, WAITS, Habits
from tests.explore.casts import cancel, jobs, post, setup
from tests.explore.scheduler import KILLED, KILLED_AFTER
from tests.explore.world import START_MS, World

_DAY_MS: Final = 86_400_000
_PLAIN: Final = Habits(ways=(EXECUTES,))
_DOUBTS: Final = (KILLED, KILLED_AFTER, "lost", "reply_lost", "late", "away")
# Two clocks that are off by as much as no check can see, each to the other side.
_OFF_MS: Final = 2_400


def _cancel_in_doubt(world: World) -> None:
    casts.unknown(world)
    cancel(world)
    jobs(world, "resolver resolver")


def _unknown(world: World) -> None:
    casts.unknown(world)
    jobs(world, "resolver resolver resolver")


def _failed(world: World) -> None:
    casts.failed(world)
    post(world)
    jobs(world, "reprocessor")


def _failed_cancelled(world: World) -> None:
    casts.failed(world)
    cancel(world)
    jobs(world, "reprocessor")


def _doubted(world: World) -> None:
    casts.doubted(world)
    post(world)
    jobs(world, "reprocessor")


def _cap(world: World) -> None:
    casts.failed(world, hints=2)
    jobs(world, "reprocessor")
    jobs(world, "resolver reprocessor", after="reprocessor-1")
    post(world, after="reprocessor-1")


def _parked(world: World) -> None:
    casts.failed(world, parked="cap", open_shard="PARKED#0", resends=4)
    post(world)
    jobs(world, "reprocessor sweep")


def _hint_twice(world: World) -> None:
    casts.failed(world, hints=2)
    jobs(world, "sweep reprocessor reprocessor")


def _gate(world: World) -> None:
    casts.doubted(world, hints=2)
    jobs(world, "reprocessor reprocessor sweep")


def _gate_closed(world: World) -> None:
    casts.close_gate(world, START_MS + 5_000)
    casts.doubted(world, hints=2)
    jobs(world, "reprocessor reprocessor sweep")


def _lagging(world: World) -> None:
    casts.sent(world)
    jobs(world, "resolver resolver resolver")


def _cached(world: World) -> None:
    casts.unknown(world)
    jobs(world, "resolver resolver resolver")
    jobs(world, "reprocessor", after="resolver-1 resolver-2 resolver-3")


def _forgetful(world: World) -> None:
    casts.unknown(world)
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
    casts.operator(world, after="post-1 cancel-1")
    post(world, after="operator-1")
    jobs(world, "resolver", after="operator-1")
    jobs(world, "resolver", after="operator-1")


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


def _purge(world: World) -> None:
    casts.done(world, ago_ms=31 * _DAY_MS, expires_in_ms=-1_000)
    jobs(world, "purger purger")
    post(world, casts.OLD)


def _repairs(world: World) -> None:
    casts.wrong_rows(world)
    jobs(world, "purger")
    post(world, "GF")
    jobs(world, "resolver")


def _breach(world: World) -> None:
    casts.doubted(world)
    casts.executed_before(world, casts.G, 1)
    post(world)
    jobs(world, "reprocessor")


RESOLVER: Final = (
    setup(
        "cancel-in-doubt",
        "a cancel of a row in doubt, two runs of the resolver",
        _cancel_in_doubt,
        kinds=_DOUBTS,
        preemptions=1,
        time_moves=2,
        habits=_PLAIN,
        moments=moments.PROOF,
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
        kinds=(KILLED, "lost", "late"),
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

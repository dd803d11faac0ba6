"""With the relay's processes in hand: killed anywhere, replies lost, the core started anew.

A killed relay cannot answer; what the channel gets then bears no code, and that means E901.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from verify import expect, reading
from verify.plants import Job, LedgerFault
from verify.play import Act, Play, require
from verify.reading import shown
from verify.scenario import CannotError, Need, Run, Scenario, Steps, make
from verify.scenarios.doubts import ends_with_the_answer, still_in_doubt
from verify.scenarios.unsent import refused
from verify.wire import Answer

_SLOW_S: Final = 1.5
_PARALLEL: Final = 20
_ON_ITS_WAY_S: Final = 0.2  # For a write to come from the fault proxy to the ledger.
_STALLED_S: Final = 10.0  # Longer than the local relays' own time.


def _killed(play: Play, call: Future[Answer]) -> None:
    """Kill the relay; what the channel then gets means that nobody knows."""
    play.plant.kill()
    lost = call.result()
    code = reading.code_of(lost)
    require(code is None, f"a relay that was killed cannot have answered {code}")


@contextmanager
def spoilt(play: Play, fault: LedgerFault, act: Act) -> Iterator[None]:
    """Spoil the relay's own writes about the act meanwhile; at least one must have met it."""
    play.plant.spoil_ledger(fault, act.guid)
    try:
        yield
        if not play.plant.struck():
            raise CannotError(f"no write of the relay met the fault: {fault}")
    finally:
        play.plant.heal_ledger()


def _until_struck(play: Play) -> None:
    """Return when the relay's write has met the ledger's fault, and took effect if it does."""
    play.soon(lambda: play.plant.struck() > 0)
    time.sleep(_ON_ITS_WAY_S)


def _killed_with_bytes(play: Play, rule: dict[str, Any]) -> Steps:
    act = play.act()
    play.faults({**rule, "guid": act.guid, "attempt": 1})
    _killed(play, play.begin_post(act))
    still_in_doubt(play, act, "the resend after the kill")
    yield from ends_with_the_answer(play, act)


def nobody_resends(play: Play) -> Steps:
    """Killed with the bytes at the core, and nobody resends: the relay ends it by itself."""
    act = play.act()
    play.faults({"kind": "execute_then_hang", "guid": act.guid, "attempt": 1})
    _killed(play, play.begin_post(act))
    play.asked(act)
    settled = yield play.until(lambda: reading.read(play.asked(act)).is_definite)
    require(settled, f"within {play.limits.settle_s:.0f} s the status was not settled")
    expect.code(play.asked(act), "0000", what="the status in the end")


def killed_in_parallel(play: Play) -> Steps:
    """Killed with 20 requests of one GUID at work: one execution, and its answer in the end."""
    act = play.act()
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S, "attempt": 1})
    calls = [play.begin(lambda: play.post(act)) for _ in range(_PARALLEL)]
    play.until_received(act)
    play.plant.kill()
    for call in calls:
        answer = call.result()
        require(reading.code_of(answer) != "0000", "the core had not answered, and 0000 was told")
        expect.unconfirmed(answer, "one of the answers")
    yield from ends_with_the_answer(play, act)


def killed_between(play: Play) -> Steps:
    """Killed after the claim and before the core is called: executed once, by a later attempt."""
    act = play.act()
    with spoilt(play, LedgerFault.CLAIM_HELD, act):
        call = play.begin(lambda: play.post(act))
        _until_struck(play)
        _killed(play, call)
    require(play.core.received(act.guid) == 0, "the core was called before the claim was known")
    expect.unconfirmed(play.post(act))
    yield from ends_with_the_answer(play, act)


def killed_before_writing(play: Play) -> Steps:
    """Killed with the core's answer in hand, not written: not sent again, and told in the end."""
    act = play.act()
    with spoilt(play, LedgerFault.OUTCOME_HELD, act):
        call = play.begin_post(act)
        _until_struck(play)
        _killed(play, call)
    still_in_doubt(play, act, "the resend after the kill")
    yield from ends_with_the_answer(play, act)


def stalled(play: Play) -> Steps:
    """Held past its time with the answer on its way, then let go: not sent again, told at last."""
    act = play.act()
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S, "attempt": 1})
    call = play.begin_post(act)
    with play.plant.held():
        time.sleep(_STALLED_S)
    answer = call.result()
    if reading.code_of(answer) != "0000":
        expect.unconfirmed(answer, "the stalled relay's answer")
    require(play.core.received(act.guid) == 1, "the stalled relay sent it again")
    yield from ends_with_the_answer(play, act)


def claim_reply_lost(play: Play) -> None:
    """One lost reply to the claim changes nothing: executed once, answered, replayed."""
    act = play.act()
    with spoilt(play, LedgerFault.CLAIM_REPLY_LOST_ONCE, act):
        first = play.post(act)
    expect.code(first, "0000", what="the first answer")
    expect.same(first, play.post(act))


def claim_replies_lost(play: Play) -> Steps:
    """Nobody knows whether the claim stands: not confirmed, and executed once in the end."""
    act = play.act()
    with spoilt(play, LedgerFault.CLAIM_REPLIES_LOST, act):
        expect.unconfirmed(play.post(act), "the first answer")
    yield from ends_with_the_answer(play, act)


def claim_refused(play: Play) -> None:
    """The ledger refuses the claim: the core is not called, and a resend is executed."""
    act = play.act()
    with spoilt(play, LedgerFault.CLAIM_REFUSED, act):
        answer = play.post(act)
        received = play.core.received(act.guid)
    told = reading.read(answer)
    is_right = told.code in {None, "E906"} and told.executed == "unknown"
    require(is_right, f"the first answer was {shown(answer)}, though nothing was claimed")
    require(received == 0, "the core was called without a claim")
    expect.code(play.post(act), "0000", what="the resend")


def outcome_reply_lost(play: Play) -> None:
    """One lost reply to the outcome's write changes nothing: answered, and replayed."""
    act = play.act()
    with spoilt(play, LedgerFault.OUTCOME_REPLY_LOST_ONCE, act):
        first = play.post(act)
    expect.code(first, "0000", what="the first answer")
    expect.same(first, play.post(act))


def outcome_refused(play: Play) -> Steps:
    """The answer cannot be stored: the channel gets it all the same, and a resend in the end."""
    act = play.act()
    with spoilt(play, LedgerFault.OUTCOME_REFUSED, act):
        first = play.post(act)
    expect.code(first, "0000", what="the first answer")
    expect.same(first, (yield from play.truth(act)), "the resend in the end")


def core_restarted(play: Play) -> Steps:
    """The core dies after it executed, and comes back: its journal's answer is told in the end."""
    act = play.act()
    play.faults({"kind": "execute_then_hang", "guid": act.guid, "attempt": 1})
    call = play.begin_post(act)
    play.soon(lambda: play.core.executed(act.guid) == 1)
    play.plant.restart_core()
    play.core.put()
    expect.unconfirmed(call.result(), "the first answer")
    yield from ends_with_the_answer(play, act)


def core_lost_it(play: Play) -> Steps:
    """The core dies before it executed, and comes back: executed once, by a later attempt."""
    act = play.act()
    play.faults({"kind": "hang_before", "guid": act.guid, "attempt": 1})
    call = play.begin_post(act)
    play.plant.restart_core()
    play.core.put()
    expect.unconfirmed(call.result(), "the first answer")
    yield from ends_with_the_answer(play, act)


def sender_killed(play: Play) -> Steps:
    """Whoever sends later is killed with the bytes at the core: executed once in the end."""
    act, _ = refused(play)
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S})
    came = yield play.until(lambda: play.core.received(act.guid) > 0)
    require(came, f"within {play.limits.settle_s:.0f} s the relay did not send it by itself")
    play.plant.kill_job(Job.SENDS)
    yield from ends_with_the_answer(play, act)


def asker_killed(play: Play) -> Steps:
    """Whoever asks the core is killed while it waits for the word: asked again, told in the end."""
    act = play.act()
    play.faults(
        {"kind": "execute_then_close", "guid": act.guid},
        {"kind": "inquiry_hangs", "guid": act.guid, "seconds": 2 * _SLOW_S},
    )
    expect.unconfirmed(play.post(act), "the first answer")
    ticking = play.begin(play.plant.tick)
    time.sleep(_SLOW_S)
    play.plant.kill_job(Job.ASKS)
    ticking.exception()
    play.heal()
    yield from ends_with_the_answer(play, act)


_BYTES: Final = (
    (
        "killed-with-bytes",
        "killed while the core executes",
        1,
        {"kind": "slow", "seconds": _SLOW_S},
    ),
    (
        "killed-before-execution",
        "killed; the core executes after it",
        18,
        {"kind": "hang_before", "executes": True, "seconds": _SLOW_S},
    ),
    ("killed-never-executed", "killed; the core did nothing", None, {"kind": "hang_before"}),
)


def _control(
    slug: str, name: str, run: Run, expects: str = "", case: int | None = None
) -> Scenario:
    return make(slug, name, run, expects, case=case, need=Need.PROCESSES)


SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        _control(
            slug,
            name,
            partial(_killed_with_bytes, rule=rule),
            "No code means E901; a resend does not reach the core; executed once in the end.",
            case,
        )
        for slug, name, case, rule in _BYTES
    ),
    _control("killed-no-resend", "killed, and nobody resends", nobody_resends, case=2),
    _control("killed-in-parallel", "killed with 20 requests at once", killed_in_parallel, case=19),
    _control("killed-between", "killed between claim and call", killed_between),
    _control("killed-before-writing", "killed before the answer is written", killed_before_writing),
    _control("stalled", "held past its time, and let go", stalled, case=18),
    _control("claim-reply-lost", "the claim's reply is lost once", claim_reply_lost, case=4),
    _control("claim-replies-lost", "every reply to the claim is lost", claim_replies_lost, case=4),
    _control("claim-refused", "the ledger refuses the claim", claim_refused),
    _control("outcome-reply-lost", "the outcome's reply is lost once", outcome_reply_lost, case=4),
    _control("outcome-refused", "the ledger refuses the outcome", outcome_refused, case=21),
    _control("core-restarted", "the core dies after it executed", core_restarted),
    _control("core-lost-it", "the core dies before it executed", core_lost_it),
    _control("sender-killed", "killed while it sends later", sender_killed, case=12),
    _control("asker-killed", "killed while it asks the core", asker_killed),
)

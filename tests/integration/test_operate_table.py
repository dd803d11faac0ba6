"""What a person may do to a row in which situation: every cell of the table, none left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from relayhub.flows.operate import RefusedError
from relayhub.row import Row, from_item, open_shard
from relayhub.states import STEPS, Delivery, Hold, State
from tests.integration.operate_kit import ACTS, ALICE, NOW_MS, SHARDS, Situation, situations
from tests.maintenance import items, put_rows
from tests.world import World

SITUATIONS: Final = tuple(situations())
HELD: Final = frozenset(Hold)
SETTLED: Final = frozenset({Hold.FORGOTTEN, Hold.RESTORED})  # Holds that evidence ends.


@dataclass(frozen=True)
class Rule:
    """What becomes of the situations that all of `where` says; the first rule that fits counts.

    `then` is the state that follows, or the words of the refusal.
    """

    then: State | str
    where: dict[str, Any]

    def fits(self, situation: Situation) -> bool:
        """Tell whether the situation is meant."""
        return all(
            getattr(situation, name) in (wanted if isinstance(wanted, frozenset) else {wanted})
            for name, wanted in self.where.items()
        )


def rule(then: State | str, **where: Any) -> Rule:
    """Return a rule; a set names several values."""
    return Rule(then, where)


R, S, D, U, F = (State.RECEIVED, State.SENT, State.DONE, State.UNKNOWN, State.FAILED)
NOT_FAILED: Final = (
    rule("it is RECEIVED: its message is to come", state=R),
    rule("it is SENT: the request may be on its way; the resolver", state=S),
    rule("it is UNKNOWN: it may have been executed: ask the core", state=U),
    rule("it is DONE: it has ended, and ended for good", state=D),
)
NOT_UNKNOWN: Final = (
    rule("it is RECEIVED: nothing was sent", state=R),
    rule("it is SENT: its sender may still be at it", state=S),
    rule("it is FAILED: it was certainly not executed; redrive it, or close it", state=F),
    rule("it is DONE: its answer is stored", state=D),
)
NOT_CLOSED: Final = (
    rule("nobody can say that it was not sent", state=S),
    rule("it is UNKNOWN: it may have been executed", state=U),
    rule("it is DONE: it has ended already", state=D),
    rule("two answers about it contradict each other", hold=Hold.CONTRADICTION),
)
RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "park": (
        *NOT_FAILED,
        rule("so nothing moves it on: release it first", hold=HELD),
        rule("it is parked already", parked=frozenset({"cap", "operator"})),
        rule("its channel cancelled it", cancelled=True),
        rule("it is interactive", delivery=Delivery.INTERACTIVE),
        rule(F),
    ),
    "hold": (
        rule("it is held already", hold=HELD),
        *(rule(state, state=state) for state in State),
    ),
    "release": (
        rule("it is not held", hold=None),
        # It says "not executed", and something says otherwise: the core is asked.
        rule(U, state=frozenset({F, S, R}), hold=frozenset({Hold.CONTRADICTION, Hold.FORGOTTEN})),
        *(rule(state, state=state) for state in State),
    ),
    "redrive": (
        *NOT_FAILED,
        rule("look why, and release it first", hold=HELD),
        rule("its channel cancelled it", cancelled=True),
        rule("only its channel's own resend may send it", delivery=Delivery.INTERACTIVE),
        rule(F),
    ),
    "close": (
        *NOT_CLOSED,
        rule("name just that hold to close it all the same", hold=HELD),
        rule(D, state=frozenset({F, R})),
    ),
    "close over its hold": (*NOT_CLOSED, rule(D, state=frozenset({F, R}))),
    "close over another hold": (
        *NOT_CLOSED,
        rule("name just that hold to close it all the same", state=frozenset({F, R})),
    ),
    "attest executed": (*NOT_UNKNOWN, rule(D, state=U)),
    "attest not executed": (
        *NOT_UNKNOWN,
        rule("look why, and release it first", hold=HELD - SETTLED),
        rule(D, cancelled=True),
        rule(F, state=U),
    ),
}


def test_every_act_has_its_rules() -> None:
    """A new act must say what it does where."""
    assert set(RULES) == set(ACTS)


@pytest.mark.parametrize("act", ACTS)
def test_an_act_does_what_the_table_says_in_every_situation(world: World, act: str) -> None:
    """Each cell: the state that follows and who did it, or the sentence and an unchanged row."""
    world.clock.ms = NOW_MS
    before = {each.guid: each.row() for each in SITUATIONS}
    put_rows(before.values())
    told = {guid: outcome(world, act, row) for guid, row in before.items()}
    used = set()
    for situation in SITUATIONS:
        guid = situation.guid
        expected = next(each for each in RULES[act] if each.fits(situation))
        used.add(id(expected))
        check(act, before[guid], told[guid], expected.then)
    assert len(used) == len(RULES[act]), "a rule is for no situation"
    kept = {row.guid: row for row in map(from_item, items())}
    assert kept == {
        guid: row if isinstance(told[guid], str) else told[guid] for guid, row in before.items()
    }
    assert world.core.sent == []
    assert world.core.asked == []


def outcome(world: World, act: str, row: Row) -> Row | str:
    """Return the row as the act left it, or the words of the refusal."""
    try:
        return ACTS[act](world.hub, row)
    except RefusedError as error:
        return str(error)


def check(act: str, before: Row, told: Row | str, then: State | str) -> None:
    """Compare one cell."""
    where = f"{act} of {before.guid}: {told}"
    if isinstance(told, str):
        assert not isinstance(then, State), where
        assert then in told, where
        return
    assert told.state == then, where
    check_trace(before, told, where)
    check_safe(act, before, told, where)


def check_trace(before: Row, after: Row, where: str) -> None:
    """One line says who, when, why, from where to where; the row is evidence from then on."""
    assert after.history[:-1] == before.history, where
    entry = after.history[-1]
    assert entry["by"] == "operator alice", where
    assert (entry["at"], entry["from"], entry["to"]) == (NOW_MS, before.state, after.state), where
    assert entry["reason"].startswith(ALICE.reason), where
    assert any(
        (entry["event"], before.state, after.state) == (step.event, step.source, step.target)
        for step in STEPS
    ), where
    assert after.doubted, where


def check_safe(act: str, before: Row, after: Row, where: str) -> None:
    """Nothing is done that no act may do, whatever the table says."""
    if before.state is U and after.state is F:
        assert act == "attest not executed", where
    if before.state is S:
        assert after.state in {S, U}, where
    if before.state is D:
        assert (after.state, after.code, after.response) == (D, before.code, before.response), where
    assert after.open_shard == open_shard(after, SHARDS), where
    assert (after.expires_at is not None) == (after.state is D and not after.hold), where
    assert (after.due_at is None) == (after.state is D), where
    assert after.cancel == before.cancel, where
    assert not (after.state is F and after.cancel and act == "attest not executed"), where


def test_no_situation_is_left_out() -> None:
    """Each state with each hold, each flag and each delivery."""
    kinds = {(each.state, each.hold, each.cancelled, each.delivery) for each in SITUATIONS}
    assert len(kinds) == len(State) * (len(Hold) + 1) * 2 * len(Delivery)
    assert {each.parked for each in SITUATIONS if each.state is F} == {None, "cap", "operator"}

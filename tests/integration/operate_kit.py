"""Every situation that a row can be in before a person acts on it, and every act."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from relayhub.flows import operate
from relayhub.flows.operate import Person
from relayhub.hub import Hub
from relayhub.row import Row, open_shard
from relayhub.states import Code, Delivery, Hold, State, Why
from tests.maintenance import DAY_MS, failed_row
from tests.world import EXECUTED, START_MS

NOW_MS: Final = START_MS + 3_600_000  # An hour later: what can be proved, can be.
ALICE: Final = Person("alice", "the core's owner said so")
SHARDS: Final = 16

Run = Callable[[Hub, Row], Row]
ACTS: Final[dict[str, Run]] = {
    "park": lambda hub, row: operate.park(hub, row, ALICE),
    "hold": lambda hub, row: operate.hold(hub, row, ALICE),
    "release": lambda hub, row: operate.release(hub, row, ALICE),
    "redrive": lambda hub, row: operate.redrive(hub, row, ALICE, NOW_MS + DAY_MS),
    "close": lambda hub, row: operate.close(hub, row, ALICE),
    "close over its hold": lambda hub, row: operate.close(hub, row, ALICE, row.hold),
    "close over another hold": lambda hub, row: operate.close(hub, row, ALICE, _other(row.hold)),
    "attest executed": lambda hub, row: operate.attest_executed(hub, row, ALICE, EXECUTED),
    "attest not executed": lambda hub, row: operate.attest_not_executed(hub, row, ALICE, NOW_MS),
}


def _other(hold: Hold | None) -> Hold:
    return Hold.OPERATOR if hold is not Hold.OPERATOR else Hold.FORGOTTEN


@dataclass(frozen=True)
class Situation:
    """What an act may depend on."""

    state: State
    hold: Hold | None
    parked: str | None
    cancelled: bool
    delivery: Delivery

    @property
    def guid(self) -> str:
        """A GUID that says it all."""
        parts = (self.state, self.hold or "free", self.parked or "-", self.delivery)
        return ".".join((*map(str, parts), "cancelled" if self.cancelled else "-"))

    def row(self) -> Row:
        """Return a row in this situation, as the hub leaves one."""
        row = replace(
            failed_row(self.guid, START_MS),
            **_OF_STATE[self.state],
            state=self.state,
            hold=self.hold,
            parked=self.parked,
            delivery=self.delivery,
            cancel={"at": START_MS, "by": "atm"} if self.cancelled else None,
        )
        if self.hold is not None:
            row = replace(row, expires_at=None)
        return replace(row, open_shard=open_shard(row, SHARDS))


_OF_STATE: Final[dict[State, dict[str, Any]]] = {
    State.RECEIVED: {
        "code": None,
        "why": None,
        "attempt": 0,
        "claim_id": None,
        "core": None,
        **dict.fromkeys(("sent_at", "dead_at", "ended_at", "ask_after")),
    },
    State.SENT: {"code": None, "why": None},
    State.UNKNOWN: {"code": Code.E901, "why": None, "doubted": True},
    State.FAILED: {"code": Code.E902, "why": Why.NOT_SENT},
    State.DONE: {
        "code": "0000",
        "why": None,
        "due_at": None,
        "expires_at": NOW_MS // 1000 + 86_400,
        "response": EXECUTED.body,
        "response_status": 200,
        "response_type": "text/plain",
    },
}


def situations() -> Iterator[Situation]:
    """Return them all; only a FAILED row is ever parked."""
    for state, hold, parked, cancelled, delivery in product(
        State, (None, *Hold), (None, "cap", "operator"), (False, True), Delivery
    ):
        if parked is None or state is State.FAILED:
            yield Situation(state, hold, parked, cancelled, delivery)

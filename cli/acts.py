"""The acts of a person on one row, as data: what a proposal keeps is what is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from relayhub.flows import operate
from relayhub.message import Answer
from relayhub.row import Row
from relayhub.states import Hold

if TYPE_CHECKING:
    from relayhub.flows.operate import Person
    from relayhub.hub import Hub

Fetch = Callable[[Mapping[str, Any]], bytes]  # Reads what the store keeps under a key.


class Name(StrEnum):
    """What the acts are called, in the log and in proposals."""

    PARK = "park"
    HOLD = "hold"
    RELEASE = "release"
    REDRIVE = "redrive"
    CLOSE = "close"
    ATTEST_EXECUTED = "attest executed"
    ATTEST_NOT_EXECUTED = "attest not-executed"


@dataclass(frozen=True)
class Act:
    """One act and its arguments; `answer` is the core's, for an attest that it was executed."""

    name: Name
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: Answer | None = field(default=None, repr=False)

    def run(self, hub: Hub, row: Row, person: Person) -> Row:
        """Carry it out. Raises RefusedError, UnwrittenError and UpkeepError."""
        return _RUNS[self.name](self, hub, row, person)


def _redrive(act: Act, hub: Hub, row: Row, person: Person) -> Row:
    valid_until = hub.now_ms() + act.arguments["valid_for_s"] * 1000
    return operate.redrive(hub, row, person, valid_until)


def _close(act: Act, hub: Hub, row: Row, person: Person) -> Row:
    over = act.arguments.get("over")
    return operate.close(hub, row, person, over and Hold(over))


def _attest_executed(act: Act, hub: Hub, row: Row, person: Person) -> Row:
    if act.answer is None:
        raise ValueError("that it was executed is attested by an answer")
    return operate.attest_executed(hub, row, person, act.answer)


def _attest_not_executed(act: Act, hub: Hub, row: Row, person: Person) -> Row:
    return operate.attest_not_executed(hub, row, person, act.arguments["complete_through"])


_RUNS: Final[Mapping[Name, Callable[[Act, Hub, Row, Person], Row]]] = {
    Name.PARK: lambda _, hub, row, person: operate.park(hub, row, person),
    Name.HOLD: lambda _, hub, row, person: operate.hold(hub, row, person),
    Name.RELEASE: lambda _, hub, row, person: operate.release(hub, row, person),
    Name.REDRIVE: _redrive,
    Name.CLOSE: _close,
    Name.ATTEST_EXECUTED: _attest_executed,
    Name.ATTEST_NOT_EXECUTED: _attest_not_executed,
}


def proposed(name: str, arguments: Mapping[str, Any], fetch: Fetch) -> Act:
    """Return the act that a proposal bears. Raises AnswerStoreError if its answer is gone."""
    if name != Name.ATTEST_EXECUTED:
        return Act(Name(name), arguments)
    body = fetch(arguments["object"])
    answer = Answer(arguments["status"], arguments["type"], body, arguments["code"])
    return Act(Name.ATTEST_EXECUTED, arguments, answer)

"""A person who acts on rows: by name, for a reason, on record, and where the hub demands it by two.

The rule that it protects: the intent is in the operators' log before anything is written, the
outcome after; what is refused is told in one sentence, and in that log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from cli.acts import Act
from cli.audit import Audit
from cli.command import Here
from cli.desk import Desk, open_desk, telling
from cli.exits import CommandError, Exit
from cli.identity import checked_reason, who
from cli.options import key
from cli.stack import Output
from relayhub.flows import operate
from relayhub.flows.operate import Person
from relayhub.row import Row

T = TypeVar("T")


@dataclass(frozen=True)
class Operator:
    """A person at a desk."""

    here: Here
    desk: Desk
    name: str
    reason: str
    audit: Audit

    @classmethod
    def at(cls, here: Here, name: str | None, reason: str) -> Self:
        """Return who gives the command. Raises CommandError before anything is asked of a row."""
        checked = checked_reason(reason)
        known = who(here, name)
        desk = open_desk(here)
        group = here.stack.name(Output.OPERATOR_LOG)
        audit = Audit(here.stack.raw("logs"), group, known, here.now_ms)
        return cls(here, desk, known, checked, audit)

    @property
    def person(self) -> Person:
        """Return who acts, as the hub's flows know it."""
        return Person(self.name, self.reason)

    def row(self, guid: str, channel: str | None) -> Row:
        """Return the row, read consistently. Raises CommandError."""
        return read_row(self.desk, guid, channel)

    def do(self, act: Act, row: Row, person: Person | None = None) -> Row:
        """Carry the act out on the row, on record; return the row as it is then.

        Raises CommandError.
        """
        by = person or self.person

        def run() -> Row:
            return act.run(self.desk.hub, row, by)

        return self.on_record(
            act.name,
            run,
            lambda done: facts_of(done) | {"from": row.state},
            guid=row.guid,
            state=row.state,
            claim_id=row.claim_id,
            actor=by.by,
            reason=by.reason,
            arguments={name: each for name, each in act.arguments.items() if name != "object"},
        )

    def on_record(
        self, act: str, run: Callable[[], T], told: Callable[[T], dict[str, Any]], **facts: Any
    ) -> T:
        """Write the intent, do it, write the outcome. Raises CommandError."""
        act_id = self.audit.intend(act, **{"reason": self.reason, **facts})
        guid = facts.get("guid")
        try:
            with telling():
                done = run()
        except CommandError as error:
            outcome = "refused" if error.code is Exit.REFUSED else "failed"
            self.tell(act_id, outcome, act=act, guid=guid, sentence=str(error))
            raise
        self.tell(act_id, "done", act=act, guid=guid, **told(done))
        return done

    def tell(self, act_id: str, outcome: str, **facts: Any) -> None:
        """Write what came of an act; that it could not be written is told."""
        fault = self.audit.tell(act_id, outcome, **facts)
        if fault:
            self.here.screen.note(
                f"the outcome ({outcome}) is not in the operators' log: {fault}; a row's history"
                " has it"
            )


def read_row(desk: Desk, guid: str, channel: str | None) -> Row:
    """Return the GUID's row, read consistently. Raises CommandError."""
    wanted = key(desk.settings, guid, channel)
    with telling():
        row = operate.read(desk.hub, wanted)
    if channel is not None and row.channel != channel:
        raise CommandError(f"the row of {guid} is of another channel: {row.channel}", Exit.REFUSED)
    return row


def facts_of(row: Row) -> dict[str, Any]:
    """Return what the operators' log says of a row after an act."""
    return {
        "to": row.state,
        "code": row.code,
        "hold": row.hold,
        "parked": row.parked,
        "attempt": row.attempt,
    }

"""What needs two persons: proposed by one for the rows as they are, carried out by another.

The rule that it protects: nobody approves what he proposed himself, an approval acts on exactly the
rows as they were proposed, once, and not after its time.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cli.acts import Act, Name, proposed
from cli.desk import telling
from cli.exits import CommandError, Exit
from cli.functions import plural
from cli.identity import is_generated
from cli.operator import Operator
from cli.redrive import Pace
from cli.rehearsal import rehearsing
from relayhub.flows.operate import Person
from relayhub.proposals import GUIDS_MAX, Proposal, Target, same_person
from relayhub.row import Row
from relayhub.times import rfc3339

_FAILURES_MAX: Final = 3  # What fails three times in a row fails for all.


@dataclass
class Told:
    """What came of an act on many rows; what a row was refused for, by its GUID."""

    done: list[Row] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    not_tried: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return it for a JSON document."""
        return {
            "done": [row.guid for row in self.done],
            "refused": self.refused,
            "failed": self.failed,
            "not_tried": self.not_tried,
        }

    @property
    def end(self) -> Exit:
        """The exit code."""
        if not (self.refused or self.failed or self.not_tried):
            return Exit.DONE
        if self.done:
            return Exit.PARTLY
        return Exit.FAILED if self.failed else Exit.REFUSED


def rehearse(who: Operator, act: Act, rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Return the rows that the act would be done to, and why not to the others."""
    stage, fit, refused = rehearsing(who.desk), [], {}
    for row in rows:
        try:
            with telling():
                act.run(stage.hub, row, who.person)
        except CommandError as error:
            if error.code is not Exit.REFUSED:
                raise
            refused[row.guid] = str(error)
        else:
            fit.append(row)
    return fit, refused


def propose(who: Operator, act: Act, rows: Sequence[Row]) -> Exit:
    """Propose the act for the rows, if the hub's rules would let it be done now."""
    fit, refused = rehearse(who, act, rows)
    for guid, sentence in refused.items():
        who.here.screen.note(f"{guid} is left out: {sentence}")
    if not fit:
        raise CommandError("nothing is proposed: no row may be treated so", Exit.REFUSED)
    if len(fit) > GUIDS_MAX:
        raise CommandError(
            f"{len(fit):,} rows are too many for one proposal: narrow it to {GUIDS_MAX:,}",
            Exit.REFUSED,
        )
    proposal = _proposal(who, act, fit)
    facts: dict[str, Any] = {
        "proposal": proposal.id,
        "guids": [each.guid for each in proposal.targets],
    }

    def keep() -> None:
        who.desk.proposals.propose(proposal, who.here.now_ms())

    who.on_record(f"propose {act.name}", keep, lambda _: {"proposal": proposal.id}, **facts)
    if who.here.screen.as_json:
        who.here.screen.document({"proposed": document(proposal), "left_out": refused})
    else:
        who.here.screen.say(
            f"proposed as {proposal.id}, for {plural(len(fit), 'row')}: another person approves it"
            f" until {rfc3339(proposal.expires_at)} by `relayhub approve {proposal.id}`"
        )
    return Exit.PARTLY if refused else Exit.DONE


def _proposal(who: Operator, act: Act, rows: Sequence[Row]) -> Proposal:
    now_ms = who.here.now_ms()
    proposal_id = f"p-{secrets.token_hex(4)}"
    arguments = dict(act.arguments)
    if act.answer is not None:
        with telling():
            # Under a key that no row has; it is deleted with the bucket's other old objects.
            arguments["object"] = who.desk.store.put("!proposal", proposal_id, act.answer.body)
    return Proposal(
        id=proposal_id,
        act=str(act.name),
        targets=tuple(Target(row.guid, str(row.state), row.claim_id or "") for row in rows),
        by=who.name,
        reason=who.reason,
        at=now_ms,
        expires_at=now_ms + who.desk.settings.proposal_s * 1000,
        arguments=arguments,
    )


def approve(who: Operator, proposal: Proposal) -> Told:
    """Carry out what another person has proposed, row by row. Raises CommandError."""
    _check(who, proposal)
    with telling():
        act = proposed(proposal.act, proposal.arguments, who.desk.store.get)

    _take(who, "approve", proposal)
    person = Person(f"{proposal.by}, approved by {who.name}", proposal.reason)
    told = on_many(who, act, proposal.targets, person, int(proposal.arguments.get("rate", 1)))
    who.tell(proposal.id, "carried out", act=proposal.act, **told.document())
    return told


def withdraw(who: Operator, proposal: Proposal) -> None:
    """Take a proposal back, one's own or another's; no row is touched. Raises CommandError."""
    _take(who, "withdraw", proposal)


def _take(who: Operator, act: str, proposal: Proposal) -> None:
    def take() -> None:
        if not who.desk.proposals.take(proposal):
            raise CommandError(
                f"{proposal.id} is gone: it was approved meanwhile, or withdrawn, or its taking had"
                " no answer; look at the rows, and propose it again if need be",
                Exit.REFUSED,
            )

    who.on_record(act, take, lambda _: {"proposal": proposal.id}, proposal=proposal.id)


def _check(who: Operator, proposal: Proposal) -> None:
    if proposal.expires_at <= who.here.now_ms():
        raise CommandError(
            f"{proposal.id} expired at {rfc3339(proposal.expires_at)}: look at the rows as they are"
            " now, and propose it again",
            Exit.REFUSED,
        )
    if is_generated(proposal.by):  # By a command line of before, which took such a name.
        raise CommandError(
            f"{proposal.id} was proposed by {proposal.by}, which names nobody: withdraw it, and let"
            " a person propose it by name",
            Exit.REFUSED,
        )
    if same_person(proposal.by, who.name):
        raise CommandError(
            f"{proposal.id} was proposed by {proposal.by}, and you are {who.name}: another person"
            " has to approve it",
            Exit.REFUSED,
        )


def on_many(who: Operator, act: Act, targets: Sequence[Target], person: Person, rate: int) -> Told:
    """Do the act to the rows one after the other, at most so many a second."""
    told, pace, in_a_row = Told(), Pace(who.here, rate), 0
    for place, target in enumerate(who.here.screen.counted(targets, str(act.name))):
        pace.wait()
        try:
            told.done.append(who.do(act, _as_meant(who, target), person))
            in_a_row = 0
        except CommandError as error:
            is_refused = error.code is Exit.REFUSED
            (told.refused if is_refused else told.failed)[target.guid] = str(error)
            in_a_row = 0 if is_refused else in_a_row + 1
        if in_a_row == _FAILURES_MAX:
            told.not_tried = [each.guid for each in targets[place + 1 :]]
            break
    return told


def _as_meant(who: Operator, target: Target) -> Row:
    """Return the row, if it is the one that was looked at. Raises CommandError."""
    row = who.row(target.guid, None)
    if (row.state, row.claim_id or "") != (target.state, target.claim_id):
        raise CommandError(
            f"it has moved on since it was looked at: it was {target.state}, and is {row.state} now"
            f" (attempt {row.attempt})",
            Exit.REFUSED,
        )
    return row


def document(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal for a JSON document."""
    return {
        "id": proposal.id,
        "act": proposal.act,
        "by": proposal.by,
        "reason": proposal.reason,
        "at": rfc3339(proposal.at),
        "expires_at": rfc3339(proposal.expires_at),
        "arguments": shown_arguments(proposal.act, proposal.arguments),
        "rows": [{"guid": each.guid, "state": each.state} for each in proposal.targets],
    }


def shown_arguments(act: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as a person reads them: times as text, an answer by its digest."""
    shown = {name: value for name, value in arguments.items() if name != "object"}
    if act == Name.ATTEST_NOT_EXECUTED:
        shown["complete_through"] = rfc3339(shown["complete_through"])
    if "object" in arguments:
        shown["sha256"] = arguments["object"]["sha256"]
    return shown

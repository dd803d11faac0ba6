"""`relayhub proposals`, `approve` and `withdraw`: what waits for a second person."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import proposing
from cli.command import Here
from cli.desk import open_desk, telling
from cli.exits import CommandError, Exit
from cli.functions import plural
from cli.operator import Operator
from cli.options import OperatorName, Reason
from cli.proposing import Told, document, shown_arguments
from cli.screen import Screen, spoken
from relayhub.proposals import Proposal


def proposals(
    here: Here,
    proposal_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Show the rows of this one.")
    ] = None,
) -> Exit:
    """Show what is proposed and waits for another person's `approve`, the oldest first."""
    with telling():
        known = open_desk(here).proposals.all()
    there = [each for each in known if each.expires_at > here.now_ms()]
    if proposal_id is not None:
        there = [_the(there, proposal_id)]
    if here.screen.as_json:
        here.screen.document({"proposals": [document(each) for each in there]})
        return Exit.DONE
    if not there:
        here.screen.say("nothing is proposed")
        return Exit.DONE
    heads = ("id", "act", "rows", "by", "reason", "with", "time left")
    here.screen.table(heads, [_line(each, here.now_ms()) for each in there])
    if proposal_id is not None:
        here.screen.say("")
        here.screen.table(
            ("GUID", "proposed as"), [(each.guid, each.state) for each in there[0].targets]
        )
    return Exit.DONE


def approve(
    here: Here,
    proposal_id: Annotated[str, typer.Argument(metavar="ID", help="As `proposals` names it.")],
    *,
    reason: Reason,
    operator: OperatorName = None,
) -> Exit:
    """Approve and carry out what another person has proposed, on exactly the rows as proposed.

    A row that has moved on since is left alone, and told. Each row's history names both persons.
    """
    who = Operator.at(here, operator, reason)
    with telling():
        proposal = _the(who.desk.proposals.all(), proposal_id)
    told = proposing.approve(who, proposal)
    if here.screen.as_json:
        here.screen.document({"approved": proposal.id, "act": proposal.act, **told.document()})
    else:
        show_told(here.screen, proposal.act, told)
    return told.end


def withdraw(
    here: Here,
    proposal_id: Annotated[str, typer.Argument(metavar="ID", help="As `proposals` names it.")],
    *,
    reason: Reason,
    operator: OperatorName = None,
) -> Exit:
    """Take back what was proposed, by yourself or by another, so that nobody can approve it.

    No row is touched.
    """
    who = Operator.at(here, operator, reason)
    with telling():
        proposal = _the(who.desk.proposals.all(), proposal_id)
    proposing.withdraw(who, proposal)
    if here.screen.as_json:
        here.screen.document({"withdrawn": proposal.id, "act": proposal.act})
    else:
        here.screen.say(f"{proposal.id} is withdrawn: nobody can approve it any more")
    return Exit.DONE


def show_told(screen: Screen, act: str, told: Told) -> None:
    """Print what came of an act on many rows."""
    screen.say(f"{act}: {plural(len(told.done), 'row')} done")
    for guid, sentence in told.refused.items():
        screen.say(f"{guid} refused: {sentence}")
    for guid, sentence in told.failed.items():
        screen.say(f"{guid} failed: {sentence}", "red")
    if told.not_tried:
        screen.note(f"three in a row failed: {plural(len(told.not_tried), 'row')} not tried")


def _the(there: list[Proposal], proposal_id: str) -> Proposal:
    for each in there:
        if each.id == proposal_id:
            return each
    raise CommandError(
        f"there is no proposal {proposal_id}: it was approved or withdrawn, has expired, or never"
        " was",
        Exit.REFUSED,
    )


def _line(proposal: Proposal, now_ms: int) -> tuple[str | int, ...]:
    given = shown_arguments(proposal.act, proposal.arguments)
    return (
        *(proposal.id, proposal.act, len(proposal.targets), proposal.by, proposal.reason),
        ", ".join(f"{name} {value}" for name, value in given.items()) or "-",
        spoken(proposal.expires_at - now_ms),
    )

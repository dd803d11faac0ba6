"""`relayhub park`, `hold`, `release`, `close`, `attest`: what a person does to one row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.acts import Act, Name
from cli.command import Here
from cli.exits import CommandError, Exit
from cli.operator import Operator
from cli.options import Channel, Guid, OperatorName, Reason, moment
from cli.proposing import propose
from cli.row_view import facts, state_of
from relayhub.judgement import DoubtError, Reply, judge
from relayhub.message import Answer
from relayhub.row import Row
from relayhub.states import Hold

_STATUS_MIN: Final = 200
_STATUS_MAX: Final = 599


def park(
    here: Here,
    guid: Guid,
    *,
    reason: Reason,
    operator: OperatorName = None,
    channel: Channel = None,
) -> Exit:
    """Let the hub not send a FAILED row by itself any more; a resend of its channel still does."""
    return _at_once(Operator.at(here, operator, reason), Act(Name.PARK), guid, channel)


def hold(
    here: Here,
    guid: Guid,
    *,
    reason: Reason,
    operator: OperatorName = None,
    channel: Channel = None,
) -> Exit:
    """Let nobody but a person move a row on; its channel is told E901 until it is released."""
    return _at_once(Operator.at(here, operator, reason), Act(Name.HOLD), guid, channel)


def release(
    here: Here,
    guid: Guid,
    *,
    reason: Reason,
    operator: OperatorName = None,
    channel: Channel = None,
) -> Exit:
    """Take a hold off a row; where the core may know more than the row says, it is asked again."""
    return _at_once(Operator.at(here, operator, reason), Act(Name.RELEASE), guid, channel)


def close(
    here: Here,
    guid: Guid,
    *,
    reason: Reason,
    over_hold: Annotated[
        Hold | None,
        typer.Option(help="The hold that the row bears, to close it all the same."),
    ] = None,
    operator: OperatorName = None,
    channel: Channel = None,
) -> Exit:
    """End a row that was certainly not executed (E908), so that its channel may start anew.

    With FOUR_EYES it is proposed, and another person approves it.
    """
    who = Operator.at(here, operator, reason)
    act = Act(Name.CLOSE, {"over": over_hold.value} if over_hold else {})
    return _by_two(who, act, guid, channel)


def attest_executed(
    here: Here,
    guid: Guid,
    *,
    answer: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The core's own answer, byte for byte.", exists=True),
    ],
    reason: Reason,
    status: Annotated[
        int,
        typer.Option(min=_STATUS_MIN, max=_STATUS_MAX, metavar="N", help="Its HTTP status."),
    ] = 200,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Its content type.")
    ] = "application/json",
    code: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Its code, where it is not JSON that bears one."),
    ] = None,
    operator: OperatorName = None,
    channel: Channel = None,
) -> Exit:
    """End a row in doubt as executed, by the core's own answer, which is replayed from then on.

    With FOUR_EYES it is proposed, and another person approves it.
    """
    who = Operator.at(here, operator, reason)
    row = who.row(guid, channel)
    given = _answer(who, row, answer, Reply(status, _headers(kind, code), answer.read_bytes()))
    about = {"status": given.status, "type": given.content_type, "code": given.code}
    return _by_two(who, Act(Name.ATTEST_EXECUTED, about, given), guid, channel, row)


def attest_not_executed(
    here: Here,
    guid: Guid,
    *,
    complete_through: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Until when the core's journal, which has no record of it, is complete"
            " (RFC 3339). It must lie after the time that `show` names.",
        ),
    ],
    reason: Reason,
    operator: OperatorName = None,
    channel: Channel = None,
) -> Exit:
    """Say that a row in doubt was not executed, by a journal of the core; it may be sent then.

    Not before its time: until then the core may still begin with what it has received. With
    FOUR_EYES it is proposed, and another person approves it.
    """
    through = moment("--complete-through", complete_through)
    who = Operator.at(here, operator, reason)
    act = Act(Name.ATTEST_NOT_EXECUTED, {"complete_through": through})
    return _by_two(who, act, guid, channel)


def _headers(kind: str, code: str | None) -> tuple[tuple[str, str], ...]:
    own = (("Content-Type", kind),)
    return own if code is None else (*own, ("X-Response-Code", code))


def _answer(who: Operator, row: Row, file: Path, reply: Reply) -> Answer:
    """Return the answer that the file bears, read as a reply of the core. Raises CommandError."""
    settings = who.desk.settings
    if len(reply.body) > settings.answer_bytes_max:
        raise CommandError(
            f"{file} is larger than any answer may be ({settings.answer_bytes_max:,} bytes)",
            Exit.REFUSED,
        )
    try:
        return judge(reply, guid=row.guid, codes=settings.definite_codes)
    except DoubtError as error:
        raise CommandError(
            f"{file} is no definite answer of the core: {error.reason}"
            " (its code is the JSON's own `code`, or --code for another type)",
            Exit.REFUSED,
        ) from error


def _by_two(
    who: Operator, act: Act, guid: str, channel: str | None, row: Row | None = None
) -> Exit:
    """Carry the act out, or propose it where a second person must approve."""
    if not who.desk.settings.four_eyes:
        return _at_once(who, act, guid, channel, row)
    return propose(who, act, [row or who.row(guid, channel)])


def _at_once(
    who: Operator, act: Act, guid: str, channel: str | None, row: Row | None = None
) -> Exit:
    before = row or who.row(guid, channel)
    after = who.do(act, before)
    if who.here.screen.as_json:
        who.here.screen.document(_document(who, act, before, after))
        return Exit.DONE
    who.here.screen.line(f"{act.name}: {after.guid} is ", state_of(after), f" {after.code or ''}")
    return Exit.DONE


def _document(who: Operator, act: Act, before: Row, after: Row) -> dict[str, Any]:
    return {
        "act": str(act.name),
        "guid": after.guid,
        "from": before.state,
        "by": who.person.by,
        "reason": who.reason,
        "row": facts(after),
    }

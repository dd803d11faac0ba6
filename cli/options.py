"""Options and arguments that several commands have, and how their text becomes a value."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final

import typer

from cli.exits import CommandError, Exit
from relayhub.guids import GuidScope, check_guid, guid_of, key_of
from relayhub.money import number
from relayhub.settings import Settings
from relayhub.strict_json import MalformedError
from relayhub.times import parse_rfc3339

_DURATION: Final = re.compile(r"([1-9][0-9]{0,8})(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ACT: Final = "Who does it, and why"

Guid = Annotated[
    str, typer.Argument(metavar="GUID", help="The request's GUID, or its key as `list` shows it.")
]
Channel = Annotated[
    str | None, typer.Option(metavar="NAME", help="The channel that the GUID belongs to.")
]
OnlyChannel = Annotated[
    str | None, typer.Option("--channel", metavar="NAME", help="Only rows of this channel.")
]
Reason = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        help="Why, in up to 300 characters; it stands in the row's history and in the log.",
        rich_help_panel=_ACT,
    ),
]
OperatorName = Annotated[
    str | None,
    typer.Option(
        "--operator",
        metavar="NAME",
        help="Who you are, on a local stack; on AWS it is the caller's identity.",
        rich_help_panel=_ACT,
    ),
]
OlderThan = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Only rows accepted longer ago: 90s, 10m, 2h, 1d."),
]
UnitsMax = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Stop the scan when it has cost so many read units."),
]
UNITS_MAX: Final = 50_000  # Some 400 MB of rows, for a cent or two.


def seconds(option: str, text: str) -> int:
    """Return the duration in seconds. Raises CommandError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandError(
            f"{option} {text!r} is no duration: write 90s, 10m, 2h or 1d", Exit.REFUSED
        )
    return int(found[1]) * _SECONDS[found[2]]


def moment(option: str, text: str) -> int:
    """Return the time in epoch milliseconds. Raises CommandError."""
    try:
        return parse_rfc3339(text)
    except MalformedError as error:
        raise CommandError(f"{option} {text!r}: {error}", Exit.REFUSED) from error


def amount(option: str, text: str) -> Decimal:
    """Return the exact amount. Raises CommandError."""
    found = number(text)
    if found is None:
        raise CommandError(
            f"{option} {text!r} is no amount: write digits and a point, as 1000 or 12.50",
            Exit.REFUSED,
        )
    return found


def key(settings: Settings, guid: str, channel: str | None) -> str:
    """Return the key of the GUID's row in the ledger. Raises CommandError.

    Where the hub keeps GUIDs apart by channel, the channel must be named, or the whole key given.
    """
    scope = settings.guid_scope
    own = guid if channel is not None else guid_of(guid, scope)
    try:
        checked = check_guid(own)
        if channel is not None:
            return key_of(checked, channel, scope)
        if scope is GuidScope.CHANNEL and own == guid:
            raise CommandError(
                "this hub keeps the GUIDs of channels apart: name the channel by --channel",
                Exit.REFUSED,
            )
        return checked + guid[len(own) :]
    except MalformedError as error:
        raise CommandError(str(error), Exit.REFUSED) from error

"""Who acts: the caller's name as AWS knows it, or on one's own machine the name that is given."""

from __future__ import annotations

import re
from typing import Final

from cli.command import Here
from cli.exits import CommandError, Exit
from cli.stack import is_local
from relayhub.flows.operate import REASON_LENGTH_MAX

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]{0,63}")
_SESSION: Final = "assumed-role/"


def who(here: Here, given: str | None) -> str:
    """Return the name of whoever acts, as it stands in a row's history. Raises CommandError."""
    if not is_local(here.stack.target):
        if given is not None:
            raise CommandError(
                "--operator is for the local stack alone: on AWS, the name is the caller's own",
                Exit.REFUSED,
            )
        return name_of(here.stack.client("sts").get_caller_identity()["Arn"])
    if given is None:
        raise CommandError(
            "say who you are by --operator: on a local stack all are one user", Exit.REFUSED
        )
    if not _NAME.fullmatch(given):
        raise CommandError(
            f"--operator {given!r} is no name: up to 64 of A-Z a-z 0-9 @ . _ -", Exit.REFUSED
        )
    return given


def name_of(arn: str) -> str:
    """Return the readable part of an identity's ARN: `role/Admin/alice`, `user/alice`."""
    resource = arn.split(":", 5)[-1]
    return f"role/{resource.removeprefix(_SESSION)}" if resource.startswith(_SESSION) else resource


def checked_reason(text: str) -> str:
    """Return the reason without the blanks around it. Raises CommandError."""
    reason = text.strip()
    if not (1 <= len(reason) <= REASON_LENGTH_MAX and reason.isprintable()):
        raise CommandError(
            f"--reason: say why in 1 to {REASON_LENGTH_MAX} printable characters, without an amount"
            " or an account",
            Exit.REFUSED,
        )
    return reason

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
# What a tool calls a session by itself: a name for each command, and nobody's.
_GENERATED: Final = re.compile(
    r"(botocore-session|AWS-CLI-session|aws-sdk-[a-z]+|aws-[a-z]+-sdk(-session)?)-\d+"
    r"|AWSCLI-Session",
    re.IGNORECASE,
)


def who(here: Here, given: str | None) -> str:
    """Return the name of whoever acts, as it stands in a row's history. Raises CommandError."""
    if not is_local(here.stack.target):
        if given is not None:
            raise CommandError(
                "--operator is for the local stack alone: on AWS, the name is the caller's own",
                Exit.REFUSED,
            )
        return _named(name_of(here.stack.client("sts").get_caller_identity()["Arn"]))
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


def is_generated(name: str) -> bool:
    """Tell whether the name is a session's that a tool made up, and so no person's."""
    kind, _, rest = name.partition("/")
    return kind == "role" and _GENERATED.fullmatch(rest.rpartition("/")[2]) is not None


def _named(name: str) -> str:
    if is_generated(name):
        raise CommandError(
            f"{name} names nobody, since a tool made that session's name up: set role_session_name"
            " to your own name in the profile (with a web identity AWS_ROLE_SESSION_NAME)",
            Exit.REFUSED,
        )
    return name


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

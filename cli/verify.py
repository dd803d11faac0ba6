"""`relayhub verify`: what a relay, ours or another's, does right, judged by the core's journal."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

EXITS_HELP: Final = (
    "Exit codes:\n\n"
    "* 0: every scenario passed\n"
    "* 1: a scenario failed, or the run came to no end\n"
    "* 2: bad usage, or nobody answers: nothing was tried\n"
    "* 130: interrupted"
)
_SETTLE_S: Final = 300.0
_LOCAL_SETTLE_S: Final = 90.0  # Under the local stack's short limits.
_IDENTITY: Final = "By whom the relay is called"


class LocalRelay(StrEnum):
    """The relays that can be started on this machine."""

    HUB = "hub"
    NAIVE = "naive"
    POWERTOOLS = "powertools"


def verify(
    *,
    url: Annotated[str, typer.Option(help="The relay's base URL.", metavar="URL")] = "",
    core: Annotated[str, typer.Option(help="The local core's control port.", metavar="URL")] = "",
    local: Annotated[
        bool,
        typer.Option(
            "--local", help="Start the relay and a core on this machine, and kill processes too."
        ),
    ] = False,
    relay: Annotated[LocalRelay, typer.Option(help="Which relay --local starts.")] = LocalRelay.HUB,
    sigv4: Annotated[
        bool,
        typer.Option(
            "--sigv4",
            help="Sign with the usual AWS credentials, for execute-api.",
            rich_help_panel=_IDENTITY,
        ),
    ] = False,
    profile: Annotated[
        str | None, typer.Option(help="The AWS profile to sign with.", rich_help_panel=_IDENTITY)
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="The AWS region to sign for.", rich_help_panel=_IDENTITY)
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Goes with each request.", rich_help_panel=_IDENTITY
        ),
    ] = None,
    second_profile: Annotated[
        str | None,
        typer.Option(help="Another channel's profile.", rich_help_panel=_IDENTITY),
    ] = None,
    second_header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Another channel's header.", rich_help_panel=_IDENTITY
        ),
    ] = None,
    settle: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="S",
            help="How long to wait for the relay's own maintenance: 300, or 90 with --local.",
        ),
    ] = None,
    late: Annotated[
        float,
        typer.Option(
            min=0.5,
            metavar="S",
            help="How late the core begins where it is late; less than the relay reckons with.",
        ),
    ] = 2.0,
    answer_within: Annotated[
        float, typer.Option(min=1, metavar="S", help="How long an answer may take.")
    ] = 35.0,
    clients: Annotated[
        int, typer.Option(min=2, max=50, help="How many requests are sent at once.")
    ] = 50,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Play this scenario; may repeat.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--list", help="Say what the scenarios are, and play none.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a table.")
    ] = False,
) -> None:
    """Try a relay: duplicates, lost answers, cancels, bad input, and what the core executed.

    The relay must send to the local core, whose faults are set and whose journal is the truth.
    Requests are POST /transactions with the GUID in Idempotency-Key, as the channel guide has it.
    The last line says how many scenarios passed.
    """
    from cli import verify_run  # noqa: PLC0415 - what it loads no other command needs

    where = verify_run.Where(
        url=url,
        core=core,
        local=relay if local else None,
        sigv4=sigv4 or profile is not None,
        region=region,
        profiles=(profile, second_profile),
        headers=(tuple(header or ()), tuple(second_header or ())),
        answer_s=answer_within,
    )
    patience = settle or (_LOCAL_SETTLE_S if local else _SETTLE_S)
    asked = verify_run.Asked(tuple(only or ()), patience, late, clients)
    raise typer.Exit(verify_run.end(where, asked, show=show, as_json=as_json))

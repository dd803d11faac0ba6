"""The commands by name, and what `relayhub --help` says of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

from cli import (
    act_rows,
    find,
    list_rows,
    proposals,
    purge,
    redrive_messages,
    redrive_rows,
    reprocess,
    resolve,
    show,
    stats,
    switches,
    verify,
)
from cli.command import command
from cli.exits import EXITS_HELP

app: Final = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    # An error is told in one sentence; a table of local variables could show an account's data.
    pretty_exceptions_enable=False,
)


@app.callback(epilog=EXITS_HELP)
def relayhub() -> None:
    """Look after a relayhub stack: see what is in doubt or not sent, put it right, leave a trace.

    No command sends anything to the core: the stack's own functions do, by their own rules.
    `verify` alone sends requests, to a relay that is to be tried.
    """


def _add(run: Callable[..., None], name: str | None = None, to: typer.Typer = app) -> None:
    to.command(name, epilog=EXITS_HELP)(run)


def _group(name: str, about: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
    app.add_typer(group, name=name, help=about, epilog=EXITS_HELP)
    return group


_add(command(show.show))
_add(command(list_rows.list_rows), "list")
_add(command(stats.stats))
_add(command(find.find))
_add(command(act_rows.park))
_add(command(act_rows.hold))
_add(command(act_rows.release))
_add(command(redrive_rows.redrive))
_add(command(act_rows.close))
_attest: Final = _group("attest", "Say with evidence what became of a row in doubt.")
_add(command(act_rows.attest_executed), "executed", _attest)
_add(command(act_rows.attest_not_executed), "not-executed", _attest)
_core: Final = _group("core", "Close the core for a planned stop, open it, see how it stands.")
_add(command(switches.close_core), "close", _core)
_add(command(switches.open_core), "open", _core)
_add(command(switches.core_status), "status", _core)
_add(command(switches.hold_job))
_add(command(switches.release_job))
_add(command(proposals.proposals))
_add(command(proposals.approve))
_add(command(proposals.withdraw))
_add(command(resolve.resolve))
_add(command(reprocess.reprocess))
_add(command(purge.purge))
_add(command(redrive_messages.redrive_messages))
app.command(epilog=verify.EXITS_HELP)(verify.verify)

"""The commands by name, and what `relayhub --help` says of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

from cli import purge, redrive_messages, reprocess, resolve, verify
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
    """Look after a relayhub stack: what is in doubt, not sent, past its time, or in dead letters.

    No command sends anything to the core: the stack's own functions do, by their own rules.
    `verify` alone sends requests, to a relay that is to be tried.
    """


def _add(run: Callable[..., None]) -> None:
    app.command(epilog=EXITS_HELP)(run)


_add(command(resolve.resolve))
_add(command(reprocess.reprocess))
_add(command(purge.purge))
_add(command(redrive_messages.redrive_messages))
app.command(epilog=verify.EXITS_HELP)(verify.verify)

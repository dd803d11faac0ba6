"""Makes a command of a plain function: the options that all have, and how each of them ends.

A command takes `Here` first and returns its exit code. What it raises as CommandError is told in
one sentence on stderr, whatever it printed before; a person never sees a traceback.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Concatenate, Final, ParamSpec, get_type_hints

import typer

from cli.exits import CommandError, Exit
from cli.screen import Screen
from cli.stack import MakeClient, Stack, Target, make_client

P = ParamSpec("P")

_PANEL: Final = "Which stack, and how to reach it"
_STACK_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")
_COMMON: Final[dict[str, tuple[Any, Any]]] = {
    "stack": (
        Annotated[
            str, typer.Option(help="The CloudFormation stack's name.", rich_help_panel=_PANEL)
        ],
        "relayhub",
    ),
    "profile": (
        Annotated[
            str | None,
            typer.Option(help="The AWS profile; else the usual one.", rich_help_panel=_PANEL),
        ],
        None,
    ),
    "region": (
        Annotated[
            str | None,
            typer.Option(help="The AWS region; else the usual one.", rich_help_panel=_PANEL),
        ],
        None,
    ),
    "endpoint_url": (
        Annotated[
            str | None,
            typer.Option(
                metavar="URL",
                help="Another address of AWS; `make up` names the local one.",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
    "as_json": (
        Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")],
        False,
    ),
}


def _epoch_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Seams:
    """What a test may give in the place of AWS and of the clock, as the context's object."""

    make_client: MakeClient = make_client
    now_ms: Callable[[], int] = _epoch_ms
    sleep: Callable[[float], None] = time.sleep  # For so many seconds.


@dataclass(frozen=True)
class Here:
    """What every command works with."""

    stack: Stack
    screen: Screen
    now_ms: Callable[[], int]
    sleep: Callable[[float], None]


def command(run: Callable[Concatenate[Here, P], Exit]) -> Callable[..., None]:
    """Return the function as typer takes it: with the common options, ending in an exit code."""

    @wraps(run)
    def wrapped(ctx: typer.Context, **given: Any) -> None:
        target = Target(*(given.pop(name) for name in list(_COMMON)[:-1]))
        screen = Screen(as_json=given.pop("as_json"))
        seams = ctx.obj or Seams()
        raise typer.Exit(_end(run, target, screen, seams, given))

    hints = get_type_hints(run, include_extras=True)
    first, *own = inspect.signature(run).parameters.values()
    parameters = [
        first.replace(name="ctx", annotation=typer.Context),
        *(each.replace(annotation=hints[each.name]) for each in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            for name, (kind, value) in _COMMON.items()
        ),
    ]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def _end(
    run: Callable[..., Exit], target: Target, screen: Screen, seams: Seams, given: dict[str, Any]
) -> Exit:
    try:
        _check(target)
        stack = Stack(target, seams.make_client)
        return run(Here(stack, screen, seams.now_ms, seams.sleep), **given)
    except CommandError as error:
        screen.fail(str(error))
        return error.code
    except KeyboardInterrupt:
        screen.fail("interrupted; a function that was invoked runs on to its end by itself")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        raise  # Whoever read our output went away; click ends quietly.
    except Exception as error:  # noqa: BLE001 - the edge of the program
        screen.fail(
            f"relayhub itself is at fault ({type(error).__name__}: {error}): "
            "please report this with the command that you gave"
        )
        return Exit.FAILED


def _check(target: Target) -> None:
    if not _STACK_NAME.fullmatch(target.stack):
        raise CommandError(f"--stack {target.stack!r} is no name of a stack", Exit.REFUSED)
    url = target.endpoint_url
    if url is not None and not re.fullmatch(r"https?://[^/\s]+/?", url):
        raise CommandError(
            f"--endpoint-url {url!r} is no address: write http://HOST:PORT", Exit.REFUSED
        )

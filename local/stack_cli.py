"""`python -m local.stack`: starts the local stack, says how to use it, keeps it until Ctrl-C."""

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from local.channels import Channel
from local.emulator import REGION
from local.emulator import ROOT as EMULATOR_ROOT
from local.stack import Stack, StackConfig, StackError
from local.stack_process import Child, TerminatedError, ending_in_order
from local.stack_start import ROOT

_LOOK_S: Final = 1.0
_EXIT_TERM: Final = 128 + signal.SIGTERM
_POST: Final = (
    "-H 'Content-Type: application/json' "
    """-d '{"from":"A001","to":"A002","amount":100}'"""
)


class EndedError(Exception):
    """A part of the running stack ended by itself."""


def main() -> None:
    """Run the command line."""
    typer.run(up)


def up(
    port: Annotated[
        int | None, typer.Option(help="Port of the HTTP front; else a free one.")
    ] = None,
    core_port: Annotated[int | None, typer.Option(help="Port of the core.")] = None,
    control_port: Annotated[int | None, typer.Option(help="The core's port for faults.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(help="A template parameter: NAME=VALUE; may repeat.")
    ] = None,
    logs: Annotated[Path | None, typer.Option(help="Folder for the logs.")] = None,
) -> None:
    """Start the stack from what `make build` built, print how to call it, stop on Ctrl-C."""
    console = Console(soft_wrap=True, highlight=False)
    config = StackConfig(
        port=port,
        core_port=core_port,
        core_control_port=control_port,
        parameters=_parameters(parameter or []),
        logs=logs or StackConfig().logs,
    )
    try:
        with ending_in_order():
            _keep(config, console)
    except KeyboardInterrupt as ended:
        console.print("stopped")
        raise typer.Exit(_EXIT_TERM if isinstance(ended, TerminatedError) else 0) from None
    except (StackError, EndedError) as error:
        console.print(f"the local stack: {error}", style="red", markup=False)
        raise typer.Exit(1) from error


def _parameters(given: list[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    for name, mark, _value in pairs:
        if not (name and mark):
            raise typer.BadParameter(f"--parameter {name!r}: give NAME=VALUE")
    return {name: value for name, _mark, value in pairs}


def _keep(config: StackConfig, console: Console) -> None:
    begun = time.monotonic()
    with ExitStack() as owned:
        with console.status("starting the local stack") as status:

            def tell(step: str) -> None:
                status.update(f"starting: {step}")
                if not console.is_terminal:
                    console.print(f"starting: {step}")

            stack = owned.enter_context(Stack.running(config, on_step=tell))
            forwarder = _forward_metrics(stack)
            owned.callback(forwarder.stop)
        console.print(f"started in {time.monotonic() - begun:.1f} s\n")
        for line in usage(stack):
            console.print(line, markup=False)
        owned.callback(console.print, "\nstopping")
        _watch(stack.emulator.child, stack.parts.core, forwarder)


def _forward_metrics(stack: Stack) -> Child:
    groups = [part for name in stack.log_groups() for part in ("--group", name)]
    command = [sys.executable, "-m", "local.metric_forwarder"]
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", **EMULATOR_ROOT.as_environment()}
    return Child.start(
        "metric forwarder",
        [*command, "--endpoint", stack.emulator.endpoint, *groups],
        log=stack.config.logs / "metric-forwarder.log",
        env=env,
        cwd=ROOT,
    )


def _watch(*parts: Child) -> None:
    """Wait for Ctrl-C or TERM; raises EndedError when a part of the stack ends by itself."""
    while True:
        for part in parts:
            if not part.is_running():
                raise EndedError(f"the {part.name} ended; {part.log} ends in:\n{part.tail()}")
        time.sleep(_LOOK_S)


def usage(stack: Stack) -> Iterator[str]:
    """Yield what a person needs to use the stack, ready to paste."""
    yield f"HTTP API  {stack.api_url}"
    yield f"core      {stack.core_url}, faults and journal on {stack.control_url}"
    yield f"journal   {stack.journal}"
    yield f"logs      {stack.config.logs}"
    yield f"set here, since the emulator leaves it out: {'; '.join(stack.adjusted)}"
    for channel in (stack.atm, stack.app):
        guid = f"{channel.name}-0001"
        yield f"\nAs channel {channel.name}: a transfer (again: its resend), its state"
        yield _curl(channel, f"-H 'Idempotency-Key: {guid}'", _POST, "/transactions")
        yield _curl(channel, f"/transactions/{guid}")
    yield f"\nAs operator: the command line; AWS is at {stack.emulator.endpoint}"
    key = stack.operator.credentials.as_environment() | {"AWS_DEFAULT_REGION": REGION}
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in key.items())
    command = f"resolve --dry-run --endpoint-url {stack.emulator.endpoint}"
    yield f"env {variables} bin/relayhub {command}"
    yield f"env {variables} aws cloudwatch describe-alarms --endpoint-url {stack.emulator.endpoint}"
    yield "\nA fault of the core, its faults gone, the truth about what it executed"
    faults = json.dumps({"rules": [{"kind": "execute_then_hang", "guid": "atm-0002"}]})
    yield f"curl -sS -X PUT -d {shlex.quote(faults)} {stack.control_url}/_core/faults"
    yield f"curl -sS -X PUT -d '{{}}' {stack.control_url}/_core/faults"
    yield f"curl -sS {stack.control_url}/_core/journal"
    yield "\nCtrl-C stops everything."


def _curl(channel: Channel, *parts: str) -> str:
    """Return a curl line that signs; the last part is the path."""
    user = shlex.quote(f"{channel.credentials.key}:{channel.credentials.secret}")
    signing = f"curl -sS -i --aws-sigv4 aws:amz:{REGION}:execute-api --user {user}"
    return " ".join([signing, *parts[:-1], f"http://{channel.host}{parts[-1]}"])

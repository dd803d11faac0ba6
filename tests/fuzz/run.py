"""`make fuzz`: half of the cases for the deployed API, half spoilt events for the handlers.

The API is the local stack's, with real processes and sockets; the handlers run in this process on
emulated AWS. A seed makes the same cases again. Exit code 1 if anything was found.
"""

from __future__ import annotations

import logging
import secrets
import time
import warnings
from collections.abc import Callable
from typing import Annotated, Final

import typer
from moto import mock_aws
from rich.console import Console

from local.core_client import CoreControl
from local.stack import SHORT_LIMITS, Stack, StackConfig, StackError
from local.stack_process import ending_in_order
from local.stack_start import ROOT
from tests.emulated import make_queue
from tests.fuzz import handlers, openapi
from tests.fuzz.tally import Tally
from tests.world import World

LOGS: Final = ROOT / ".local" / "logs" / "fuzz"
_FEW: Final = 400  # Of one world: an emulated table is slow to query once it is large.


def main() -> None:
    """Run the command line."""
    typer.run(fuzz)


def fuzz(
    n: Annotated[int, typer.Option(min=100, help="Cases in all.")] = 4_000,
    seed: Annotated[int | None, typer.Option(help="Of the cases; else drawn.")] = None,
) -> None:
    """Play so many cases; exit code 1 if there is a finding."""
    console = Console(soft_wrap=True, highlight=False)
    seed_of_run = secrets.randbelow(1_000_000) if seed is None else seed
    console.print(f"Fuzz of {n} cases, SEED={seed_of_run}")
    events = Tally()
    _timed(console, "spoilt events", events, lambda: _spoil(events, n // 2, seed_of_run))
    calls = Tally()
    try:
        _timed(console, "the deployed API", calls, lambda: _call(calls, n - n // 2, seed_of_run))
    except StackError as error:
        console.print(str(error), markup=False)
        raise typer.Exit(1) from error
    findings = len(events.findings) + len(calls.findings)
    console.print(f"fuzz: {events.cases + calls.cases} cases, {findings} findings")
    if findings:
        raise typer.Exit(1)


def _timed(console: Console, what: str, tally: Tally, play: Callable[[], None]) -> None:
    began = time.monotonic()
    play()
    for told, times in sorted(tally.told.items()):
        console.print(f"{times:7}  {told}", markup=False)
    if tally.findings:
        console.print(tally.report(), markup=False)
    took_s = time.monotonic() - began
    console.print(f"{what}: {tally.cases} cases in {took_s:.0f} s, {len(tally.findings)} findings")


def _spoil(tally: Tally, cases: int, seed_of_run: int) -> None:
    logging.getLogger("relayhub").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", "No application metrics")
    for part, (_, _, share) in handlers.PARTS.items():
        left = round(cases * share)
        for nth in range(-(-left // _FEW)):
            with mock_aws():
                bench = handlers.Bench(World(), tally)
                make_queue("relayhub-rejects")
                now = min(_FEW, left - nth * _FEW)
                handlers.run(bench, part, cases=now, seed_of_run=seed_of_run * 1_000 + nth)


def _call(tally: Tally, cases: int, seed_of_run: int) -> None:
    config = StackConfig(logs=LOGS, parameters=SHORT_LIMITS)
    with ending_in_order(), Stack.running(config) as stack:
        core = CoreControl(stack.control_url)
        openapi.run(stack, core, tally, cases=cases, seed_of_run=seed_of_run)
        core.close()


if __name__ == "__main__":
    main()

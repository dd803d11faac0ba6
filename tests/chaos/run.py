"""`make chaos`: the deployed functions under load, killed and lied to, against the core's journal.

It runs on the local stack, with real processes and sockets. Exit code 1 if a GUID was executed
twice, was lost or is open at the end, or if anything else in the table of truth does not agree.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local.stack import Stack, StackConfig, StackError
from local.stack_process import ending_in_order
from local.stack_start import ROOT
from tests.chaos import report, weather
from tests.chaos.plan import Plan, draw
from tests.chaos.play import Tell, play

LOGS: Final = ROOT / ".local" / "logs" / "chaos"
CLIENTS_MAX: Final = 32  # The emulator starves above some 48 calls, and the queues make some too.


def main() -> None:
    """Run the command line."""
    typer.run(chaos)


def chaos(
    n: Annotated[int, typer.Option(min=20, help="Business acts, one GUID each.")] = 2_000,
    seed: Annotated[int | None, typer.Option(help="Of the plan; else drawn.")] = None,
    clients: Annotated[int, typer.Option(min=1, max=CLIENTS_MAX, help="Requests at once.")] = 28,
    limit_s: Annotated[float, typer.Option(help="The longest time for the load; seconds.")] = 2_400,
) -> None:
    """Play a run and judge it; exit code 1 if anything is wrong."""
    console = Console(soft_wrap=True, highlight=False)
    plan = draw(n, secrets.randbelow(1_000_000) if seed is None else seed)
    console.print(report.opening_line(plan, clients))
    config = StackConfig(logs=LOGS, parameters=weather.LIMITS, has_faults=True)
    try:
        with (
            ending_in_order(),
            _progress(console, plan) as tell,
            Stack.running(config, on_step=lambda step: tell(step, 0)) as stack,
        ):
            outcome = play(stack, plan, clients=clients, limit_s=limit_s, tell=tell)
            kept = report.keep_evidence(stack, outcome, LOGS)
    except StackError as error:
        console.print(str(error), markup=False)
        raise typer.Exit(1) from error
    report.show(console, outcome, kept)
    if not outcome.is_right:
        raise typer.Exit(1)


@contextmanager
def _progress(console: Console, plan: Plan) -> Iterator[Tell]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(plan.steps))
        yield lambda what, count: bar.update(task, description=what, completed=count)


if __name__ == "__main__":
    main()

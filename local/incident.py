"""`make incident`: a night at a hub on one machine, from the alarm to the end.

It prepares the incident, goes through it by documented commands only, prints what was typed and
what came, and compares the end with the core's own journal. Exit code 0 only if they agree.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from local.core_client import CoreControl, ServerError
from local.incident_acts import Found, go_through
from local.incident_desk import Desk, IncidentError, Said
from local.incident_page import transcript, written
from local.incident_story import ALL, PARAMETERS, REFUSED, SILENT, Incident, prepare
from local.incident_truth import Truth, look
from local.stack import Stack, StackConfig, StackError
from local.stack_process import ending_in_order

LOGS: Final = StackConfig().logs / "incident"
ABOUT: Final = (
    "What `make incident` typed and saw on a local stack with `FourEyes` and short limits, in one"
    " run of it. Each command had `--endpoint-url` with the stack's address as well, and the"
    " operator's credentials in its environment. Where a line begins with `…`, lines of a table are"
    " left out."
)


@dataclass(frozen=True)
class Night:
    """All of it: how it began, what was typed, what was found, and what is true in the end."""

    incident: Incident
    said: tuple[Said, ...]
    found: Found
    truth: Truth


def main() -> None:
    """Run the command line."""
    typer.run(play)


def play(
    page: Annotated[
        Path | None,
        typer.Option(help="Put the transcript between this page's marks as well.", exists=True),
    ] = None,
) -> None:
    """Prepare the incident, put it right, print the transcript; exit code 1 if a sum is wrong."""
    console = Console(soft_wrap=True, highlight=False)
    try:
        with ending_in_order():
            night = _night(console)
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(1) from None
    except (StackError, ServerError, IncidentError) as error:
        console.print(f"incident: {error}", style="red", markup=False)
        raise typer.Exit(1) from error
    if page is not None:
        written(page, transcript(night.said, f"{ABOUT}\n\n{intro(night.incident)}"))
    faults = list(night.truth.faults())
    for each in faults:
        console.print(f"wrong: {each}", style="red", markup=False)
    console.print(f"incident: {'FAILED' if faults else 'ok'}, {summary(night.truth)}", markup=False)
    raise typer.Exit(1 if faults else 0)


def _night(console: Console) -> Night:
    with ExitStack() as owned:
        with console.status("the local stack") as status:
            config = StackConfig(logs=LOGS, parameters=PARAMETERS)
            stack = owned.enter_context(Stack.running(config, on_step=status.update))
        core = CoreControl(stack.control_url)
        owned.callback(core.close)
        return through(stack, core, console)


def through(stack: Stack, core: CoreControl, console: Console) -> Night:
    """Play it on a stack with PARAMETERS on which nothing has happened; raises IncidentError."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(stack, Path(folder), lambda said: _print(console, said))
        incident = prepare(stack, core, lambda step: console.print(f"({step})", markup=False))
        console.print(f"\n{intro(incident)}", markup=False)
        found = go_through(desk, stack, core, incident)
    core.clear()
    return Night(incident, tuple(desk.said), found, look(stack, core, incident, found))


def intro(incident: Incident) -> str:
    """Return what is known before the first command."""
    alarms = ", ".join(incident.alarms)
    return (
        "What nobody knows yet: a relay was killed while the core was at its request, the core"
        f" executed {len(SILENT)} requests of two channels without an answer, and refused the"
        f" connections of {len(REFUSED)} more. It is back, but its inquiry answers 500. On are"
        f" {alarms}."
    )


def _print(console: Console, said: Said) -> None:
    console.print(f"\n# {said.about}", style="bold", markup=False)
    console.print(f"$ {said.line}", markup=False)
    console.print(said.text, markup=False)
    if said.code:
        console.print(f"(exit code {said.code})", markup=False)


def summary(truth: Truth) -> str:
    """Return the verdict's numbers."""
    ended = sum(state == "DONE" for state, _ in truth.ends.values())
    doubles = sum(count > 1 for count in truth.executed.values())
    sums = ", ".join(
        f"{channel} {currency} {total:,}"
        for (channel, currency), (_, total) in sorted(truth.journal_in_doubt.items())
    )
    return (
        f"{ended} of {len(ALL)} rows DONE, {doubles} executed twice; was in doubt, and executed:"
        f" {sums}"
    )


if __name__ == "__main__":
    main()

"""`make demo`: the hub's main job on one machine, then the same traffic without a ledger.

The truth is read from the core's own journal file. Exit code 0 only if no GUID was executed twice
and every answer of the hub was the right one.
"""

from collections import Counter
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from local.core_client import CoreControl, ServerError
from local.core_ledger import read_journal
from local.demo_fronts import CLIENTS, Front, HubFront, naive_front
from local.demo_story import EXECUTED_NEVER, STORY, Seen, look_again
from local.stack import SHORT_LIMITS, Stack, StackConfig, StackError
from local.stack_process import ending_in_order


class Relay(StrEnum):
    """Which relay the story is played through."""

    BOTH = "both"  # The hub, then the naive one for comparison.
    HUB = "hub"
    NAIVE = "naive"


def main() -> None:
    """Run the command line."""
    typer.run(demo)


def demo(
    relay: Annotated[Relay, typer.Option(help="Which relay is shown.")] = Relay.BOTH,
) -> None:
    """Play the story and judge it; exit code 1 if anything was wrong."""
    console = Console(soft_wrap=True, highlight=False)
    try:
        with ending_in_order():
            ok = _play_all(relay, console)
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(1) from None
    except (StackError, ServerError) as error:
        console.print(f"demo: {error}", style="red", markup=False)
        raise typer.Exit(1) from error
    raise typer.Exit(0 if ok else 1)


def _play_all(relay: Relay, console: Console) -> bool:
    """Play what was asked for; the last line printed is the verdict."""
    verdicts: list[tuple[bool, str]] = []
    if relay is not Relay.NAIVE:
        verdicts.append(_hub(console))
    if relay is not Relay.HUB:
        verdicts.append(_naive(console, is_control=relay is Relay.BOTH))
    for _, line in reversed(verdicts):
        console.print(line, markup=False)
    return all(ok for ok, _ in verdicts)


def _hub(console: Console) -> tuple[bool, str]:
    config = StackConfig(parameters=SHORT_LIMITS)
    with ExitStack() as owned, progress_on(console) as progress:
        task = progress.add_task("the local stack", total=None)
        stack = owned.enter_context(
            Stack.running(config, on_step=lambda step: progress.update(task, description=step))
        )
        progress.update(task, description=f"{CLIENTS} warm clients")
        stack.warm(CLIENTS)
        progress.remove_task(task)
        core = CoreControl(stack.control_url)
        owned.callback(core.close)
        front = HubFront(stack, core)
        story = _play(front, progress)
        settled = _settle(front, story, progress)
        states = {seen.guid: front.state(seen.guid) for seen in story}
    executed = executions(front.journal)
    for seen in story:
        _judge(seen, states[seen.guid], executed[seen.guid])
    console.print(_table("Through relayhub", story, states, executed))
    console.print(f"The ledger at the end: {settled}", markup=False)
    for seen in story:
        for wrong in seen.wrong:
            console.print(f"wrong: {seen.guid}: {wrong}", style="red", markup=False)
    doubles = _doubles(executed)
    ok = not doubles and not any(seen.wrong for seen in story)
    word = "ok" if ok else "FAILED"
    return ok, f"demo: {word}, {len(story)} GUIDs, {len(doubles)} executed twice"


def _naive(console: Console, *, is_control: bool) -> tuple[bool, str]:
    """Play the story without a ledger; as the control, it is right if the doubles show."""
    folder = StackConfig().logs
    with naive_front(folder) as front, progress_on(console) as progress:
        story = _play(front, progress)
    executed = executions(front.journal)
    states = {seen.guid: front.state(seen.guid) for seen in story}
    console.print(
        _table("The same traffic through a relay without a ledger", story, states, executed)
    )
    doubles = _doubles(executed)
    named = ", ".join(f"{guid} ({count} times)" for guid, count in doubles.items())
    line = f"naive relay: {len(doubles)} of {len(story)} GUIDs executed more than once: {named}"
    return bool(doubles) if is_control else not doubles, line


def _play(front: Front, progress: Progress) -> list[Seen]:
    task = progress.add_task(f"{front.name}", total=len(STORY))
    story = []
    for act in STORY:
        about = (act.__doc__ or "").splitlines()[0]
        progress.update(task, description=f"{front.name}: {about}")
        story.append(act(front))
        progress.advance(task)
    progress.remove_task(task)
    return story


def _settle(front: Front, story: list[Seen], progress: Progress) -> str:
    """Let the maintenance functions end what is open, and look at it again."""
    task = progress.add_task(f"{front.name}: resolver, reprocessor, purger", total=None)
    settled = front.settle()
    look_again(front, story)
    progress.remove_task(task)
    return settled


def executions(journal: Path) -> Counter[str]:
    """Return how often the core executed each GUID, from its own journal file."""
    return Counter(each.guid for each in read_journal(journal))


def _doubles(executed: Counter[str]) -> dict[str, int]:
    return {guid: count for guid, count in executed.items() if count > 1}


def _judge(seen: Seen, state: str, executed: int) -> None:
    if state != "DONE":
        seen.wrong.append(f"the ledger says {state} instead of DONE")
    times = 0 if seen.guid in EXECUTED_NEVER else 1
    if executed != times:
        seen.wrong.append(f"executed {executed} times instead of {times}")


def _table(title: str, story: list[Seen], states: dict[str, str], executed: Counter[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("GUID", "what happened", "the channel saw", "ledger"):
        table.add_column(name, overflow="fold")
    table.add_column("executed", justify="right")
    for seen in story:
        count = executed[seen.guid]
        style = "red" if count > 1 or (seen.wrong and states[seen.guid] != "-") else None
        saw = " | ".join(seen.saw)
        table.add_row(seen.guid, seen.about, saw, states[seen.guid], str(count), style=style)
    return table


def progress_on(console: Console) -> Progress:
    """Return the bar that shows what the demo is at; it leaves nothing behind."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


if __name__ == "__main__":
    main()

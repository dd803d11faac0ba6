"""`make demo-kafka`: receipts from a Kafka topic, at least once in the log, executed once each.

The same acts are then played by a consumer without a ledger. The totals are read from the cores'
own journal files. Exit code 0 only if the hub's is the sum of the receipts, and the other's is not.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.table import Table

from local.core_client import CoreProcess, ServerError
from local.core_ledger import read_journal
from local.demo import progress_on
from local.demo_kafka_acts import (
    ACTS,
    KILLED,
    LOG,
    TOPIC,
    TOTAL,
    ActError,
    Front,
    Played,
    Seen,
    fill,
    front_of,
    play,
)
from local.kafka_broker import Broker, BrokerError, running_broker
from local.stack import SHORT_LIMITS, Stack, StackConfig, StackError
from local.stack_process import ending_in_order

# Keys of this topic are receipts' ids, not accounts: a key that comes twice is a duplicate.
PARAMETERS: Final = {
    **SHORT_LIMITS,
    "KafkaKeyIsGuid": "true",
    "SourceOperations": f'{{"kafka:{TOPIC}":"receipt"}}',
}
LOGS: Final = StackConfig().logs / "kafka"
FUNCTION: Final = "MessagesFunction"
REJECTS: Final = "IntakeRejectsQueue"
_NAIVE_MIN: Final = sum(each.paid for each in LOG)  # Each record of the log, once.


def main() -> None:
    """Run the command line."""
    typer.run(demo)


def demo() -> None:
    """Play the acts through the hub and without it; exit code 1 if a total is not as it must be."""
    console = Console(soft_wrap=True, highlight=False)
    try:
        with ending_in_order():
            ok = _play_all(console)
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(1) from None
    except (StackError, ServerError, BrokerError, ActError) as error:
        console.print(f"demo-kafka: {error}", style="red", markup=False)
        raise typer.Exit(1) from error
    raise typer.Exit(0 if ok else 1)


def _play_all(console: Console) -> bool:
    # The broker first: a machine that has none is told so before the stack is started.
    with running_broker({TOPIC: 1}, log=LOGS / "broker.log") as broker:
        fill(broker)
        hub = _hub(broker, console)
        naive = _naive(broker, console)
    for each in hub.wrong:
        console.print(f"wrong: {each}", style="red", markup=False)
    ok = hub.total == TOTAL and naive.total >= _NAIVE_MIN and not hub.wrong
    console.print(
        f"demo-kafka: {'ok' if ok else 'FAILED'}, {len(LOG)} records read {len(hub.story)} times,"
        f" core total {hub.total:,} (naive: {naive.total:,})",
        markup=False,
    )
    return ok


def _hub(broker: Broker, console: Console) -> Played:
    with _stack(console) as stack:
        front = front_of(
            *("hub", "local.kafka_source", broker, stack.journal),
            *("--function", stack.name_of(FUNCTION), "--endpoint", stack.emulator.endpoint),
            *("--window", "0.1"),
        )
        story = _story(front, console)
        played = Played(front, story, list(_wrong(stack, story)))
    _show("Through relayhub", broker, played, console)
    return played


@contextmanager
def _stack(console: Console) -> Iterator[Stack]:
    config = StackConfig(parameters=PARAMETERS, logs=LOGS)
    with ExitStack() as owned:
        with progress_on(console) as progress:
            task = progress.add_task("the local stack", total=None)
            stack = owned.enter_context(
                Stack.running(config, on_step=lambda step: progress.update(task, description=step))
            )
        yield stack


def _naive(broker: Broker, console: Console) -> Played:
    journal = LOGS / "naive-core-journal.jsonl"
    journal.unlink(missing_ok=True)
    with CoreProcess(journal) as core:
        front = front_of("naive", "local.kafka_naive", broker, journal, "--core", core.url)
        played = Played(front, _story(front, console))
    _show("The same log, each record sent straight to the core", broker, played, console)
    return played


def _story(front: Front, console: Console) -> list[Seen]:
    story: list[Seen] = []
    with progress_on(console) as progress:
        task = progress.add_task(front.name, total=len(ACTS))
        for act in ACTS:
            progress.update(task, description=f"{front.name}: {act.about}")
            story += play(front, act, LOGS)
            progress.advance(task)
    return story


def _wrong(stack: Stack, story: Sequence[Seen]) -> Iterator[str]:
    for seen in story:
        if seen.became not in ("executed", "duplicate skipped"):
            yield f"offset {seen.offset} ({seen.act}): {seen.became}"
    for guid in dict.fromkeys(each.guid for each in LOG):
        row = stack.ledger_row(guid) or {}
        if (row.get("state"), row.get("attempt")) != ("DONE", 1):
            yield f"{guid}: the ledger says {row.get('state')}, attempt {row.get('attempt')}"
    if depth := stack.queue_depth(REJECTS):
        yield f"{depth} records were put aside"


def _show(title: str, broker: Broker, played: Played, console: Console) -> None:
    """Print each record of each act, what is committed at the end, and what the core executed."""
    console.print(_table(title, played.story))
    committed = broker.committed(played.front.name, TOPIC)[0]
    amounts: dict[str, list[int]] = {}
    for each in read_journal(played.front.journal):
        amounts.setdefault(each.guid, []).append(each.amount)
    sums = ", ".join(f"{guid} {len(each)} x {each[0]:,}" for guid, each in amounts.items())
    console.print(
        f"Committed: {committed} of {len(LOG)}."
        f" The core's journal: {sums or 'nothing'}; in all {played.total:,}\n",
        markup=False,
    )


def _table(title: str, story: Sequence[Seen]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("the consumer")
    table.add_column("offset", justify="right")
    table.add_column("receipt")
    table.add_column("paid", justify="right")
    table.add_column("what became of it")
    table.add_column("committed", justify="right")
    acts: set[str] = set()
    for seen in story:
        act = "" if seen.act in acts else seen.act
        acts.add(seen.act)
        record = str(seen.offset), seen.payment.guid, f"{seen.payment.paid:,}"
        committed = "killed" if seen.outcome == KILLED else str(seen.committed)
        style = "red" if seen.became == "executed again" else None
        table.add_row(act, *record, seen.became, committed, style=style)
    return table


if __name__ == "__main__":
    main()

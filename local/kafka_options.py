"""The options that the two Kafka consumers of this folder share, and how they are ended."""

import json
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Annotated, Any

import typer

from local.kafka_member import Member

Bootstrap = Annotated[str, typer.Option(help="The broker's address, host:port.")]
Topic = Annotated[str, typer.Option(help="The topic that is read.")]
Group = Annotated[str, typer.Option(help="The consumer group; its commits say where to go on.")]
Batch = Annotated[int, typer.Option(min=1, max=10_000, help="Records per batch at most.")]
Window = Annotated[float, typer.Option(min=0, help="Seconds for a batch to fill.")]
Session = Annotated[
    float, typer.Option(min=1.0, help="Seconds after which a silent member counts as dead.")
]
FromBeginning = Annotated[
    bool,
    typer.Option(
        "--from-beginning",
        help="Read each partition anew from its beginning, whatever is committed.",
    ),
]
DieBeforeCommit = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="A fault: SIGKILL itself when the N-th batch was processed, before its commit.",
    ),
]


def print_line(line: Mapping[str, Any]) -> None:
    """Write one JSON line, at once: whoever kills this process has still seen it."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def run_until_stopped(member: Member) -> None:
    """Run the member; TERM and Ctrl-C end it in order, after the batch in hand."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        member.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    member.run()

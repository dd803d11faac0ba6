"""What a command shows: tables for people or one JSON document on stdout, the rest on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

_PIPED_COLUMNS: Final = 200  # A table that was piped somewhere keeps its lines whole.
_UNITS_S: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


# A text, a number, or a text with its own colour.
Cell = str | int | Text


class Screen:
    """Stdout and stderr of one command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = Console(highlight=False, soft_wrap=True)
        if not self._out.is_terminal:
            self._out.width = _PIPED_COLUMNS
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the command's one JSON document."""
        typer.echo(json.dumps(document, indent=2))

    def say(self, line: str, style: str = "") -> None:
        """Print a line of the result."""
        self._out.print(Text(line, style=style))

    def line(self, *parts: Cell) -> None:
        """Print a line of the result whose parts have colours of their own."""
        self._out.print(Text.assemble(*map(_shown, parts)))

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Print rows under their heads; numbers stand to the right."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        lines = list(rows)
        for at, head in enumerate(heads):
            is_number = bool(lines) and all(isinstance(line[at], int) for line in lines)
            table.add_column(head, justify="right" if is_number else "left", overflow="fold")
        for line in lines:
            table.add_row(*map(_shown, line))
        self._out.print(table, soft_wrap=False)

    def fail(self, sentence: str) -> None:
        """Tell what went wrong."""
        self._err.print(Text(f"relayhub: {sentence}", style="red"))

    def note(self, sentence: str) -> None:
        """Tell what the result does not say by itself."""
        self._err.print(Text(f"relayhub: {sentence}", style="yellow"))

    @contextmanager
    def working(self, doing: str) -> Iterator[Callable[[str], None]]:
        """Turn a spinner meanwhile, on a terminal only; yield what changes its text."""
        if not self._err.is_terminal:
            yield lambda _: None
            return
        with self._err.status(Text(doing)) as status:
            yield lambda text: status.update(Text(text))

    def counted(self, items: Sequence[T], doing: str) -> Iterable[T]:
        """Yield the items, with a progress bar on a terminal."""
        return track(
            items, doing, console=self._err, transient=True, disable=not self._err.is_terminal
        )


def _shown(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return cell
    return Text(f"{cell:,}" if isinstance(cell, int) else cell)


def spoken(ms: int) -> str:
    """Return a time as people say it, in its two largest units: 75 s is "1 min 15 s"."""
    left_s = max(0, ms) // 1000
    parts = []
    for unit_s, name in _UNITS_S:
        count, left_s = divmod(left_s, unit_s)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"

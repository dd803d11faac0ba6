"""How a command ends: the exit codes, and the error that bears one with its sentence."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """What a command's exit code means."""

    DONE = 0
    FAILED = 1
    REFUSED = 2  # Click's own code for bad usage.
    PARTLY = 3
    INTERRUPTED = 130  # A shell's code for a program that Ctrl-C ended.


MEANINGS: Final = {
    Exit.DONE: "done",
    Exit.FAILED: "something failed: AWS, or a function",
    Exit.REFUSED: "refused, or bad usage: nothing was changed",
    Exit.PARTLY: "done in part: rows or messages are left",
    Exit.INTERRUPTED: "interrupted: a function that was invoked runs on to its end",
}
EXITS_HELP: Final = "\n".join(
    ["Exit codes:\n", *(f"* {code.value}: {text}" for code, text in MEANINGS.items())]
)


class CommandError(Exception):
    """A command cannot go on; the message is the sentence for the person at the terminal."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code

"""A person at the command line of the local stack: each command as it is typed, and what came.

It runs `bin/relayhub` as a process of its own, with the credentials of the operator and no others.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local.emulator import REGION
from local.stack import Stack
from local.stack_start import ROOT

DONE: Final = 0
REFUSED: Final = 2
PROGRAM: Final = "bin/relayhub"
_WAIT_S: Final = 120


class IncidentError(Exception):
    """Something did not go as it had to; the message says what."""


@dataclass(frozen=True)
class Said:
    """One command: why it is given, its words, its exit code, what it printed."""

    about: str
    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The command as it is typed where the stack is the usual one."""
        return f"{PROGRAM} {shlex.join(self.words)}"

    @property
    def text(self) -> str:
        """What stood on the screen, the blanks at the ends of lines left out."""
        lines = f"{self.out}{self.err}".splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n")


class Desk:
    """Gives commands, and keeps those that belong to the story."""

    def __init__(self, stack: Stack, folder: Path, on_said: Callable[[Said], None]) -> None:
        """Stand in a folder, where the files are that commands are given."""
        self.folder = folder
        self.said: list[Said] = []
        self._on_said = on_said
        self._where = ("--endpoint-url", stack.emulator.endpoint)
        self._environ = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "AWS_DEFAULT_REGION": REGION,
            **stack.operator.credentials.as_environment(),
        }

    def give(self, about: str, *words: str, code: int = DONE) -> Said:
        """Give a command of the story; raises IncidentError unless it ends with that code."""
        said = self._run(about, words)
        if said.code != code:
            raise IncidentError(f"{said.line} ended with {said.code}, not {code}: {said.text}")
        self.said.append(said)
        self._on_said(said)
        return said

    def act(self, about: str, who: str, reason: str, *words: str, code: int = DONE) -> Said:
        """Give a command that is on record."""
        return self.give(about, *words, "--operator", who, "--reason", reason, code=code)

    def read(self, *words: str) -> dict[str, Any]:
        """Return what a command tells a program; it is not a part of the story."""
        said = self._run("", (*words, "--json"))
        if said.code != DONE:
            raise IncidentError(f"{said.line} ended with {said.code}: {said.text}")
        document: dict[str, Any] = json.loads(said.out)
        return document

    def _run(self, about: str, words: tuple[str, ...]) -> Said:
        ran = subprocess.run(
            [ROOT / PROGRAM, *words, *self._where],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=False,
        )
        return Said(about, words, ran.returncode, ran.stdout, ran.stderr)

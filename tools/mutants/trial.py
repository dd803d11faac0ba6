"""One mutant's trial: in a copy of the repository, a named check must fail.

The rule that it protects: only a verdict kills. A test that fails in its own body, twice, or a
violation that the explorer finds; never a file that could not be read, a fixture that broke, a name
that is not there, or a run that did not end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.mutants import runner
from tools.mutants.patch import Mutant, mutated

_LONGEST_S: Final = 900  # A run that takes longer hangs.
_EXPLORER: Final = "tests/explore/__main__.py"
_VIOLATION: Final = re.compile(r"^VIOLATION: (.*)\nseed: ([\w-]+)", re.MULTILINE)
_FUNCTION_BROKE: Final = "a function broke"
# Errors by which a mutant breaks its own module: it is no weaker guard then.
_BROKEN: Final = ("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError")


EXPLORE: Final = "explore:"  # Before the name of a set-up, where that is the check.


class TrialError(Exception):
    """A check that gave no verdict, or that does not hold for the source as it is."""


@dataclass(frozen=True)
class Failure:
    """A check that failed: a test or a set-up of the explorer, and the error's first line."""

    check: str
    error: str


@dataclass(frozen=True)
class Copy:
    """A copy of the repository's source in a folder of its own, for one worker."""

    place: Path

    @classmethod
    def of_repository(cls, root: Path, place: Path) -> Copy:
        """Copy what git tracks or would: nothing that is built or ignored."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        found = subprocess.run(listed, cwd=root, check=True, capture_output=True).stdout
        for name in filter(None, found.decode().split("\0")):
            if (root / name).is_file():
                target = place / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target)
        (place / ".venv").symlink_to(root / ".venv")
        return cls(place)

    def again(self, place: Path) -> Copy:
        """Return the same copy in another folder."""
        shutil.copytree(self.place, place, symlinks=True)
        return Copy(place)

    @contextmanager
    def without(self, mutant: Mutant) -> Iterator[None]:
        """Take the guard away for a while."""
        path = self.place / mutant.path
        source = path.read_text()
        try:
            _write(path, mutated(mutant, source))
            yield
        finally:
            _write(path, source)

    def failure(self, files: Sequence[str]) -> Failure | None:
        """Return the first test that fails; None if all hold. Raises TrialError."""
        seen, log = self.place / ".witness", self.place / ".log"
        seen.write_text("")
        code = runner.run(self.place, files, seen, log, _LONGEST_S)
        if code == 0:
            return None
        if code is None:
            raise TrialError(f"no end after {_LONGEST_S} s")
        failures = [json.loads(line) for line in seen.read_text().splitlines()]
        for each in failures:
            if each["phase"] == "call" and not each["error"].startswith(_BROKEN):
                return Failure(each["test"], each["error"])
        said = " ".join(log.read_text()[-300:].split())
        raise TrialError(f"no test failed by itself: {failures[:1] or said}")

    def violation(self, *options: str) -> Failure | None:
        """Return what the explorer finds; None if nothing. Raises TrialError."""
        if not (self.place / _EXPLORER).is_file():
            return None
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.explore", *options],
                cwd=self.place,
                env={**os.environ, "PYTHONPATH": ""},
                capture_output=True,
                text=True,
                timeout=_LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TrialError(f"no end of the explorer after {_LONGEST_S} s") from None
        if done.returncode == 0:
            return None
        found = _VIOLATION.search(done.stdout)
        if found is None or found[1].startswith(_FUNCTION_BROKE):
            said = found[1] if found else " ".join((done.stdout + done.stderr)[-300:].split())
            raise TrialError(f"the explorer found no violation, but: {said}")
        return Failure(f"{EXPLORE}{found[2]}", found[1])


def _write(path: Path, text: str) -> None:
    """Write a source, and forget what was compiled of it within the same second."""
    path.write_text(text)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()

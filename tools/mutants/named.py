"""The guards that a person names: what to take away, as exact lines of the source.

    == relayhub/core.py                    the file that the mutants after it change
    @ late-call: what goes wrong without   the mutant core.late-call
    ! test_core_line                       the test files to try first, if not the file's own
     a line that stays
    -a line that goes
    +a line that comes

The lines that stay and go must stand in the source exactly once, one after the other: a mutant
that has gone stale is an error that names it, and is never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from tools.mutants.patch import Edit, Mutant, MutantError

GUARDS: Final = Path(__file__).parent / "guards"
_HEAD: Final = re.compile(r"([a-z0-9-]+): (.+)")


@dataclass
class Named:
    """One entry of a file of guards, as it stands there."""

    name: str
    path: str
    why: str
    first: tuple[str, ...] = ()
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def entries(text: str) -> list[Named]:
    """Return the entries of a file of guards. Raises MutantError for a line that is none."""
    path, found = "", []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("== "):
            path = line[3:].strip()
        elif line.startswith("@ "):
            found.append(_entry(path, line[2:].strip(), number))
        elif line and not line.startswith("#") and not _takes(found, line[0], line[1:]):
            raise MutantError(f"line {number} of the guards is none of theirs: {line!r}")
    return found


def _takes(found: list[Named], mark: str, rest: str) -> bool:
    """Give the last entry one more line; tell whether it is of a kind that an entry has."""
    if not found:
        return False
    entry = found[-1]
    match mark:
        case " ":
            entry.old.append(rest)
            entry.new.append(rest)
        case "-":
            entry.old.append(rest)
        case "+":
            entry.new.append(rest)
        case "!":
            entry.first = tuple(rest.split())
        case _:
            return False
    return True


def located(entry: Named, source: str) -> Mutant:
    """Return the mutant at the one place that its lines have. Raises MutantError."""
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (entry.old, entry.new))
    found = [start for start in _line_starts(source) if old and source.startswith(old, start)]
    if len(found) != 1:
        times = f"{len(found)} times" if found else "not at all"
        raise MutantError(f"{entry.name}: its lines stand in {entry.path} {times}, and not once")
    edit = Edit(found[0], found[0] + len(old), new)
    return Mutant(entry.name, entry.path, entry.why, (edit,), entry.first)


def read(root: Path) -> list[Mutant]:
    """Return every named mutant. Raises MutantError, which lists all that are stale."""
    found, faults = [], []
    for path in sorted(GUARDS.glob("*.txt")):
        for entry in entries(path.read_text()):
            source = root / entry.path
            try:
                found.append(located(entry, source.read_text() if source.is_file() else ""))
            except MutantError as error:
                faults.append(str(error))
    if faults:
        raise MutantError("\n".join(faults))
    return found


def _entry(path: str, head: str, number: int) -> Named:
    parts = _HEAD.fullmatch(head)
    if parts is None or not path:
        raise MutantError(f"line {number} of the guards names no mutant: {head!r}")
    return Named(f"{module(path)}.{parts[1]}", path, parts[2])


def module(path: str) -> str:
    """Return the name of a module; a handler's is its folder's."""
    found = PurePosixPath(path)
    return found.parent.name if found.stem == "handler" else found.stem


def _line_starts(source: str) -> Iterator[int]:
    yield 0
    yield from (each.end() for each in re.finditer("\n", source))

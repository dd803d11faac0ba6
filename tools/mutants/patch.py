"""A mutant: one guard of one file taken away or weakened, and the text that this makes. Pure.

The rule that it protects: what is tried is what was meant. An edit lies at a place that was found
in this very source, and what it makes must still be Python, or an error names the mutant.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


class MutantError(Exception):
    """A mutant that does not fit the source any more; the message names it and says why."""


@dataclass(frozen=True)
class Edit:
    """Other text in place of what stands from `start` to `end`, in characters."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Mutant:
    """One guard less; `first` names the test files that most likely miss it."""

    name: str
    path: str  # From the repository's root, with slashes.
    why: str
    edits: tuple[Edit, ...]
    first: tuple[str, ...] = ()


def mutated(mutant: Mutant, source: str) -> str:
    """Return the source without the guard. Raises MutantError."""
    text = source
    for edit in sorted(mutant.edits, key=lambda each: each.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    if text == source:
        raise MutantError(f"{mutant.name}: it changes nothing in {mutant.path}")
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise MutantError(f"{mutant.name}: {mutant.path} is no Python then: {error}") from None
    return text

"""What a run of the fuzz has seen: how many cases, what was answered, and each finding once.

Nothing is raised while it runs: a hub that remembers cannot be asked the same again, so a case
that failed would not fail when Hypothesis tries it once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

EXAMPLE_LENGTH_MAX: Final = 2_000


@dataclass
class Tally:
    """Counts cases and what was answered, and keeps the first example of every finding."""

    cases: int = 0
    told: Counter[str] = field(default_factory=Counter)
    findings: dict[str, str] = field(default_factory=dict)

    def saw(self, told: str) -> None:
        """Count what came of a case, or of a part of one."""
        self.told[told] += 1

    def found(self, what: str, example: object) -> None:
        """Keep a finding, with the first case that shows it."""
        self.findings.setdefault(what, str(example)[:EXAMPLE_LENGTH_MAX])

    def found_all(self, faults: Iterable[str], example: object) -> None:
        """Keep each of the findings."""
        for fault in faults:
            self.found(fault, example)

    def report(self) -> str:
        """Return the findings with their examples, one after the other."""
        return "\n\n".join(f"{what}\n  {example}" for what, example in self.findings.items())

"""Prints one closing line over pytest's reports, and judges them.

A run in which nothing ran, or in which a test was skipped that need not be, is no proof: it fails.
It may import the standard library only.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Reasons for which a test may be skipped: it needs what a platform does not have. They are matched
# from the start; anything else that is skipped fails the run.
PLATFORM_REASONS: Final = ("needs Linux", "needs /proc", "needs TCP_USER_TIMEOUT")


@dataclass(frozen=True)
class Counts:
    """What became of the tests; `unexcused` names those skipped for no listed reason."""

    passed: int
    failed: int
    skipped: int
    unexcused: tuple[str, ...]

    def line(self) -> str:
        """Return the closing line."""
        return f"tests: {self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def good(self) -> bool:
        """Say whether the run proves something."""
        return self.passed > 0 and self.failed == 0 and not self.unexcused


def count(cases: Iterable[ET.Element]) -> Counts:
    """Return the counts over test cases; an error counts as a failure."""
    passed = failed = skipped = 0
    unexcused: list[str] = []
    for case in cases:
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is None:
            passed += 1
        else:
            skipped += 1
            reason = _reason(skip)
            if not reason.startswith(PLATFORM_REASONS):
                unexcused.append(f"{case.get('classname')}::{case.get('name')}: {reason}")
    return Counts(passed, failed, skipped, tuple(unexcused))


def _reason(skip: ET.Element) -> str:
    return re.sub(r"^Skipped: ", "", skip.get("message", ""))


def main(paths: Iterable[str]) -> int:
    """Print the closing line over the reports; return 0 only if they prove something."""
    cases: list[ET.Element] = []
    complete = True
    for path in paths:
        if not Path(path).is_file():
            print(f"{path}: no report, so those tests did not run")
            complete = False
            continue
        found = list(ET.parse(path).iter("testcase"))  # noqa: S314 - our own test runner wrote it.
        if not found:
            print(f"{path}: no tests ran")
            complete = False
        cases += found
    counts = count(cases)
    for name in counts.unexcused:
        print(f"skipped without need: {name}")
    print(counts.line())
    return 0 if complete and counts.good() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

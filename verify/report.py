"""What is shown at the end: each scenario, what the core saw of it, and why it failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from verify.run import Outcome
from verify.scenario import CASES

HEADS = ("", "scenario", "what happens", "executed", "what was not right")
_ACTS_SHOWN = 3


def rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Return the table's lines under HEADS."""
    return [
        (
            "pass" if each.passed else "FAIL",
            each.scenario.id,
            each.scenario.name,
            counted(each.executed),
            each.reason or "",
        )
        for each in outcomes
    ]


def counted(executed: Iterable[int]) -> str:
    """Return how often the core executed each GUID, in a few characters."""
    groups = [(count, len(list(same))) for count, same in groupby(sorted(executed, reverse=True))]
    if sum(size for _, size in groups) <= _ACTS_SHOWN:
        return " ".join(" ".join([str(count)] * size) for count, size in groups)
    return ", ".join(f"{size} x {count}" for count, size in groups)


def passed(outcomes: Iterable[Outcome]) -> int:
    """Return how many passed."""
    return sum(each.passed for each in outcomes)


def doubled(outcomes: Iterable[Outcome]) -> int:
    """Return how many GUIDs the core executed more than once."""
    return sum(count > 1 for each in outcomes for count in each.executed)


def last_line(outcomes: Sequence[Outcome]) -> str:
    """Return the verdict."""
    return f"verify: {passed(outcomes)} of {len(outcomes)} passed"


def document(
    outcomes: Sequence[Outcome], relay: str, left_out: Mapping[str, int]
) -> dict[str, Any]:
    """Return all of it as one JSON document."""
    return {
        "relay": relay,
        "passed": passed(outcomes),
        "played": len(outcomes),
        "left_out": dict(left_out),
        "doubled": doubled(outcomes),
        "scenarios": [_scenario(each) for each in outcomes],
    }


def _scenario(outcome: Outcome) -> dict[str, Any]:
    scenario = outcome.scenario
    return {
        "id": scenario.id,
        "group": scenario.group,
        "name": scenario.name,
        "expects": scenario.expects,
        "case": scenario.case,
        "seen_at": CASES[scenario.case] if scenario.case else None,
        "passed": outcome.passed,
        "executed": list(outcome.executed),
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 2),
    }

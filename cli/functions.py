"""Invokes a function of the stack and gives its report, again until the report says complete."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cli.command import Here
from cli.exits import CommandError
from cli.stack import Output

Report = Mapping[str, Any]

# A day of the longest function's runs: a loop that gets nowhere near its end, ends.
RUNS_MAX: Final = 100
_TIMED_OUT: Final = "Task timed out"


class FunctionError(CommandError):
    """The function ran and failed; `said` is its own message."""

    def __init__(self, function: str, said: str) -> None:
        self.said = said
        what = "reached its time limit" if _TIMED_OUT in said else f"failed ({said})"
        super().__init__(
            f"the function {function} {what}. Every write was conditional, so it is safe to run it"
            f" again; its log says more: aws logs tail /aws/lambda/{function}"
        )


@dataclass(frozen=True)
class Runs:
    """The reports of the runs that one command took, in their order; at least one."""

    reports: tuple[Report, ...]

    @property
    def complete(self) -> bool:
        """Whether the last run left nothing."""
        return bool(self.reports[-1].get("complete", True))

    @property
    def held(self) -> bool:
        """Whether the last run did nothing, since a person holds the job."""
        return bool(self.reports[-1].get("held", False))

    def summary(self) -> dict[str, Any]:
        """Return what a JSON document says of the runs themselves."""
        return {"complete": self.complete, "runs": len(self.reports)}

    def first(self, name: str) -> int:
        """Return a number as the first run saw it."""
        return int(self.reports[0].get(name, 0))

    def total(self, name: str) -> int:
        """Return a number, summed over the runs."""
        return sum(int(each.get(name, 0)) for each in self.reports)

    def totals(self, name: str) -> Counter[str]:
        """Return counts by name, summed over the runs."""
        return sum((Counter(each.get(name, {})) for each in self.reports), Counter[str]())

    def largest(self, name: str) -> dict[str, int]:
        """Return the largest of the numbers of each name."""
        found: dict[str, int] = {}
        for report in self.reports:
            for key, value in report.get(name, {}).items():
                found[key] = max(int(value), found.get(key, 0))
        return found


def invoke(here: Here, output: Output, event: Mapping[str, Any]) -> Report:
    """Invoke the function once, wait, and return its report. Raises CommandError."""
    name = here.stack.name(output)
    answer = here.stack.client("lambda").invoke(
        FunctionName=name, InvocationType="RequestResponse", Payload=json.dumps(event).encode()
    )
    text = answer["Payload"].read().decode("utf-8", "replace")
    try:
        result = json.loads(text or "null")
    except ValueError:
        result = None
    if answer.get("FunctionError"):
        raise FunctionError(name, _said(result))
    if not isinstance(result, dict):
        raise CommandError(
            f"the function {name} gave no report: it is none of relayhub's, or of another version"
        )
    return result


def invoke_until_complete(
    here: Here,
    output: Output,
    event: Mapping[str, Any],
    *,
    doing: str,
    moved: Callable[[Report], bool],
) -> Runs:
    """Invoke the function until nothing is left, or a run moved nothing. Raises CommandError."""
    reports: list[Report] = []
    with here.screen.working(doing) as tell:
        while len(reports) < RUNS_MAX:
            reports.append(invoke(here, output, event))
            if reports[-1].get("complete", True) or not moved(reports[-1]):
                break
            tell(f"{doing}: run {len(reports) + 1}")
    return Runs(tuple(reports))


def plural(count: int, noun: str) -> str:
    """Return the count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _said(result: Any) -> str:
    if not isinstance(result, dict):
        return "it gave no reason"
    said = result.get("errorMessage") or result.get("errorType") or ""
    return " ".join(str(said).split()) or "it gave no reason"

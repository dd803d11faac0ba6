"""`python -m verify.compare A.json B.json`: runs of several relays side by side, as Markdown."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from verify.report import counted

Run = Mapping[str, Any]


def main(
    runs: Annotated[list[Path], typer.Argument(help="What `relayhub verify --json` printed.")],
    *,
    short: Annotated[bool, typer.Option("--short", help="One line for each group.")] = False,
) -> None:
    """Print what each relay did: whether it passed, and what the core executed."""
    documents = [json.loads(each.read_text(encoding="utf-8")) for each in runs]
    lines = by_group(documents) if short else by_scenario(documents)
    sys.stdout.write("\n".join(lines) + "\n")


def by_scenario(runs: Sequence[Run]) -> list[str]:
    """Return a line for each scenario; one that a relay was not put to stays empty."""
    names = {each["id"]: each["name"] for run in runs for each in run["scenarios"]}
    by_id = [{each["id"]: each for each in run["scenarios"]} for run in runs]
    body = [
        [f"`{id_}`: {name}", *(_cell(known.get(id_)) for known in by_id)]
        for id_, name in names.items()
    ]
    return _table("scenario", body, runs)


def by_group(runs: Sequence[Run]) -> list[str]:
    """Return a line for each group: how many scenarios passed, how many GUIDs were doubled."""
    groups = dict.fromkeys(each["group"] for run in runs for each in run["scenarios"])
    body = [[group, *(_sum(run, group) for run in runs)] for group in groups]
    return _table("scenarios", body, runs)


def _table(head: str, body: list[list[str]], runs: Sequence[Run]) -> list[str]:
    heads = [head, *(str(run["relay"]) for run in runs)]
    sums = ["**all**", *(f"**{run['passed']} of {run['played']}**" for run in runs)]
    doubles = ["**GUIDs executed more than once**", *(f"**{run['doubled']}**" for run in runs)]
    rule = ["---"] * len(heads)
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *body, sums, doubles)]


def _sum(run: Run, group: str) -> str:
    ours = [each for each in run["scenarios"] if each["group"] == group]
    doubled = sum(count > 1 for each in ours for count in each["executed"])
    said = f"{sum(each['passed'] for each in ours)} of {len(ours)}"
    return f"{said}; {doubled} doubled" if doubled else said


def _cell(scenario: Run | None) -> str:
    if scenario is None:
        return ""
    word = "pass" if scenario["passed"] else "**fail**"
    return f"{word}, executed {counted(scenario['executed'])}"


if __name__ == "__main__":
    typer.run(main)

"""All scenarios, in the order in which they are played; `python -m verify.catalogue` lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from verify.scenario import CASES, Need, Scenario
from verify.scenarios import (
    asking,
    asynchronous,
    cancels,
    doubts,
    duplicates,
    kills,
    obedient,
    refusals,
    replays,
    unsent,
)

# Those that wait for the relay's maintenance come first: they wait while the rest is played.
GROUPS: Final[Mapping[str, tuple[Scenario, ...]]] = {
    "the core's answer is lost or worthless": doubts.SCENARIOS,
    "nothing was sent": unsent.SCENARIOS,
    "cancels": cancels.SCENARIOS,
    "accepted for later": asynchronous.SCENARIOS,
    "a channel that obeys": obedient.SCENARIOS,
    "the same request, or another, under a GUID": duplicates.SCENARIOS,
    "answers that are hard to keep": replays.SCENARIOS,
    "the status": asking.SCENARIOS,
    "malformed requests": refusals.SCENARIOS,
    "processes killed, replies lost": kills.SCENARIOS,
}
ALL: Final = tuple(
    replace(each, group=name) for name, scenarios in GROUPS.items() for each in scenarios
)


def chosen(only: Sequence[str], *, has_second: bool, has_processes: bool) -> tuple[Scenario, ...]:
    """Return the scenarios that can be played, or those of them that are named."""
    possible = {
        Need.NOTHING: True,
        Need.SECOND: has_second,
        Need.PROCESSES: has_processes,
    }
    return tuple(each for each in ALL if possible[each.need] and (not only or each.id in only))


def unknown(only: Iterable[str]) -> list[str]:
    """Return the names that no scenario has."""
    known = {each.id for each in ALL}
    return [name for name in only if name not in known]


def left_out(played: Iterable[Scenario]) -> Counter[Need]:
    """Return how many are not played, by what they need."""
    ids = {each.id for each in played}
    return Counter(each.need for each in ALL if each.id not in ids)


def markdown() -> str:
    """Return the catalogue as the docs have it."""
    return "\n\n".join(
        f"### {name[0].upper()}{name[1:]}\n\n{_table(each)}" for name, each in GROUPS.items()
    )


def _table(scenarios: Iterable[Scenario]) -> str:
    head = ("| scenario | what happens | what is right | seen at |", "| --- | --- | --- | --- |")
    rows = (
        f"| `{each.id}` | {each.name} | {each.expects} | {CASES[each.case] if each.case else ''} |"
        for each in scenarios
    )
    return "\n".join([*head, *rows])


if __name__ == "__main__":
    print(markdown())  # noqa: T201 - it is what this command is for

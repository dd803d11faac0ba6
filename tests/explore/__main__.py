"""The explorer's command line: `python -m tests.explore`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Final

import tests.environment  # noqa: F401 - before the hub's modules, which read it
from tests.explore import driver, registry

_SAMPLE: Final = 150
_STORM_S: Final = 180.0
_SHORT_MINUTES: Final = 3.0
_SHORT_STORM_S: Final = 20.0


def main() -> int:
    """Run what the arguments ask for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=driver.__doc__)
    parser.add_argument("--seed", help="replay one schedule and print its timeline")
    parser.add_argument("--plant", choices=("min_age", "min_age-alone"), help="a bound too small")
    parser.add_argument("--short", action="store_true", help="the small set-ups, few storms")
    parser.add_argument("--setup", action="append", help="only this set-up; may be repeated")
    parser.add_argument("--minutes", type=float, default=27.0, help="the longest run (27)")
    parser.add_argument("--schedules", type=int, default=1_000_000, help="how many are wanted")
    asked = parser.parse_args()
    try:
        if asked.seed:
            return driver.replay(_say, asked.seed)
        return driver.explore(_say, _plan(asked))
    except (KeyError, ValueError) as error:
        parser.error(f"no such set-up or seed: {error}")


def _plan(asked: argparse.Namespace) -> driver.Plan:
    plan = driver.Plan(
        sampled=registry.BOUNDED,
        bounded=registry.BOUNDED,
        storms=registry.STORMS,
        sample=_SAMPLE,
        minutes=asked.minutes,
        storm_s=_STORM_S,
        wanted=asked.schedules,
    )
    if asked.short:
        minutes = min(asked.minutes, _SHORT_MINUTES)
        short = replace(plan, bounded=registry.SHORT, minutes=minutes, storm_s=_SHORT_STORM_S)
        return replace(short, wanted=0)
    names = [f"plant-{asked.plant}"] if asked.plant else asked.setup
    if names:
        chosen = tuple(map(registry.find, names))
        storms = tuple(each for each in chosen if each in registry.STORMS)
        bounded = tuple(each for each in chosen if each not in registry.STORMS)
        wanted = asked.schedules if storms else 0
        return replace(plan, sampled=(), bounded=bounded, storms=storms, storm_s=0, wanted=wanted)
    return plan


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

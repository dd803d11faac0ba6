"""Takes each guard away in turn, and demands that a check misses it.

    python -m tools.mutants [--list] [--only PATTERN]... [--remember]

It stands in tools and not in tests: it checks the checks, runs them as programs in copies of the
repository, and imports nothing of the hub or of its tests.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tools.mutants.catalogue import mutants, remember
from tools.mutants.judge import Judge, Verdict
from tools.mutants.patch import Mutant, MutantError
from tools.mutants.trial import Copy, TrialError

ROOT: Final = Path(__file__).parents[2]
_WORKERS: Final = os.cpu_count() or 1


def main(arguments: Sequence[str]) -> int:
    """Try the mutants and print the table; return 0 only if all are killed."""
    asked = _parsed(arguments)
    try:
        if asked.list:
            for each in _chosen(ROOT, asked.only):
                print(f"{each.name:<44} {each.why}")
            return 0
        with _copies() as copies:
            # They are found in the copy that they are tried in: the source may go on changing.
            chosen = _chosen(copies[0].place, asked.only)
            verdicts = _verdicts(copies, chosen, is_whole=not asked.only)
    except (MutantError, TrialError) as error:
        print(error)
        return 1
    if asked.remember:
        remember(ROOT, {each.mutant.name: each.by.check for each in verdicts if each.by})
    return _told(verdicts)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description="Takes each guard away in turn.")
    parser.add_argument("--list", action="store_true", help="name the mutants and try none")
    parser.add_argument("--only", action="append", default=[], help="a name, or a pattern of them")
    parser.add_argument("--remember", action="store_true", help="keep which check killed which")
    return parser.parse_args(arguments)


def _chosen(root: Path, patterns: Sequence[str]) -> list[Mutant]:
    found = mutants(root)
    return [
        each
        for each in found
        if not patterns or any(fnmatch(each.name, pattern) for pattern in patterns)
    ]


@contextmanager
def _copies() -> Iterator[list[Copy]]:
    """Give one copy of the repository to each worker, all of one moment."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        first = Copy.of_repository(ROOT, Path(place) / "1")
        yield [first, *(first.again(Path(place) / str(n)) for n in range(2, _WORKERS + 1))]


def _verdicts(copies: Sequence[Copy], chosen: Sequence[Mutant], *, is_whole: bool) -> list[Verdict]:
    """Try them as the copies come free. Raises TrialError if the checks fail without a mutant."""
    judge = Judge(copies)
    if is_whole:
        judge.prove_all()
    verdicts = []
    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            for done in as_completed([pool.submit(judge.judge, each) for each in chosen]):
                verdicts.append(done.result())
                print(f"{len(verdicts):>4} {verdicts[-1].line()}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    return verdicts


def _told(verdicts: Sequence[Verdict]) -> int:
    """Print the whole table, those that live last, and the closing line."""
    print()
    for verdict in sorted(verdicts, key=lambda each: (each.rank, each.mutant.name)):
        print(verdict.line())
    counted = [each for each in verdicts if each.counts]
    killed = sum(each.by is not None for each in counted)
    print(f"mutants: {killed} of {len(counted)} killed")
    return 0 if counted and killed == len(counted) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Takes each guard away in turn, and demands that a check misses it.

It stands in tools and not in tests: it checks the checks, runs them as programs in copies of the
repository, and imports nothing of the hub or of its tests.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Final

import typer

from tools.mutants.catalogue import mutants, remember
from tools.mutants.judge import Judge, Verdict
from tools.mutants.patch import Mutant, MutantError
from tools.mutants.trial import Copy, TrialError

ROOT: Final = Path(__file__).parents[2]
_WORKERS: Final = os.cpu_count() or 1

app: Final = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    only: Annotated[list[str] | None, typer.Option(help="A name, or a pattern of names.")] = None,
    names: Annotated[bool, typer.Option("--list", help="Name the mutants and try none.")] = False,
    keep: Annotated[bool, typer.Option("--remember", help="Keep which check kills which.")] = False,
) -> None:
    """Take each guard away in turn; a check that misses none of them fails the run."""
    try:
        if names:
            for each in _chosen(ROOT, only or ()):
                print(f"{each.name:<44} {each.why}")
            return
        with _copies() as copies:
            # They are found in the copy that they are tried in: the source may go on changing.
            chosen = _chosen(copies[0].place, only or ())
            verdicts = _verdicts(copies, chosen, is_whole=not only)
    except (MutantError, TrialError) as error:
        print(error)
        raise typer.Exit(1) from None
    if keep:
        remember(ROOT, {each.mutant.name: each.by.check for each in verdicts if each.by})
    raise typer.Exit(_told(verdicts))


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
    """Print the whole table, those that live last, and the closing line; return the exit code."""
    print()
    for verdict in sorted(verdicts, key=lambda each: (each.rank, each.mutant.name)):
        print(verdict.line())
    counted = [each for each in verdicts if each.counts]
    killed = sum(each.by is not None for each in counted)
    print(f"mutants: {killed} of {len(counted)} killed")
    return 0 if counted and killed == len(counted) else 1


if __name__ == "__main__":
    app(prog_name="mutants")

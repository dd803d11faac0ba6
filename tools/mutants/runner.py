"""Runs pytest in a copy of the repository, in a process of its own that starts with libraries.

They are loaded once, in the process that all the others are forked from; the hub and its tests are
read anew from the copy each time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.mutants import witness

_ROOT: Final = Path(__file__).parents[2]
_LIBRARIES: Final = [
    *("pytest", "hypothesis", "boto3", "botocore.loaders", "aws_lambda_powertools"),
    *("moto", "moto.dynamodb.responses", "moto.sqs.responses", "moto.s3.responses"),
]
_OPTIONS: Final = ("-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly")
# The libraries are loaded before pytest could rewrite them, which they do not need.
_LOADED: Final = ("-W", "ignore::pytest.PytestAssertRewriteWarning")

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(_LIBRARIES)


def run(place: Path, files: Sequence[str], seen: Path, log: Path, longest_s: float) -> int | None:
    """Return pytest's exit code; None if it did not end in time.

    What failed stands in the one file afterwards, what pytest said in the other.
    """
    process = _CONTEXT.Process(target=_run, args=(place, (*_OPTIONS, *_LOADED, *files), seen, log))
    process.start()
    process.join(longest_s)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    return process.exitcode


def _run(place: Path, arguments: Sequence[str], seen: Path, log: Path) -> None:
    """Be that process: nothing of this repository may stay that was loaded from elsewhere."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "tools"]:
        del sys.modules[name]
    os.chdir(place)
    os.environ[witness.PLACE] = str(seen)
    sys.path[:] = [str(place), *(each for each in sys.path if each and Path(each) != _ROOT)]
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import pytest  # noqa: PLC0415 - the parent has no use for it

    sys.exit(pytest.main([*arguments], plugins=[witness]))

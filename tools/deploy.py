"""Deploys what `make build` built, by the SAM CLI, with the answers of before and a new release.

SAM takes a file's parameters or the command line's, never both; and the release must be another one
each time, or an alias would keep the settings of its version. So both are put together here.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
CONFIG: Final = ROOT / "samconfig.toml"
SAM: Final = ROOT / ".venv-sam" / "bin" / "python"
STACK: Final = "relayhub"


def kept_answers(config: Path, environment: str) -> dict[str, str]:
    """Return the parameters that the file holds for a stack, as a guided deploy wrote them."""
    written: Mapping[str, Any] = tomllib.loads(config.read_text())
    for name in (environment, "deploy", "parameters"):
        written = written.get(name, {})
    found = written.get("parameter_overrides", "")
    pairs = shlex.split(found) if isinstance(found, str) else found
    return dict(each.split("=", 1) for each in pairs)


def command(stack: str, answers: Mapping[str, str], release: str, *, asks: bool) -> list[str]:
    """Return what is to be run: with questions, or with the answers as they are."""
    parameters = {**answers, "Release": release}
    how = ["--guided"] if asks else ["--no-confirm-changeset", "--no-fail-on-empty-changeset"]
    return [
        *(str(SAM), "-m", "samcli", "deploy", "--stack-name", stack),
        *("--config-env", environment_of(stack), "--capabilities", "CAPABILITY_IAM"),
        *("--resolve-s3", "--s3-prefix", stack, *how),
        *("--parameter-overrides", *(_pair(*each) for each in parameters.items())),
    ]


def environment_of(stack: str) -> str:
    """Return under which name the file holds the stack's answers."""
    return "default" if stack == STACK else stack


def _pair(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'ParameterKey={name},ParameterValue="{escaped}"'


def main() -> int:
    """Deploy; return SAM's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default=STACK)
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    chosen = parser.parse_args()
    answers = kept_answers(CONFIG, environment_of(chosen.stack))
    release = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    asked = command(chosen.stack, answers, release, asks=not chosen.yes)
    return subprocess.run(asked, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""The command line against the local stack, as `make up` says to start it.

It runs as the operator, who has the permissions that docs/cli.md lists: others are not needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.emulator import REGION
from local.stack import Stack
from local.stack_start import ROOT

pytestmark = pytest.mark.e2e

BODY = b'{"from":"A001","to":"A002","amount":100,"currency":"JPY"}'
# The gate lets one probe of a core that was away through per 15 s, and a hint may just miss it.
_SETTLED_S = 90


class CommandLine:
    """`bin/relayhub` from another folder, with the stack's address and credentials."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._where = ("--region", REGION, "--endpoint-url", stack.emulator.endpoint)
        self._folder = folder
        key = stack.operator.credentials.as_environment()
        self._environ = {"PATH": os.defpath, "HOME": str(folder), **key}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command line."""
        return subprocess.run(
            [ROOT / "bin" / "relayhub", *words, *self._where],
            cwd=self._folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *words: str, code: int = 0) -> Any:
        """Run one with --json and return its document; `code` is the exit code expected."""
        result = self.run(*words, "--json")
        assert result.returncode == code, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def relayhub(stack: Stack, tmp_path: Path) -> CommandLine:
    """Return the command line of a person who stands in another folder."""
    return CommandLine(stack, tmp_path)


def test_resolve_asks_what_is_due(relayhub: CommandLine) -> None:
    """A dry run counts, a run leaves nothing that is due."""
    assert relayhub.json("resolve", "--dry-run")["asked"] == 0
    assert relayhub.json("resolve")["complete"] is True


def test_resolve_refuses_an_age_below_its_bound(relayhub: CommandLine) -> None:
    """The deployed function itself says which age would do."""
    result = relayhub.run("resolve", "--min-age", "1")
    assert result.returncode == 2
    assert "MIN_AGE_S=1 is too small with CORE_LONGEST_S, CLOCK_SKEW_S: at least" in result.stderr
    assert result.stdout == ""


def test_purge_counts_what_it_keeps(stack: Stack, atm: Channel, relayhub: CommandLine) -> None:
    """A fresh stack has nothing past its time; every row is kept and counted."""
    assert atm.post("cli-kept", BODY).code == "0000"
    dry = relayhub.json("purge", "--dry-run")
    assert (dry["deleted"], dry["complete"]) == (0, True)
    assert dry["kept"]["DONE <1h"] >= 1
    assert relayhub.json("purge")["deleted"] == 0
    assert stack.ledger_row("cli-kept") is not None


def test_reprocess_tells_why_a_hint_would_do_nothing(atm: Channel, relayhub: CommandLine) -> None:
    """One row is done, one was never there."""
    assert atm.post("cli-done", BODY).code == "0000"
    document = relayhub.json("reprocess", "cli-done", "cli-absent", code=2)
    reasons = [each["reason"] for each in document["rows"]]
    assert reasons[0] == "it is DONE: it ended with 0000"
    assert reasons[1].startswith("the ledger has no row of it")


def test_a_row_that_was_not_sent_is_executed_once_after_its_hints(
    stack: Stack, core: CoreControl, atm: Channel, relayhub: CommandLine
) -> None:
    """The core was away; once it is back, hints bring the row to its end, by the function."""
    core.set_faults([{"kind": "refuse"}])
    assert atm.post("cli-hinted", BODY).code == "E902"
    core.clear()
    ends = time.monotonic() + _SETTLED_S
    while (row := stack.ledger_row("cli-hinted")) is None or row["state"] != "DONE":
        assert time.monotonic() < ends, f"the row is still {row}"
        assert relayhub.run("reprocess", "cli-hinted").returncode in {0, 2}
        time.sleep(2)
    assert len(core.journal("cli-hinted")) == 1


def test_the_sweep_runs_on_the_stack(relayhub: CommandLine) -> None:
    """Without GUIDs the reprocessor's function does it."""
    assert relayhub.json("reprocess")["complete"] is True


def test_another_stack_is_refused(relayhub: CommandLine) -> None:
    """There is none of that name."""
    result = relayhub.run("purge", "--stack", "another")
    assert result.returncode == 2
    assert "there is no stack another" in result.stderr

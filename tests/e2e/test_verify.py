"""`relayhub verify` on the local stack, from outside and signed, and on the relays beside it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.emulator import REGION
from local.stack import Stack
from local.stack_start import ROOT

pytestmark = pytest.mark.e2e

# One of each kind; `make verify` plays all of them.
OUTSIDE = (
    *("core-closes", "validity-over", "cancel-before", "async-accepted", "obedient-redone"),
    *("parallel-50", "during-progress", "other-channel", "replay-500kb", "replay-shift-jis"),
    *("status-other-channel", "bad-guids", "two-keys", "too-large", "old-guid"),
)
# Played on a relay that takes its record away when it raised, and takes it again when it is old.
POWERTOOLS = ("resend-after-done", "core-closes", "killed-before-writing", "claim-reply-lost")


def verify(folder: Path, *words: str, code: int, **environ: str) -> dict[str, Any]:
    """Run the command, expect the exit code, and return its document."""
    result = subprocess.run(
        [ROOT / "bin" / "relayhub", "verify", "--json", *words],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.stdout, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    failed = {each["id"]: each["reason"] for each in document["scenarios"] if each["reason"]}
    assert result.returncode == code, failed
    last = f"verify: {document['passed']} of {document['played']} passed"
    assert result.stderr.splitlines()[-1] == last
    return document


def profile(name: str, channel: Channel) -> str:
    """Return a channel's part of a file of AWS credentials."""
    key = channel.credentials
    lines = (f"aws_access_key_id = {key.key}", f"aws_secret_access_key = {key.secret}")
    return "\n".join([f"[{name}]", *lines, ""])


def only(names: tuple[str, ...]) -> list[str]:
    """Return the options that choose these scenarios."""
    return [word for name in names for word in ("--only", name)]


def test_the_deployed_hub_is_graded_from_outside(
    stack: Stack, core: CoreControl, tmp_path: Path
) -> None:
    """Two channels by their AWS profiles; the hub passes, and the core has no faults left."""
    keys = tmp_path / "credentials"
    keys.write_text(profile("default", stack.atm) + profile("app", stack.app))
    document = verify(
        *(tmp_path, "--url", stack.api_url, "--core", stack.control_url, "--sigv4"),
        *("--region", REGION, "--second-profile", "app", "--clients", "20", "--settle", "150"),
        *only(OUTSIDE),
        code=0,
        AWS_SHARED_CREDENTIALS_FILE=str(keys),
    )
    assert (document["passed"], document["doubled"]) == (len(OUTSIDE), 0)
    assert core.faults()["rules"] == []


def test_a_caller_whom_the_hub_refuses_is_told_to_sign(stack: Stack, tmp_path: Path) -> None:
    """Nothing is tried: each scenario would fail for the same reason."""
    where = ("--url", stack.api_url, "--core", stack.control_url)
    result = subprocess.run(
        [ROOT / "bin" / "relayhub", "verify", *where],
        cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "refuses this caller (403): sign by --sigv4" in result.stderr


def test_the_decorators_relay_executes_twice_what_it_cannot_know(tmp_path: Path) -> None:
    """An exception takes its record away, and so does the end of its time; a reply lost locks."""
    document = verify(
        *(tmp_path, "--local", "--relay", "powertools", "--settle", "30"),
        *only(POWERTOOLS),
        code=1,
    )
    found = {each["id"]: each for each in document["scenarios"]}
    assert found["resend-after-done"]["passed"]
    assert found["core-closes"]["executed"] == [2]
    assert found["killed-before-writing"]["executed"] == [2]
    assert found["claim-reply-lost"]["executed"] == [0]
    assert "(409) instead of 0000" in found["claim-reply-lost"]["reason"]

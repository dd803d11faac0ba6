"""The command line as a whole: what it may reach, what its help and its page say, how it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.exits import MEANINGS, Exit
from cli.screen import spoken
from cli.stack import Output
from tools import template

ROOT: Final = template.TEMPLATE.parent
PAGE: Final = ROOT / "docs" / "cli.md"
COMMANDS: Final = (
    *("show", "list", "stats", "find"),
    *("park", "hold", "release", "redrive", "close"),
    *("attest executed", "attest not-executed"),
    *("core close", "core open", "core status", "hold-job", "release-job"),
    *("proposals", "approve", "withdraw"),
    *("resolve", "reprocess", "purge", "redrive-messages"),
)
GROUPS: Final = ("attest", "core")
COMMON: Final = ("--stack", "--profile", "--region", "--endpoint-url", "--json")
ACT: Final = ("--reason", "--operator")
OWN: Final = {
    "show": ("--channel", "--body"),
    "list": ("--state", "--older-than", "--channel", "--limit"),
    "stats": ("--all", "--units-max"),
    "find": (
        *("--amount", "--currency", "--reference", "--channel", "--from", "--to"),
        *("--limit", "--units-max"),
    ),
    **dict.fromkeys(("park", "hold", "release"), (*ACT, "--channel")),
    "redrive": (
        *(*ACT, "--state", "--channel", "--older-than", "--limit"),
        *("--valid-for", "--rate", "--dry-run"),
    ),
    "close": (*ACT, "--channel", "--over-hold"),
    "attest executed": (*ACT, "--channel", "--answer", "--status", "--type", "--code"),
    "attest not-executed": (*ACT, "--channel", "--complete-through"),
    "core close": ACT,
    "core open": (*ACT, "--sweep", "--no-sweep"),
    "core status": (),
    **dict.fromkeys(("hold-job", "release-job", "approve", "withdraw"), ACT),
    "proposals": (),
    "resolve": ("--min-age", "--dry-run"),
    "reprocess": (),
    "purge": ("--dry-run",),
    "redrive-messages": ("--limit", "--rate", "--dry-run"),
}


def help_of(*words: str) -> str:
    """Return a help text, wide enough for its lines to stay whole."""
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "300", "NO_COLOR": "1"})
    assert result.exit_code == 0
    return result.stdout


def test_no_command_can_send_to_the_core() -> None:
    """Nothing that the command line loads can open a connection to the core."""
    code = "import sys, cli.app; print([each for each in sys.modules if each in sys.argv[1:]])"
    forbidden = [
        f"relayhub.{each}"
        for each in ("core", "wire", "credentials", "hub", "flows.attempt", "flows.relay")
    ]
    found = subprocess.run(
        [sys.executable, "-c", code, *forbidden],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[]\n"


def test_the_names_are_outputs_of_the_template() -> None:
    """What the command line looks for is what a deployed stack offers."""
    assert set(Output) <= set(template.load()["Outputs"])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_options_and_no_others(name: str) -> None:
    """None deletes earlier, sends, or asks no reason of an act; the rest all have."""
    words = {word for word in help_of(*name.split()).split() if word.startswith("--")}
    assert words == {*COMMON, *OWN[name], "--help"}


@pytest.mark.parametrize(
    "words", [(), *(tuple(name.split()) for name in (*GROUPS, *COMMANDS))], ids=" ".join
)
def test_every_help_says_what_the_exit_codes_mean(words: tuple[str, ...]) -> None:
    """A script's author need not look elsewhere."""
    text = help_of(*words)
    for code, meaning in MEANINGS.items():
        assert f"{code.value}: {meaning}" in text


def test_without_a_command_the_help_is_shown() -> None:
    """It names every command; the exit code is that of bad usage."""
    result = CliRunner().invoke(app, [])
    assert result.exit_code == Exit.REFUSED
    assert all(name.split()[0] in result.output for name in COMMANDS)


def test_the_page_has_every_command_option_exit_code_and_output() -> None:
    """docs/cli.md says what the program does."""
    text = PAGE.read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"relayhub {name}" in text
    for option in {*COMMON, *(each for options in OWN.values() for each in options)}:
        assert f"`{option}" in text
    for code, meaning in MEANINGS.items():
        assert f"| {code.value} | {meaning} |" in text
    for output in Output:
        assert f"`{output}`" in text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (3_601_000, "1 h 1 s"),
        (90_061_000, "1 d 1 h"),
    ],
    ids=str,
)
def test_a_time_is_told_in_two_units_at_most(ms: int, text: str) -> None:
    """People compare ages; they do not add up milliseconds."""
    assert spoken(ms) == text


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a tree with the program and an interpreter that only says how it was called."""
    root = tmp_path / "the tree"
    (root / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "bin" / "relayhub", root / "bin" / "relayhub")
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$PYTHONPATH"\nfor each; do echo "<$each>"; done\nexit 3\n')
    python.chmod(0o755)
    return root


def start(program: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Start the program from a folder."""
    return subprocess.run(
        [program, "purge", "--stack", "a b"],
        cwd=cwd,
        env={"PATH": os.defpath, "PYTHONPATH": "elsewhere"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("link", ["", "absolute", "relative"])
def test_the_program_starts_from_any_folder(installed: Path, tmp_path: Path, link: str) -> None:
    """By its path or through links; its words and its exit code are passed on as they are."""
    program = installed / "bin" / "relayhub"
    if link:
        (tmp_path / "links").mkdir()
        first, second = tmp_path / "links" / "one", tmp_path / "links" / "two"
        first.symlink_to(program if link == "absolute" else Path("../the tree/bin/relayhub"))
        second.symlink_to("one")
        program = second
    result = start(program, tmp_path)
    assert result.stderr == ""
    assert result.returncode == 3
    words = ["<-P>", "<-m>", "<cli>", "<purge>", "<--stack>", "<a b>"]
    assert result.stdout.splitlines() == [str(installed), *words]


def test_the_program_without_its_environment_says_what_to_do(
    installed: Path, tmp_path: Path
) -> None:
    """One sentence with the command, no shell's error."""
    (installed / ".venv" / "bin" / "python").unlink()
    result = start(installed / "bin" / "relayhub", tmp_path)
    assert result.returncode == 1
    assert f"run `make setup` in {installed}" in result.stderr


def test_a_file_of_our_name_in_the_folder_is_not_taken_for_ours(tmp_path: Path) -> None:
    """The interpreter looks in the tree, not where a person happens to stand."""
    (tmp_path / "cli.py").write_text("print('not ours')\n")
    result = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "--help"],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not ours" not in result.stdout
    assert "reprocess" in result.stdout

"""docs/verify.md and the help say what the grader does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from cli.app import app
from cli.verify import EXITS_HELP, LocalRelay
from verify.catalogue import markdown

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")


def help_text() -> str:
    """Return the command's help, wide enough for its lines to stay whole."""
    environ = {"COLUMNS": "300", "NO_COLOR": "1"}
    result = CliRunner().invoke(app, ["verify", "--help"], env=environ)
    assert result.exit_code == 0
    return result.stdout


def test_the_page_lists_every_scenario_as_it_is_now() -> None:
    """`python -m verify.catalogue` prints what must stand there."""
    part = re.search(r"<!-- scenarios: [^>]*-->\n\n(.*)\n\n<!-- /scenarios -->", PAGE, re.DOTALL)
    assert part is not None
    assert part[1] == markdown()


def test_the_page_has_every_option_of_the_command_and_no_other() -> None:
    """One line of the table each."""
    words = {word.strip(".,:") for word in help_text().split()}
    options = {word for word in words if word.startswith("--")} - {"--help"}
    assert set(re.findall(r"^\| `(--[a-z0-9-]+)", PAGE, re.MULTILINE)) == options


def test_the_help_says_what_the_exit_codes_mean() -> None:
    """They differ from those of the other commands."""
    text = help_text()
    for line in EXITS_HELP.splitlines()[2:]:
        assert line.removeprefix("* ") in text


def test_the_page_names_every_local_relay() -> None:
    """As --relay takes it."""
    assert f"[--relay {'|'.join(LocalRelay)}]" in PAGE


def test_the_grader_knows_nothing_of_the_hubs_own_package() -> None:
    """What it judges by cannot share a fault with what is judged."""
    sources = (ROOT / "verify").rglob("*.py")
    imports = re.compile(r"^\s*(?:from|import) relayhub\b", re.MULTILINE)
    assert [each.name for each in sources if imports.search(each.read_text("utf-8"))] == []

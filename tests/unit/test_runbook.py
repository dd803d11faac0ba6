"""The runbook has what every alarm of the template wants, and names nothing that is not there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from cli.app import app
from tests.unit.template_kit import PARAMETERS, TEMPLATE, of_type
from tests.unit.test_docs import anchors

ROOT: Final = Path(__file__).parents[2]
RUNBOOK: Final = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
SOURCE: Final = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("relayhub", "functions")
    for path in sorted((ROOT / folder).rglob("*.py"))
)
ALARMS: Final = of_type("AWS::CloudWatch::Alarm")
PARTS: Final = ("- **Means**: ", "- **Look**: ", "- **Do**: ", "- **Never** ")


def sections() -> dict[str, str]:
    """Return the text of each alarm's section, by the alarm; alarms may share one."""
    found: dict[str, str] = {}
    for part in re.split(r"^##+ ", RUNBOOK, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        for name in re.findall(r"\w+Alarm\b", heading):
            assert name not in found
            found[name] = text
    return found


def named(pattern: str) -> set[str]:
    """Return what stands in backticks and has this form."""
    return set(re.findall(rf"`({pattern})`", RUNBOOK))


def test_every_alarm_has_its_section_and_no_section_is_of_an_alarm_that_is_gone() -> None:
    """Whoever is called at night finds the alarm's name."""
    assert set(sections()) == set(ALARMS)


@pytest.mark.parametrize("alarm", ALARMS)
def test_a_section_says_what_to_look_at_and_do_and_what_never_to_do(alarm: str) -> None:
    """Each in its place, and once."""
    text = sections()[alarm]
    assert [text.count(part) for part in PARTS] == [1] * len(PARTS)
    assert sorted(map(text.index, PARTS)) == list(map(text.index, PARTS))


def test_every_parameter_output_metric_and_error_that_it_names_exists() -> None:
    """A name in camel case is one of the template's or of the code's."""
    there = {*PARAMETERS, *TEMPLATE["Outputs"]}
    unknown = {name for name in named(r"[A-Z][a-z]+(?:[A-Z][a-z]*)+") if name not in there}
    assert {name for name in unknown if not re.search(rf"\b{name}\b", SOURCE)} == set()


def test_every_metric_that_it_lists_is_written() -> None:
    """What stands in the table of metrics can be put on a dashboard."""
    table = RUNBOOK.partition("## Metrics without an alarm")[2]
    cells = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    metrics = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]
    assert len(metrics) > 10
    alarmed = {(each["MetricName"]) for each in ALARMS.values()}
    assert not alarmed & set(metrics)
    for name in metrics:
        kind, _, of = name.partition(".")
        is_counted_by = f'f"{kind}.' in SOURCE or f'("{kind}", ' in SOURCE
        assert f'"{name}"' in SOURCE or (is_counted_by and f'"{of}"' in SOURCE), name


def test_every_word_of_the_log_that_it_names_is_one_of_the_code() -> None:
    """Whoever searches the log for it finds lines."""
    words = named(r"[a-z]+(?:_[a-z]+)+")
    assert len(words) > 10
    assert {word for word in words if not re.search(rf"\b{word}\b", SOURCE)} == set()


def command_lines() -> list[str]:
    """Return each command line, without `bin/relayhub` and a comment behind it."""
    parts = RUNBOOK.split("```")
    fenced = re.findall(r"bin/relayhub ([^\n#]+)", "\n".join(parts[1::2]))
    prose = re.sub(r"\s+", " ", " ".join(parts[::2]))
    return sorted(
        {line.strip() for line in (*fenced, *re.findall(r"`bin/relayhub ([^`]+)`", prose))}
    )


@pytest.mark.parametrize("line", command_lines())
def test_a_command_that_it_names_exists_with_its_options(line: str) -> None:
    """Whoever pastes a command line runs it."""
    words = shlex.split(line)
    found: Any = get_command(app)
    while words and isinstance(found, TyperGroup):
        name, *words = words
        assert name in found.commands
        found = found.commands[name]
    options = {each for param in found.params for each in param.opts}
    assert {word for word in words if word.startswith("--")} <= options


def test_the_first_page_is_five_commands_of_which_none_acts_on_a_row() -> None:
    """Whoever is woken sees first, and then decides."""
    page = RUNBOOK.partition("## Which money moved")[2].partition("\n## ")[0]
    fence = page.split("```")[1]
    assert re.findall(r"bin/relayhub ([\w-]+)", fence) == [
        *("stats", "list", "show", "find", "resolve")
    ]


def test_every_alarm_says_where_its_section_is() -> None:
    """Whoever is woken by it need not search."""
    known = {f"(${{RunbookUrl}}#{anchor})" for anchor in anchors(ROOT / "docs/runbook.md")}
    assert PARAMETERS["RunbookUrl"]["Default"] == "docs/runbook.md"
    for name, alarm in ALARMS.items():
        link = alarm["AlarmDescription"]["Fn::Sub"].split()[-1]
        assert link in known, name
        assert name.lower() in link

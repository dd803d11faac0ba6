"""The docs say what the code does: generated parts are fresh, links lead somewhere, names exist."""

from __future__ import annotations

import re
import shutil
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from local.demo_story import STORY
from relayhub.row import HELD, PARKED, Row
from relayhub.settings import Settings, load
from relayhub.states import STEPS, State, Step
from tools import docs

ROOT: Final = docs.ROOT
PAGES: Final = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(f"docs/{each.name}" for each in ROOT.glob("docs/*")),
)
# Variables that libraries read, not our settings.
NOT_SETTINGS: Final = {
    "AWS_ROLE_SESSION_NAME",
    "NOT_FOUND",
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_SERVICE_NAME",
    "RES_OPTIONS",
    "SO_LINGER",
}


def text_of(page: str) -> str:
    """Return a page's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def copied(tmp_path: Path) -> Path:
    """Return a folder with copies of the pages that have generated parts, all of them fresh."""
    for page in docs.PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    for page, text in docs.stale_pages(tmp_path).items():
        (tmp_path / page).write_text(text, encoding="utf-8")
    return tmp_path


def spoilt(root: Path, page: str, old: str, new: str) -> None:
    """Put other text in place of what stands in a page."""
    text = (root / page).read_text(encoding="utf-8")
    assert old in text
    (root / page).write_text(text.replace(old, new), encoding="utf-8")


def run(*arguments: str) -> Result:
    """Run the command line."""
    return CliRunner().invoke(docs.app, arguments)


def test_no_page_is_stale() -> None:
    """Every generated part is what the code makes now; `make docs` mends it."""
    assert list(docs.stale_pages(ROOT)) == []


def test_the_check_fails_and_names_the_stale_page_alone(tmp_path: Path) -> None:
    """A page whose table says something else fails the check, which changes nothing."""
    root = copied(tmp_path)
    spoilt(root, "docs/settings.md", "One deadline over DNS", "Two deadlines over DNS")
    result = run("--check", "--root", str(root))
    assert (result.exit_code, result.stderr) == (1, "docs/settings.md is stale: run make docs\n")
    assert "Two deadlines" in (root / "docs/settings.md").read_text(encoding="utf-8")


def test_the_check_passes_what_the_rewrite_has_made(tmp_path: Path) -> None:
    """A rewrite mends a stale page and leaves prose alone; a second one finds nothing to do."""
    root = copied(tmp_path)
    fresh = (root / "README.md").read_text(encoding="utf-8")
    spoilt(root, "README.md", "| `E904` |", "| `E999` |")
    assert run("--root", str(root)).output == "README.md rewritten\n"
    assert (root / "README.md").read_text(encoding="utf-8") == fresh
    assert run("--root", str(root)).output == ""
    assert run("--check", "--root", str(root)).exit_code == 0


def test_a_page_without_its_part_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A marker that was lost fails instead of leaving the page without its table."""
    root = copied(tmp_path)
    spoilt(root, "docs/channel-guide.md", "<!-- /codes -->", "")
    result = run("--check", "--root", str(root))
    assert result.exit_code == 1
    assert result.stderr.startswith("docs/channel-guide.md must have one part between '<!-- codes:")


def test_backslashes_in_a_part_arrive_as_they_are() -> None:
    """What a part says is text, never a pattern's replacement."""
    page = "<!-- codes: x -->\n<!-- /codes -->"
    assert docs.with_part(page, "page", "codes", r"a\1b") == (
        "<!-- codes: x -->\n\na\\1b\n\n<!-- /codes -->"
    )


def drawn_steps() -> set[tuple[str, str, str]]:
    """Return (event, source, target) of everything that the diagram of the architecture shows."""
    (diagram,) = re.findall(
        r"```mermaid\nstateDiagram-v2\n(.*?)```", text_of("docs/architecture.md"), re.DOTALL
    )
    drawn = set()
    for line in diagram.splitlines():
        arrow, _, events = line.strip().partition(" : ")
        source, _, target = arrow.partition(" --> ")
        drawn |= {(event, source, target or source) for event in re.findall(r"\w+", events)}
    # A state's first text is its title; "br" is the line break of a label.
    return {each for each in drawn if each[0] not in {"br", *State}}


def as_drawn(step: Step) -> tuple[str, str, str]:
    """Return a step as the diagram would show it."""
    return step.event, step.source or "[*]", step.target or "[*]"


@pytest.mark.parametrize("step", STEPS, ids=lambda s: f"{s.event}-from-{s.source or 'no-row'}")
def test_every_step_of_the_table_stands_in_the_diagram(step: Step) -> None:
    """A reader of the diagram sees every legal step."""
    assert as_drawn(step) in drawn_steps()


def test_the_diagram_shows_no_step_that_is_not_legal() -> None:
    """A reader of the diagram sees nothing that the code would refuse."""
    assert drawn_steps() == {as_drawn(step) for step in STEPS}


def anchors(page: Path) -> set[str]:
    """Return the names by which GitHub knows a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: str) -> None:
    """Relative links are not dead, their anchors included."""
    links = re.findall(r"\]\(([^)\s]+)\)", text_of(page))
    dead = []
    for link in (each for each in links if "://" not in each):
        name, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / name) if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_make_target_that_the_pages_name_exists() -> None:
    """Whoever pastes `make something` from a page finds that target."""
    code = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
    named = {
        target
        for page in PAGES
        for block in code.findall(text_of(page))
        for target in re.findall(r"\bmake ([a-z]+)", block)
    }
    assert {"demo", "test", "up", "check", "docs"} <= named
    assert named - set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE)) == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_variable_that_a_page_names_is_a_setting(page: str) -> None:
    """A page names no variable that the hub does not read."""
    named = set(re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)[=`]", text_of(page)))
    assert named - NOT_SETTINGS - {each.name.upper() for each in fields(Settings)} == set()


def test_every_parameter_that_the_readme_names_is_in_the_template() -> None:
    """The table of parameters to look at before real traffic names existing ones."""
    deploy = text_of("README.md").partition("## Deploy")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]*)+)`", deploy)) - {"ApiInvokeArn", "ApiUrl"}
    template = text_of("template.yaml").partition("\nConditions:")[0]
    assert len(named) > 5
    assert [each for each in sorted(named) if f"\n  {each}:\n" not in template] == []


def test_the_row_that_the_architecture_describes_has_every_field() -> None:
    """The table of the row names each attribute, and no other."""
    section = text_of("docs/architecture.md").partition("## The row")[2].partition("\n## ")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert named - {"request_zip"} == {each.name for each in fields(Row)}


@pytest.mark.parametrize("group", [*(s for s in State if s is not State.DONE), PARKED, HELD])
def test_every_group_of_the_index_is_described(group: str) -> None:
    """A reader of the architecture finds who reads a group."""
    section = text_of("docs/architecture.md").partition("## The index")[2].partition("\n## ")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    assert sum(f"`{group}`" in cell for cell in cells) == 1


def test_the_demo_that_the_readme_shows_is_the_demo_of_now() -> None:
    """The last line that a newcomer compares with his own has the story's number of GUIDs."""
    assert f"\ndemo: ok, {len(STORY)} GUIDs, 0 executed twice\n```" in text_of("README.md")


@pytest.mark.parametrize(
    "each",
    [each for each in fields(Settings) if each.name.upper() not in docs.NEEDED],
    ids=lambda e: e.name,
)
def test_a_default_is_spelt_as_the_variable_would_be(each: Field[Any]) -> None:
    """Setting a variable to what the page calls its default changes nothing."""
    set_to_default = {**docs.NEEDED, each.name.upper(): docs.spelt(each)}
    assert load(set_to_default) == load(docs.NEEDED)


def test_a_relation_names_the_least_value_that_would_do() -> None:
    """The page's number is the one that a function names when it refuses to start."""
    line = next(each for each in docs.relation_table().splitlines() if "| `MIN_AGE_S` |" in each)
    assert line.split(" | ")[1:3] == ["`CORE_LONGEST_S`, `CLOCK_SKEW_S`", "65"]

"""Makes the generated parts of the docs from the tables that the code runs by.

`python -m tools.docs` rewrites them, `--check` names what is stale and fails. The rule that it
protects: the tables that channel developers and operators read are those that the hub obeys. A part
stands between two comments, `<!-- name: ... -->` and `<!-- /name -->`; the rest of a page is prose.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from relayhub.settings import DAY_S, RELATIONS, Relation, Settings, load
from relayhub.states import STEPS, TOLD, Code, State, Step, Told

ROOT: Final = Path(__file__).parent.parent

# What a status says beyond the table: bad input is E905 whichever of these names it best. E903's
# Retry-After is what is left of its holder's time, so the table of codes cannot hold a number.
MORE_STATUSES: Final[Mapping[str, tuple[int, ...]]] = {Code.E905: (403, 404, 405, 413)}
RETRY_AFTER_OF_ROW: Final = frozenset({Code.E903})

# What stands in for the settings that must be set.
NEEDED: Final[Mapping[str, str]] = dict.fromkeys(
    (each.name.upper() for each in fields(Settings) if each.default is MISSING),
    "http://core.example",
)

# Defaults that are not spelt as their value is.
SPELT: Final[Mapping[str, str]] = {"channel_names": "{}", "guid_time": "auto"}

_EVENTS_PER_LINE: Final = 2  # A wider label pushes the diagram's states apart.

app = typer.Typer(add_completion=False)


class DocsError(Exception):
    """A page lacks a part that is to be made, or has it twice."""


@app.command()
def main(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; name what is stale, and fail.")
    ] = False,
    root: Annotated[Path, typer.Option(help="The project's folder.")] = ROOT,
) -> None:
    """Rewrite the generated parts of the docs."""
    try:
        stale = stale_pages(root)
    except DocsError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from error
    for name, text in stale.items():
        if check:
            print(f"{name} is stale: run make docs", file=sys.stderr)
        else:
            (root / name).write_text(text, encoding="utf-8")
            print(f"{name} rewritten")
    if check and stale:
        raise typer.Exit(1)


def stale_pages(root: Path) -> dict[str, str]:
    """Return the new text of every page that differs from it; raises DocsError."""
    stale = {}
    for name, parts in PAGES.items():
        text = (root / name).read_text(encoding="utf-8")
        new = text
        for part in parts:
            new = with_part(new, name, part, PARTS[part]())
        if new != text:
            stale[name] = new
    return stale


def with_part(text: str, page: str, part: str, content: str) -> str:
    """Return the page with the part's content; raises DocsError."""
    pattern = re.compile(rf"(<!-- {part}: [^>\n]*-->\n).*?(<!-- /{part} -->)", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise DocsError(
            f"{page} must have one part between '<!-- {part}: ... -->' and '<!-- /{part} -->'"
        )
    return pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)


# --- CODES ---------------------------------------------------------------------------------------


def code_table() -> str:
    """Return the table of what each answer tells its channel, in order of precedence."""
    head = (
        *("code", "HTTP", "meaning", "executed", "same GUID again", "new GUID for the act"),
        "what it says",
    )
    return _table(head, (_code_cells(told) for told in TOLD))


def _code_cells(told: Told) -> tuple[str, ...]:
    return (
        _codes(told.label),
        http_cell(told),
        told.title,
        told.executed,
        told.resend,
        told.new_guid,
        told.detail,
    )


def http_cell(told: Told) -> str:
    """Return the statuses that the code comes with, and whether Retry-After comes too."""
    if told.status is None:
        return "the core's own"
    statuses = sorted({told.status, *MORE_STATUSES.get(told.label, ())})
    waits = told.retry_after_s is not None or told.label in RETRY_AFTER_OF_ROW
    return ", ".join(map(str, statuses)) + (" + Retry-After" if waits else "")


def _codes(label: str) -> str:
    return ", ".join(f"`{code}`" for code in label.split(", "))


# --- STEPS ---------------------------------------------------------------------------------------


def diagram() -> str:
    """Return the states and every legal step as Mermaid, which GitHub draws.

    Events between the same two states share an arrow; those that leave the state as it is stand in
    its box, since arrows from a state to itself hide each other.
    """
    edges: dict[tuple[State | None, State | None], list[str]] = {}
    for step in STEPS:
        events = edges.setdefault((step.source, step.target), [])
        if step.event not in events:
            events.append(step.event)
    lines = [
        line
        for (source, end), events in edges.items()
        for line in (_box(source, events) if source is end else _arrow(source, end, events))
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _arrow(source: State | None, end: State | None, events: Sequence[str]) -> list[str]:
    return [f"    {source or '[*]'} --> {end or '[*]'} : {',<br/>'.join(_in_lines(events))}"]


def _box(state: State | None, events: Sequence[str]) -> list[str]:
    # The first text of a state is its title.
    return [f"    {state} : {text}" for text in (str(state), *_in_lines(events))]


def _in_lines(events: Sequence[str]) -> list[str]:
    starts = range(0, len(events), _EVENTS_PER_LINE)
    return [", ".join(events[start : start + _EVENTS_PER_LINE]) for start in starts]


def step_table() -> str:
    """Return every legal step as a table; steps that differ only in their source share a line."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for step in STEPS:
        grouped.setdefault(_step_cells(step), []).append(f"{step.source or '(no row)'}")
    head = ("event", "from", "to", "by", "when")
    lines = ((key[0], ", ".join(sources), *key[1:]) for key, sources in grouped.items())
    return _table(head, lines)


def _step_cells(step: Step) -> tuple[str, ...]:
    stays = step.source is step.target
    end = "(the same)" if stays else str(step.target or "(no row)")
    return f"`{step.event}`", end, step.by, step.when


# --- SETTINGS ------------------------------------------------------------------------------------


def setting_table() -> str:
    """Return every variable with its default, range, unit and meaning."""
    head = ("variable", "default", "range", "unit", "meaning")
    return _table(head, (_setting_cells(each) for each in fields(Settings)))


def _setting_cells(each: Field[Any]) -> tuple[str, ...]:
    limits = each.metadata
    return (
        f"`{each.name.upper()}`",
        _default_cell(each),
        f"{limits['low']} to {limits['high']}" if "low" in limits else "",
        limits.get("unit", ""),
        limits["doc"],
    )


def _default_cell(each: Field[Any]) -> str:
    if each.default is MISSING:
        return "(must be set)"
    text = spelt(each)
    days = int(text) // DAY_S if each.metadata.get("unit") == "s" and not int(text) % DAY_S else 0
    span = f" ({days} {'day' if days == 1 else 'days'})" if days else ""
    return f"`{text}`{span}" if text else "(empty)"


def spelt(each: Field[Any]) -> str:
    """Return the default as the variable would be set to it."""
    if each.name in SPELT:
        return SPELT[each.name]
    match each.default:
        case bool():
            return str(each.default).lower()
        case tuple():
            return ",".join(each.default)
        case _:
            return str(each.default)


def relation_table() -> str:
    """Return how large a variable must be for the others, and why."""
    defaults = load(NEEDED)
    head = ("variable", "must be large enough for", "least, by the defaults of the others", "why")
    return _table(head, (_relation_cells(each, defaults) for each in RELATIONS))


def _relation_cells(relation: Relation, defaults: Settings) -> tuple[str, ...]:
    first, *rest = (f"`{name.upper()}`" for name in relation.names)
    return first, ", ".join(rest), str(relation.least(defaults)), relation.why


# --- MODULES -------------------------------------------------------------------------------------


def module_table() -> str:
    """Return every module of the hub with its job and what it imports, types included."""
    folders = ("relayhub", "relayhub/flows", "functions/*")
    paths = [path for folder in folders for path in sorted(ROOT.glob(f"{folder}/*.py"))]
    head = ("module", "job", "imports of our own", "libraries")
    return _table(head, (_module_cells(each) for each in paths if each.name != "__init__.py"))


def _module_cells(path: Path) -> tuple[str, ...]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    job = (ast.get_docstring(tree) or "").split("\n\n")[0]
    found = sorted(set(_imports(tree)))
    own = [name.removeprefix("relayhub.") for name in found if name.startswith("relayhub.")]
    outside = {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"relayhub"}
    libraries = sorted(name for name in outside if not name.startswith("_"))
    return f"`{path.relative_to(ROOT)}`", job, ", ".join(own), ", ".join(libraries)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names)
            case ast.ImportFrom("relayhub" | "relayhub.flows" as package, names):
                yield from (f"{package}.{each.name}" for each in names)
            case ast.ImportFrom(str(module)):
                yield module


# --- PAGES ---------------------------------------------------------------------------------------


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(_cell(each) for each in row)} |" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "codes": code_table,
    "diagram": diagram,
    "steps": step_table,
    "settings": setting_table,
    "relations": relation_table,
    "modules": module_table,
}
PAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "README.md": ("codes",),
    "docs/channel-guide.md": ("codes",),
    "docs/architecture.md": ("diagram", "steps", "modules"),
    "docs/settings.md": ("settings", "relations"),
}

if __name__ == "__main__":
    app()

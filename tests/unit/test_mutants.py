"""A mutant is what its entry says, or an error; what becomes of it is told as it is."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tools.mutants import catalogue, named
from tools.mutants.judge import Verdict
from tools.mutants.patch import Mutant, MutantError, mutated
from tools.mutants.trial import Failure
from tools.mutants.walk import walk

ROOT: Final = Path(__file__).parents[2]

ENTRY: Final = """\
# A comment.

== hub.py

@ guard: the door stays open
! test_door
     if is_open:
-        close()
+        pass
"""
SOURCE: Final = "def leave():\n    if is_open:\n        close()\n"


@cache
def every_mutant() -> list[Mutant]:
    """Return every mutant of the source."""
    return catalogue.mutants(ROOT)


def test_a_named_mutant_changes_the_lines_that_it_names() -> None:
    """And nothing else; its name is the module's and its own."""
    mutant = named.located(named.entries(ENTRY)[0], SOURCE)
    assert (mutant.name, mutant.path, mutant.first) == ("hub.guard", "hub.py", ("test_door",))
    assert mutated(mutant, SOURCE) == "def leave():\n    if is_open:\n        pass\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        pytest.param(SOURCE.replace("close", "shut"), "not at all", id="gone"),
        pytest.param(SOURCE + SOURCE, "2 times", id="twice"),
        pytest.param(SOURCE.replace("    if", "        if"), "not at all", id="indented"),
    ],
)
def test_a_stale_mutant_is_an_error_that_names_it(source: str, told: str) -> None:
    """It is never skipped, and never put where it was not meant."""
    with pytest.raises(MutantError, match=rf"hub\.guard: .*{told}"):
        named.located(named.entries(ENTRY)[0], source)


def test_all_stale_mutants_are_told_together(tmp_path: Path) -> None:
    """Whoever mends them sees them at once, files that are gone included."""
    with pytest.raises(MutantError) as told:
        named.read(tmp_path)
    faults = str(told.value).splitlines()
    found, walked = every_mutant(), {each.name for each in walk(ROOT)}
    assert len(faults) == sum(each.name not in walked for each in found)
    assert "core.line: its lines stand in relayhub/core.py not at all, and not once" in faults


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("@ no reason", id="no-reason"),
        pytest.param("?        close()", id="unknown-mark"),
        pytest.param("-a line", id="line-before-any-mutant"),
    ],
)
def test_a_line_that_is_none_of_the_form_is_an_error(line: str) -> None:
    """A slip of the pen must not make another mutant than was meant."""
    with pytest.raises(MutantError, match="line 1"):
        named.entries(line)


def test_what_is_no_python_or_no_change_is_an_error() -> None:
    """Such a mutant would be killed, or live, for no reason."""
    mutant = named.located(named.entries(ENTRY)[0], SOURCE)
    (edit,) = mutant.edits
    with pytest.raises(MutantError, match=r"hub\.guard: .* no Python"):
        mutated(replace(mutant, edits=(replace(edit, new="    if is_open:\n"),)), SOURCE)
    with pytest.raises(MutantError, match=r"hub\.guard: it changes nothing"):
        mutated(replace(mutant, edits=()), SOURCE)


def names(source: str) -> set[str]:
    """Return every name that the source speaks of."""
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def test_no_mutant_speaks_of_what_its_module_does_not_have() -> None:
    """Such a one would break its module instead of weakening it."""
    for mutant in every_mutant():
        source = (ROOT / mutant.path).read_text()
        known = {*re.findall(r"\w+", source), *dir(builtins)}
        assert names(mutated(mutant, source)) <= known, mutant.name


def test_every_mutant_is_tried_on_tests_that_are_there() -> None:
    """A test file that was renamed would let its mutants be found late, and slowly."""
    files = catalogue.selection(ROOT)
    stems = {Path(each).stem for each in files}
    for mutant in every_mutant():
        assert mutant.first, f"{mutant.name}: no tests to try first"
        assert set(mutant.first) <= stems, mutant.name
        first, rest = catalogue.order(mutant, files)
        assert sorted([*first, *rest]) == sorted(files)


def test_no_test_that_reads_the_source_is_a_check() -> None:
    """It would miss any change of the text, and no guard."""
    stems = {Path(each).stem for each in catalogue.selection(ROOT)}
    assert not stems & {"test_layers", "test_docs", "test_template_roles", "test_mutants"}
    assert {"test_dynamo", "test_ledger_conditions", "test_message_event"} <= stems


MUTANT: Final = Mutant("hub.guard", "hub.py", "the door stays open", ())
BY: Final = Failure("tests/test_door.py::test_it_closes", "AssertionError")


@pytest.mark.parametrize(
    ("verdict", "rank", "told"),
    [
        pytest.param(Verdict(MUTANT, BY, 1), 0, "::test_it_closes", id="killed"),
        pytest.param(Verdict(MUTANT, None, 1, "none"), 2, "LIVES: the door", id="alive"),
    ],
)
def test_what_lives_counts_and_stands_last(verdict: Verdict, rank: int, told: str) -> None:
    """The table ends with what somebody has to do."""
    assert verdict.counts
    assert verdict.rank == rank
    assert told in verdict.line()


def test_an_equivalent_one_counts_only_if_a_check_tells_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its reason stands in the table."""
    monkeypatch.setattr("tools.mutants.judge.EQUIVALENT", {"hub.guard": "the window is shut too"})
    alive = Verdict(MUTANT, None, 1)
    assert (alive.counts, alive.rank) == (False, 1)
    assert "equivalent: the window is shut too" in alive.line()
    assert Verdict(MUTANT, BY, 1).counts

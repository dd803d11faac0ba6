"""Only a test that fails by itself, twice, kills a mutant."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.mutants import named
from tools.mutants.judge import Judge
from tools.mutants.trial import Copy, TrialError

HUB = "def is_open():\n    return False\n"
ENTRY = "== hub.py\n@ guard: it is open\n-    return False\n+    return {}\n! test_door\n"
TEST = "import hub\ndef test_it_is_shut():\n    assert not hub.is_open()\n"
OTHER = "import hub\ndef test_nothing():\n    assert hub.is_open\n"
FIXTURE = """\
import hub, pytest
@pytest.fixture
def door():
    assert not hub.is_open()
def test_it_is_shut(door):
    pass
"""
ONCE = """\
import hub, pathlib
def test_it_is_shut():
    seen = pathlib.Path("seen")
    was, _ = seen.exists(), seen.touch()
    assert was or not hub.is_open()
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a small repository: one module and the test of its one guard."""
    root = tmp_path / "repository"
    tests = root / "tests" / "unit"
    tests.mkdir(parents=True)
    (root / "hub.py").write_text(HUB)
    (tests / "test_door.py").write_text(TEST)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)  # noqa: S607
    return root


def tried(root: Path, weaker: str) -> object:
    """Return what a trial of the guard comes to when it returns that."""
    copy = Copy.of_repository(root, root.parent / "copy")
    mutant = named.located(named.entries(ENTRY.format(weaker))[0], HUB)
    verdict = Judge([copy]).judge(mutant)
    assert (copy.place / "hub.py").read_text() == HUB, "the guard was not put back"
    return verdict.by.check if verdict.by else verdict.why


def write(root: Path, test: str, name: str = "test_door") -> None:
    """Put another test in the place of the one that is there."""
    (root / "tests" / "unit" / f"{name}.py").write_text(test)


def test_a_test_that_misses_the_guard_kills(repository: Path) -> None:
    """And is named."""
    assert tried(repository, "True") == "tests/unit/test_door.py::test_it_is_shut"


def test_a_test_further_on_kills(repository: Path) -> None:
    """Those that are tried first are only the likely ones."""
    write(repository, OTHER)
    write(repository, TEST, "test_window")
    assert tried(repository, "True") == "tests/unit/test_window.py::test_it_is_shut"


def test_what_no_test_misses_lives(repository: Path) -> None:
    """A test of something else says nothing."""
    write(repository, OTHER)
    assert tried(repository, "True") == "no check misses it"


@pytest.mark.parametrize(
    ("test", "weaker", "told"),
    [
        pytest.param(TEST, "opened", "NameError", id="name-that-is-not-there"),
        pytest.param(FIXTURE, "True", "'phase': 'setup'", id="fixture"),
        pytest.param(
            "import hub\nassert not hub.is_open()\n" + OTHER,
            "True",
            "'phase': 'collect'",
            id="import",
        ),
    ],
)
def test_what_only_breaks_does_not_kill(
    repository: Path, test: str, weaker: str, told: str
) -> None:
    """It is told as what it is, and somebody has to look."""
    write(repository, test)
    said = str(tried(repository, weaker))
    assert said.startswith("no test failed by itself")
    assert told in said


def test_a_test_that_fails_once_does_not_kill(repository: Path) -> None:
    """It met the machine, and not the mutant."""
    write(repository, ONCE)
    assert tried(repository, "True") == "no check misses it"


def test_a_check_that_fails_without_a_mutant_proves_nothing(repository: Path) -> None:
    """It would kill every mutant."""
    write(repository, TEST.replace("not ", ""))
    assert "fails on the source as it is" in str(tried(repository, "True"))
    copy = Copy.of_repository(repository, repository.parent / "another")
    with pytest.raises(TrialError, match="fails on the source as it is"):
        Judge([copy]).prove_all()


def test_a_copy_holds_the_source_and_nothing_that_is_built(repository: Path) -> None:
    """What git ignores stays behind; what is new and not yet tracked comes along."""
    (repository / ".gitignore").write_text("built\n")
    (repository / "built").mkdir()
    (repository / "built" / "zip").write_text("")
    copy = Copy.of_repository(repository, repository.parent / "copy")
    again = copy.again(repository.parent / "again")
    for each in (copy, again):
        assert (each.place / "tests" / "unit" / "test_door.py").is_file()
        assert (each.place / ".gitignore").is_file()
        assert not (each.place / "built").exists()
        assert (each.place / ".venv").is_symlink()

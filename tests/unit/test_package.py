"""A function's zip: itself, the rules and pure libraries, and the same bytes from the same tree."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.unit.template_kit import FUNCTIONS, ROOT, handler_of

ZIP_BYTES_MAX: Final = 5_000_000


def build(function: str, target: Path) -> Path:
    """Make the function's folder as SAM has it made, and return it."""
    target.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["/usr/bin/env", "make", f"build-{function}", f"ARTIFACTS_DIR={target}"],
        cwd=ROOT,
        env=environ | {"ARTIFACTS_DIR": str(target)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    return target


def files(folder: Path) -> dict[str, str]:
    """Return every file's digest, by its path in the folder."""
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request: pytest.FixtureRequest) -> str:
    """Return the logical id of each function in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def built(function: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the function's freshly built folder."""
    return build(function, tmp_path_factory.mktemp("package") / "first")


def test_a_second_build_makes_the_same_bytes(function: str, built: Path, tmp_path: Path) -> None:
    """An unchanged function has an unchanged hash, so that a deploy leaves it alone."""
    assert files(build(function, tmp_path / "second")) == files(built)


def test_a_zip_has_its_own_functions_handler(function: str, built: Path) -> None:
    """The handler is that of the function's folder, under the name that the template says."""
    own = handler_of(function)
    assert (built / own.name).read_bytes() == own.read_bytes()


def test_the_library_is_installed_anew_when_its_lock_changes() -> None:
    """The copy that all zips are made from depends on the lock and on how it is made."""
    makefile = (ROOT / "Makefile").read_text()
    assert "$(RUNTIME)/.stamp: requirements/runtime.txt Makefile\n" in makefile
    assert "build-%Function: $(RUNTIME)/.stamp\n" in makefile


def test_a_zip_holds_the_handlers_the_rules_and_the_library(function: str, built: Path) -> None:
    """Nothing else lies at the top: no scripts, no installer's traces, no SDK."""
    names = {each.name for each in built.iterdir() if not each.name.endswith(".dist-info")}
    handlers = {each.name for each in handler_of(function).parent.glob("*.py")}
    assert ("messages.py" in handlers) is (function in ("RelayFunction", "MessagesFunction"))
    assert names == {
        *handlers,
        "relayhub",
        "aws_lambda_powertools",
        "jmespath",
        "typing_extensions.py",
    }


def test_a_zip_holds_every_module_of_the_rules(built: Path) -> None:
    """The rules in the zip are the tree's own."""
    tree = {each.relative_to(ROOT) for each in (ROOT / "relayhub").rglob("*.py")}
    assert tree == {each.relative_to(built) for each in (built / "relayhub").rglob("*.py")}


def test_a_zip_has_no_bytecode_and_no_native_code(built: Path) -> None:
    """Bytecode would change the hash, native code would bind the zip to one platform."""
    assert not [each for each in files(built) if each.endswith((".pyc", ".so", ".pyd"))]


def test_a_zip_is_small(built: Path, tmp_path: Path) -> None:
    """A cold start loads it: it stays below 5 MB."""
    archive = shutil.make_archive(str(tmp_path / "function"), "zip", built)
    assert Path(archive).stat().st_size < ZIP_BYTES_MAX

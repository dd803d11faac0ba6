"""A deploy keeps the answers of before, and is never without a release of its own."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.template_kit import MAKEFILE, PARAMETERS
from tools.deploy import CONFIG, command, environment_of, kept_answers

WRITTEN = r"""
version = 0.1
[default.deploy.parameters]
parameter_overrides = "Release=\"old\" ChannelNames=\"{\\\"a\\\":\\\"b c\\\"}\""
[other.deploy.parameters]
parameter_overrides = ["CoreUrl=https://other.example"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a file as a guided deploy writes it, for two stacks."""
    path = tmp_path / "samconfig.toml"
    path.write_text(WRITTEN)
    return path


def test_the_answers_of_a_stack_are_read_as_sam_wrote_them(config: Path) -> None:
    """Quotes, blanks and JSON included; another stack has its own, or none."""
    assert kept_answers(config, "default") == {
        "Release": "old",
        "ChannelNames": '{"a":"b c"}',
    }
    assert kept_answers(config, "other") == {"CoreUrl": "https://other.example"}
    assert kept_answers(config, "none") == {}


def test_a_deploy_bears_all_answers_and_a_new_release(config: Path) -> None:
    """SAM would forget the file's parameters if only the release were given."""
    told = command("relayhub", kept_answers(config, "default"), "new", asks=True)
    given = told[told.index("--parameter-overrides") + 1 :]
    assert given == [
        'ParameterKey=Release,ParameterValue="new"',
        'ParameterKey=ChannelNames,ParameterValue="{\\"a\\":\\"b c\\"}"',
    ]


def test_it_asks_unless_it_was_told_not_to() -> None:
    """Guided by default; without questions nobody can be asked for a parameter either."""
    asks, silent = (command("relayhub", {}, "r", asks=each) for each in (True, False))
    assert ("--guided" in asks, "--no-confirm-changeset" in asks) == (True, False)
    assert ("--guided" in silent, "--no-confirm-changeset" in silent) == (False, True)
    assert "CAPABILITY_IAM" in silent


def test_a_stack_of_another_name_has_answers_of_its_own() -> None:
    """Two stacks of one account never get each other's core."""
    assert (environment_of("relayhub"), environment_of("relayhub-test")) == (
        "default",
        "relayhub-test",
    )
    told = command("relayhub-test", {}, "r", asks=True)
    assert told[told.index("--config-env") + 1] == "relayhub-test"
    assert kept_answers(CONFIG, "relayhub-test") == {}


def test_the_time_is_a_release_that_the_parameter_takes() -> None:
    """As the program writes it."""
    release = f"{datetime(2026, 11, 30, 12, 5, tzinfo=UTC):%Y%m%dT%H%M%SZ}"
    assert re.fullmatch(PARAMETERS["Release"]["AllowedPattern"], release)
    assert len(release) <= PARAMETERS["Release"]["MaxLength"]


def test_the_target_builds_first() -> None:
    """What is deployed is what the tree says."""
    assert re.search(r"^deploy: build ## .*\n\t@\$\(PY\) -m tools.deploy ", MAKEFILE, re.MULTILINE)

"""`relayhub verify` on the relay without a ledger: it fails the duplicates, and says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.app import app
from cli.exits import Exit
from local.core_client import CoreProcess, NaiveRelayProcess

# What a relay that sends again cannot do; each ends at once.
DUPLICATES = (
    *("core-closes", "core-resets", "gateway-503", "many-resends", "deferred-and-resent"),
    *("resend-after-done", "parallel-50", "file-again", "other-body-done", "replay-500kb"),
    *("obedient-silent", "core-restarted", "killed-with-bytes", "killed-in-parallel"),
)
CANNOT = (
    *("cancel-before", "status-done", "async-accepted", "claim-reply-lost", "outcome-refused"),
    *("killed-between", "killed-before-writing", "sender-killed", "asker-killed"),
)
RIGHT = ("first-answer", "refused-then-accepted", "async-interactive", "no-guid")


def run(*words: str) -> Result:
    """Run one command line."""
    return CliRunner().invoke(app, ["verify", *words], env={"COLUMNS": "250"})


def only(*names: str) -> list[str]:
    """Return the options that choose these scenarios."""
    return [word for name in names for word in ("--only", name)]


@pytest.fixture(scope="module")
def graded() -> dict[str, Any]:
    """Return the document of one run with process control."""
    names = only(*DUPLICATES, *CANNOT, *RIGHT)
    result = run("--local", "--relay", "naive", "--settle", "2", "--json", *names)
    assert result.exit_code == Exit.FAILED
    assert result.stderr.splitlines()[-1] == f"verify: {len(RIGHT)} of {len(names) // 2} passed"
    document = json.loads(result.stdout)
    assert document["relay"] == "naive relay"
    return {each["id"]: each for each in document["scenarios"]}


@pytest.mark.parametrize("name", DUPLICATES)
def test_it_fails_what_it_sends_again(graded: dict[str, Any], name: str) -> None:
    """The reason says how often the core executed it."""
    scenario = graded[name]
    assert not scenario["passed"]
    assert max(scenario["executed"]) > 1
    assert "the core executed it" in scenario["reason"]


@pytest.mark.parametrize("name", CANNOT)
def test_it_fails_what_it_does_not_have(graded: dict[str, Any], name: str) -> None:
    """The reason names what is missing."""
    told = (
        *("there is no", "is not applied", "it keeps no ledger"),
        *("did not send it by itself", "nothing of this relay"),
    )
    assert any(part in graded[name]["reason"] for part in told)


@pytest.mark.parametrize("name", RIGHT)
def test_it_passes_what_it_does_right(graded: dict[str, Any], name: str) -> None:
    """The grader is no better than what it lets through."""
    assert graded[name]["passed"]


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[NaiveRelayProcess, CoreProcess]]:
    """Run a core and the relay before it, as somebody else would have started them."""
    folder: Path = tmp_path_factory.mktemp("core")
    with (
        CoreProcess(folder / "journal.jsonl") as core,
        NaiveRelayProcess(core.url, deadline_s=0.5) as relay,
    ):
        yield relay, core


def test_a_relay_that_runs_already_is_graded_from_outside(
    running: tuple[NaiveRelayProcess, CoreProcess],
) -> None:
    """By its URL and the core's control port; a table, the doubles, and the verdict last."""
    relay, core = running
    where = ("--url", relay.url, "--core", core.control.url)
    names = only("first-answer", "resend-after-done")
    result = run(*where, *names, "--header", "X-Any=thing")
    assert result.exit_code == Exit.FAILED
    lines = result.stdout.splitlines()
    assert lines[-1] == "verify: 1 of 2 passed"
    assert lines[-2] == f"{relay.url}: the core executed 1 GUIDs more than once"
    assert any(line.startswith("pass") and "first-answer" in line for line in lines)
    assert any(line.startswith("FAIL") and "other bytes" in line for line in lines)
    assert core.control.faults()["rules"] == []


def test_a_run_in_which_all_pass_ends_well(
    running: tuple[NaiveRelayProcess, CoreProcess],
) -> None:
    """Exit code 0, and only then."""
    relay, core = running
    result = run("--url", relay.url, "--core", core.control.url, *only("first-answer"))
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "verify: 1 of 1 passed")


def test_what_needs_more_than_there_is_is_not_played(
    running: tuple[NaiveRelayProcess, CoreProcess],
) -> None:
    """Another channel needs a second identity; a kill needs --local."""
    relay, core = running
    where = ("--url", relay.url, "--core", core.control.url)
    result = run(*where, *only("other-channel", "killed-no-resend"))
    assert result.exit_code == Exit.REFUSED
    assert "none of these scenarios can be played" in result.stderr
    result = run(*where, *only("other-channel"), "--second-header", "X-Channel=app")
    assert result.stdout.splitlines()[-1] == "verify: 0 of 1 passed"


BAD_USAGE = [
    ((), "name the relay by --url and its core by --core, or use --local"),
    (("--url", "http://127.0.0.1:9"), "name the relay by --url and its core by --core"),
    (("--local", "--url", "http://127.0.0.1:9"), "--local starts its own relay and core"),
    (("--local", "--only", "resent"), "--only resent: there is no such scenario"),
    (("--url", "http://127.0.0.1:9", "--core", "http://127.0.0.1:9"), "nobody answers at"),
    (
        ("--url", "http://127.0.0.1:9", "--core", "http://127.0.0.1:9", "--header", "X"),
        "the header 'X': write NAME=VALUE",
    ),
    (
        ("--url", "http://127.0.0.1:9", "--core", "x", "--profile", "no-such-profile"),
        "no-such-profile",
    ),
]


@pytest.mark.parametrize(("words", "says"), BAD_USAGE, ids=[str(i) for i in range(len(BAD_USAGE))])
def test_bad_usage_is_one_sentence_and_tries_nothing(words: tuple[str, ...], says: str) -> None:
    """Exit code 2, nothing on stdout."""
    result = run(*words)
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert says in result.stderr.replace("\n", " ")


def test_a_core_that_does_not_answer_is_said_before_anything_is_sent(
    running: tuple[NaiveRelayProcess, CoreProcess],
) -> None:
    """Without its journal nothing can be judged."""
    relay, core = running
    before = len(core.control.received())
    result = run("--url", relay.url, "--core", "http://127.0.0.1:9", *only("first-answer"))
    assert result.exit_code == Exit.REFUSED
    assert "no local core answers at http://127.0.0.1:9" in result.stderr
    assert len(core.control.received()) == before


def test_the_list_names_every_scenario() -> None:
    """With what is right, for people and as JSON; nothing is started."""
    told = run("--list")
    assert (told.exit_code, "killed-no-resend" in told.stdout) == (0, True)
    document = json.loads(run("--list", "--json").stdout)
    assert {"first-answer", "killed-no-resend"} <= {each["id"] for each in document["scenarios"]}

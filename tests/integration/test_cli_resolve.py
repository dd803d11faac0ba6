"""`relayhub resolve`: the resolver's function is run until nothing that is due is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from relayhub.core import Finding
from relayhub.flows import resolve
from relayhub.settings import checked
from relayhub.states import State, Verdict
from tests.integration.cli_kit import RESOLVER, Terminal, make_stack
from tests.world import EXECUTED, World

DAY_MS = 86_400_000


@pytest.fixture
def terminal(world: World) -> Terminal:
    """Return a command line whose resolver is the real flow on the test's world."""
    make_stack(world.queue_url)

    def function(event: dict[str, Any]) -> dict[str, Any]:
        hub = world.hub
        if "min_age_s" in event:
            asked = replace(hub.settings, min_age_s=event["min_age_s"])
            hub = replace(hub, settings=checked(asked))
        dead_at_ms = world.clock() + 60_000
        return vars(resolve.run(hub, dead_at_ms, dry_run=event["dry_run"]))

    made = Terminal(world.clock)
    made.functions.functions[RESOLVER] = function
    return made


def scripted(terminal: Terminal, *reports: Any) -> None:
    """Let the resolver give these reports, one per run."""
    terminal.functions.functions[RESOLVER] = list(reports)


def report(**values: Any) -> dict[str, Any]:
    """Return a resolver's report."""
    empty = {"due": 0, "asked": 0, "steps": {}, "oldest_due_ms": {}, "complete": True}
    return empty | values


def test_a_row_in_doubt_is_asked_about_and_ends(world: World, terminal: Terminal) -> None:
    """The core has it as executed: the row is DONE after the command, which shows the step."""
    world.doubt()
    world.clock.advance(120)
    world.core.findings.append(Finding(Verdict.PROCESSED, EXECUTED, ""))
    result = terminal.run("resolve")
    assert result.exit_code == 0, result.output
    assert world.held().state is State.DONE
    assert "1 row due, asked about 1" in result.stdout
    assert "processed" in result.stdout
    assert "UNKNOWN" in result.stdout


def test_a_dry_run_changes_and_asks_nothing(world: World, terminal: Terminal) -> None:
    """It counts what is due, and the core hears nothing."""
    before = world.doubt()
    world.clock.advance(120)
    assert terminal.json("resolve", "--dry-run")["due"] == 1
    assert world.core.asked == []
    assert world.held() == before
    assert terminal.functions.calls == [(RESOLVER, {"dry_run": True})]


def test_the_age_is_handed_to_the_function(world: World, terminal: Terminal) -> None:
    """Only a run of this command goes by it."""
    del world
    assert terminal.run("resolve", "--min-age", "90").exit_code == 0
    assert terminal.functions.calls == [(RESOLVER, {"dry_run": False, "min_age_s": 90})]


def test_an_age_below_its_bound_is_refused_with_the_reason(
    world: World, terminal: Terminal
) -> None:
    """The function's own sentence names the smallest age that would do; nothing was changed."""
    before = world.doubt()
    world.clock.advance(120)
    result = terminal.run("resolve", "--min-age", "64")
    assert result.exit_code == 2
    assert "--min-age 64: MIN_AGE_S=64 is too small" in result.stderr
    assert "at least 65" in result.stderr
    assert result.stdout == ""
    assert world.held() == before


def test_settings_that_misfit_without_an_age_are_a_failure_not_a_refusal(
    terminal: Terminal,
) -> None:
    """The command line is not at fault when the deployed settings are."""

    def misfit(event: dict[str, Any]) -> None:
        raise ValueError(f"MIN_AGE_S=1 is too small {event}")

    terminal.functions.functions[RESOLVER] = misfit
    assert terminal.run("resolve").exit_code == 1


@pytest.mark.parametrize("age", ["0", "-5", "soon", ""])
def test_an_age_that_is_none_is_bad_usage(terminal: Terminal, age: str) -> None:
    """The function is not even asked."""
    assert terminal.run("resolve", "--min-age", age).exit_code == 2
    assert terminal.functions.calls == []


def test_runs_go_on_until_the_report_says_complete(terminal: Terminal) -> None:
    """What was due at first is told, asked and steps are summed, the longest wait is kept."""
    scripted(
        terminal,
        *(
            report(due=9, asked=5, steps={"processed": 5}, complete=False),
            report(
                due=4, asked=4, steps={"processed": 3, "not_found": 1}, oldest_due_ms={"SENT": 7}
            ),
        ),
    )
    assert terminal.json("resolve") == {
        "dry_run": False,
        "complete": True,
        "runs": 2,
        "held": False,
        "due": 9,
        "asked": 9,
        "steps": {"processed": 8, "not_found": 1},
        "oldest_due_ms": {"SENT": 7},
    }


@pytest.mark.parametrize("steps", [{}, {"skipped": 7, "gone": 1, "lost": 1}], ids=["none", "idle"])
def test_a_run_that_moved_nothing_is_the_last(terminal: Terminal, steps: dict[str, int]) -> None:
    """Rows are left, the command says so and ends instead of turning for ever."""
    scripted(terminal, report(due=2000, steps=steps, complete=False))
    result = terminal.run("resolve")
    assert result.exit_code == 3
    assert "not every row that is due was seen to" in result.stderr


def test_a_dry_run_that_counted_a_part_says_so(terminal: Terminal) -> None:
    """A second one would count the same rows."""
    scripted(terminal, report(due=2000, complete=False))
    result = terminal.run("resolve", "--dry-run")
    assert result.exit_code == 3
    assert "not every row that is due was counted" in result.stderr


@pytest.mark.parametrize("step", ["fault", "unreadable", "not_written"])
def test_rows_that_could_not_be_seen_to_are_told(terminal: Terminal, step: str) -> None:
    """Complete only says that no row was left out; these wait for the next run."""
    scripted(terminal, report(due=3, steps={"processed": 1, step: 2}))
    result = terminal.run("resolve")
    assert result.exit_code == 3
    assert "2 rows could not be seen to" in result.stderr


def test_a_loop_without_an_end_ends(terminal: Terminal) -> None:
    """A core that always has something for it to do cannot keep the command for ever."""
    scripted(terminal, *(report(due=9, steps={"processed": 1}, complete=False) for _ in range(101)))
    assert terminal.json("resolve", code=3)["runs"] == 100


def test_a_long_wait_is_told_as_people_say_it(terminal: Terminal) -> None:
    """Two units, the largest first."""
    waits = {"SENT": 75_000, "UNKNOWN": 3 * DAY_MS + 7_200_000}
    scripted(terminal, report(due=2, steps={"processed": 2}, oldest_due_ms=waits))
    result = terminal.run("resolve")
    assert "1 min 15 s" in result.stdout
    assert "3 d 2 h" in result.stdout

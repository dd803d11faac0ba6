"""`relayhub purge`: the purger's function is run until the whole table was seen."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.flows import purge
from tests.integration.cli_kit import PURGER, Terminal, make_stack
from tests.world import World

DAY_S = 86_400


@pytest.fixture
def terminal(world: World) -> Terminal:
    """Return a command line whose purger is the real flow on the test's world."""
    make_stack(world.queue_url)

    def function(event: dict[str, Any]) -> dict[str, Any]:
        dead_at_ms = world.clock() + 900_000
        return vars(purge.run(world.hub, dead_at_ms, dry_run=event["dry_run"]))

    made = Terminal(world.clock)
    made.functions.functions[PURGER] = function
    return made


def scripted(terminal: Terminal, *reports: dict[str, Any]) -> None:
    """Let the purger give these reports, one per run."""
    terminal.functions.functions[PURGER] = list(reports)


def report(**values: Any) -> dict[str, Any]:
    """Return a purger's report."""
    empty = {"scanned": 0, "deleted": 0, "repaired": 0, "kept": {}, "oldest_ms": {}}
    return {**empty, "complete": True} | values


def past_its_time(world: World) -> None:
    """Make a row that is done and past its retention, and one that failed as long ago."""
    world.post("G-done")
    world.fail("G-failed")
    world.clock.advance(31 * DAY_S)


def test_what_is_past_its_time_is_deleted_and_the_rest_is_told(
    world: World, terminal: Terminal
) -> None:
    """The DONE row goes; the FAILED one of the same age is kept and counted by state and age."""
    past_its_time(world)
    result = terminal.run("purge")
    assert result.exit_code == 0, result.output
    assert world.row("G-done") is None
    assert world.row("G-failed") is not None
    assert "2 rows seen: 1 deleted, 0 repaired" in result.stdout
    assert "FAILED  >=30d     1" in result.stdout
    assert "31 d" in result.stdout


def test_a_dry_run_deletes_nothing(world: World, terminal: Terminal) -> None:
    """It says what a run would delete, and leaves the table as it was."""
    past_its_time(world)
    before = world.row("G-done"), world.row("G-failed")
    result = terminal.run("purge", "--dry-run")
    assert result.exit_code == 0, result.output
    assert (world.row("G-done"), world.row("G-failed")) == before
    assert "1 to be deleted" in result.stdout
    assert terminal.functions.calls == [(PURGER, {"dry_run": True})]


def test_runs_go_on_until_the_table_was_seen(terminal: Terminal) -> None:
    """Deleted and repaired are summed; a person is told that kept rows may count twice."""
    scripted(
        terminal,
        *(
            report(scanned=9, deleted=5, kept={"DONE <1d": 4}, complete=False),
            report(scanned=3, deleted=1, repaired=1, kept={"DONE <1d": 2}, oldest_ms={"SENT": 5}),
        ),
    )
    result = terminal.run("purge")
    assert result.exit_code == 0
    assert "12 rows seen: 6 deleted, 1 repaired" in result.stdout
    assert "may be counted more than once" in result.stderr


def test_the_document_has_every_number(terminal: Terminal) -> None:
    """For other programs: the purger's own names, and how many runs it took."""
    scripted(terminal, report(scanned=3, deleted=1, kept={"DONE <1d": 2}, oldest_ms={"SENT": 5}))
    assert terminal.json("purge") == {
        "dry_run": False,
        "complete": True,
        "runs": 1,
        "scanned": 3,
        "deleted": 1,
        "repaired": 0,
        "kept": {"DONE <1d": 2},
        "oldest_ms": {"SENT": 5},
    }


@pytest.mark.parametrize(
    ("words", "scanned", "said"),
    [(("purge",), 0, "was not seen"), (("purge", "--dry-run"), 9, "was not counted")],
    ids=["nothing seen", "dry"],
)
def test_a_part_that_is_left_is_told(
    terminal: Terminal, words: tuple[str, ...], scanned: int, said: str
) -> None:
    """A run that saw nothing would see nothing again; a dry run always begins anew."""
    scripted(terminal, report(scanned=scanned, complete=False))
    result = terminal.run(*words)
    assert result.exit_code == 3
    assert said in result.stderr
    assert len(terminal.functions.calls) == 1

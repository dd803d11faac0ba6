"""The runner and the report, on scenarios made for it and a core that is only counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from typer.testing import CliRunner

from local.core_client import CoreControl
from verify import catalogue, compare, report
from verify.core import Core
from verify.play import Limits, Play, Table, require
from verify.run import Outcome, Runner
from verify.scenario import CASES, Need, Run, Steps, Until, make
from verify.wire import Caller

DOUBLED = "GUIDs executed more than once"


@dataclass
class StubControl:
    """The core's control: faults as they were put last, and executions by GUID."""

    rules: list[Any] = field(default_factory=list)
    executed: Counter[str] = field(default_factory=Counter)
    cleared: int = 0

    def set_faults(self, rules: list[Any]) -> None:
        """Keep them."""
        self.rules = list(rules)

    def clear(self) -> None:
        """Count it."""
        self.rules, self.cleared = [], self.cleared + 1

    def journal(self, guid: str) -> list[str]:
        """Return as many as were executed."""
        return [guid] * self.executed[guid]


@pytest.fixture
def control() -> StubControl:
    """Return a core without faults that has executed nothing."""
    return StubControl()


@pytest.fixture
def table(control: StubControl) -> Iterator[Table]:
    """Return what scenarios are played with; there is no relay."""
    core = Core(cast("CoreControl", control))
    limits = Limits(settle_s=0.5, clients=2)
    with ThreadPoolExecutor(2) as pool:
        yield Table("0badcafe", Caller("http://127.0.0.1:9"), None, core, limits, pool)


def played(table: Table, *runs: Run) -> list[Outcome]:
    """Play these, under the names of their functions."""
    made = [make(getattr(run, "__name__", "run"), "name", run, "expects") for run in runs]
    return Runner(table).run(made)


def executes(control: StubControl, count: int) -> Callable[[Play], None]:
    """Return a scenario whose one act the core executes so often."""

    def run(play: Play) -> None:
        control.executed[play.act().guid] = count

    return run


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (1, None),
        (0, "the core executed it never instead of once"),
        (2, "the core executed it twice instead of once"),
        (5, "the core executed it 5 times instead of once"),
    ],
    ids=str,
)
def test_the_journal_judges_at_the_end(
    table: Table, control: StubControl, count: int, reason: str | None
) -> None:
    """A scenario whose answers were right fails by what the core executed."""
    [outcome] = played(table, executes(control, count))
    assert (outcome.reason, outcome.executed) == (reason, (count,))


def test_a_double_that_comes_while_others_are_played_is_found(
    table: Table, control: StubControl
) -> None:
    """A scenario has passed only when all have ended."""

    def late(_play: Play) -> None:
        control.executed["v0badcafe-run-1"] += 1

    outcomes = played(table, executes(control, 1), late)
    assert [each.passed for each in outcomes] == [False, True]


def test_a_failure_and_a_double_are_both_told(table: Table, control: StubControl) -> None:
    """What the core saw is never hidden behind an earlier failure."""

    def wrong(play: Play) -> None:
        executes(control, 3)(play)
        require(holds=False, sentence="the resend was 0000")

    [outcome] = played(table, wrong)
    assert outcome.reason == "the resend was 0000; the core executed it 3 times instead of once"


def test_a_failure_before_anything_was_executed_is_told_alone(table: Table) -> None:
    """That it was not executed follows from the failure."""

    def wrong(play: Play) -> None:
        play.act()
        require(holds=False, sentence="nobody answers")

    [outcome] = played(table, wrong)
    assert outcome.reason == "nobody answers"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyError("x"), "it could not be judged: KeyError: 'x'"),
        (httpx.ConnectError("gone"), "the core's control failed: ConnectError gone"),
    ],
    ids=["surprise", "core-gone"],
)
def test_what_goes_wrong_inside_ends_that_scenario_alone(
    table: Table, control: StubControl, error: Exception, says: str
) -> None:
    """The others are played all the same."""

    def broken(_play: Play) -> None:
        raise error

    outcomes = played(table, broken, executes(control, 1))
    assert [each.reason for each in outcomes] == [says, None]


def test_those_that_wait_wait_side_by_side(table: Table) -> None:
    """Each goes on as soon as its own wait is over; one whose time is over is told so."""
    seen: list[str] = []

    def waits(play: Play) -> Steps:
        seen.append("begun")
        came = yield play.until(lambda: "second" in seen)
        seen.append(f"came {came}")
        came = yield Until(lambda: False, 0.05)
        seen.append(f"came {came}")

    def second(_play: Play) -> None:
        seen.append("second")

    outcomes = played(table, waits, second)
    assert all(each.passed for each in outcomes)
    assert seen == ["begun", "second", "came True", "came False"]


def test_faults_of_a_waiting_scenario_stay_and_those_of_the_port_do_not(
    table: Table, control: StubControl
) -> None:
    """Others must find the port open; at the end nothing is left."""
    seen: list[list[Any]] = []

    def waits(play: Play) -> Steps:
        play.faults({"kind": "refuse"}, {"kind": "inquiry_500", "guid": "g"})
        yield play.until(lambda: len(seen) > 0)

    def second(play: Play) -> None:
        play.faults({"kind": "big", "guid": "h"})
        seen.append([rule["kind"] for rule in control.rules])

    played(table, waits, second)
    assert seen == [["inquiry_500", "big"]]
    assert (control.rules, control.cleared) == ([], 1)


def test_the_core_is_left_without_faults_when_the_run_is_broken_off(
    table: Table, control: StubControl
) -> None:
    """Ctrl-C too."""

    def interrupted(play: Play) -> None:
        play.faults({"kind": "refuse"})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        played(table, interrupted)
    assert (control.rules, control.cleared) == ([], 1)


def test_every_act_has_a_guid_of_its_own(table: Table) -> None:
    """Of this run, this scenario, this act."""
    play = Play(make("slug", "name", lambda _: None, "expects"), table)
    assert [play.act().guid, play.act().guid] == ["v0badcafe-slug-1", "v0badcafe-slug-2"]


@pytest.mark.parametrize(
    ("executed", "text"),
    [((), ""), ((1,), "1"), ((0, 1), "1 0"), ((1,) * 10, "10 x 1"), ((1, 2, 1, 1), "1 x 2, 3 x 1")],
    ids=str,
)
def test_what_the_core_saw_is_told_in_a_few_characters(
    executed: tuple[int, ...], text: str
) -> None:
    """The most often executed first."""
    assert report.counted(executed) == text


def outcome(slug: str, reason: str | None, *executed: int) -> Outcome:
    """Return an outcome of a scenario of this name."""
    scenario = replace(make(slug, "what", lambda _: None, "expects", case=5), group="kills")
    return Outcome(scenario, reason, executed, 1.234)


def test_the_report_counts_passes_and_doubles() -> None:
    """And its last line is what a script looks for."""
    outcomes = [outcome("a", None, 1), outcome("b", "because", 2, 1)]
    assert report.last_line(outcomes) == "verify: 1 of 2 passed"
    assert report.rows(outcomes)[1] == ("FAIL", "b", "what", "2 1", "because")
    document = report.document(outcomes, "relay", {"a second identity": 3})
    assert (document["passed"], document["played"], document["doubled"]) == (1, 2, 1)
    assert document["scenarios"][1]["seen_at"] == "urllib3#1909"
    assert json.loads(json.dumps(document)) == document


def test_runs_stand_side_by_side(tmp_path: Path) -> None:
    """A scenario that one relay was not put to stays empty there."""
    runs = {
        "a": [outcome("x", None, 1), outcome("y", None, 1)],
        "b": [outcome("x", "because", 2)],
    }
    for name, outcomes in runs.items():
        document = report.document(outcomes, name, {})
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    files = [str(tmp_path / f"{name}.json") for name in runs]
    ends = ["| **all** | **2 of 2** | **0 of 1** |", f"| **{DOUBLED}** | **0** | **1** |"]
    result = CliRunner().invoke(compare_app(), files)
    assert result.stdout.splitlines() == [
        *("| scenario | a | b |", "| --- | --- | --- |"),
        "| `x`: what | pass, executed 1 | **fail**, executed 2 |",
        "| `y`: what | pass, executed 1 |  |",
        *ends,
    ]
    result = CliRunner().invoke(compare_app(), ["--short", *files])
    assert result.stdout.splitlines() == [
        *("| scenarios | a | b |", "| --- | --- | --- |"),
        "| kills | 2 of 2 | 0 of 1; 1 doubled |",
        *ends,
    ]


def compare_app() -> Any:
    """Return the comparison's command line."""
    import typer  # noqa: PLC0415 - for this alone

    app = typer.Typer()
    app.command()(compare.main)
    return app


def test_the_catalogue_is_large_enough_and_each_entry_says_what_is_right() -> None:
    """At least 30 scenarios from outside and 10 with process control, no two of one name."""
    needs = Counter(each.need for each in catalogue.ALL)
    assert needs[Need.NOTHING] + needs[Need.SECOND] >= 30
    assert needs[Need.PROCESSES] >= 10
    assert len({each.id for each in catalogue.ALL}) == len(catalogue.ALL)
    for each in catalogue.ALL:
        assert each.expects.endswith("."), each.id
        assert each.case is None or each.case in CASES, each.id
        assert len(each.name) <= 42, each.id


def test_every_kind_of_fault_that_is_cited_is_tried() -> None:
    """A citation without a scenario would promise too much."""
    assert {each.case for each in catalogue.ALL if each.case} == set(CASES)


@pytest.mark.parametrize(
    ("has_second", "has_processes", "missing"),
    [
        (True, True, set()),
        (False, True, {Need.SECOND}),
        (True, False, {Need.PROCESSES}),
        (False, False, {Need.SECOND, Need.PROCESSES}),
    ],
    ids=["all", "no-second", "no-processes", "neither"],
)
def test_what_cannot_be_played_is_left_out_and_counted(
    *, has_second: bool, has_processes: bool, missing: set[Need]
) -> None:
    """By what it needs."""
    scenarios = catalogue.chosen((), has_second=has_second, has_processes=has_processes)
    assert set(catalogue.left_out(scenarios)) == missing


def test_a_name_that_no_scenario_has_is_found() -> None:
    """Before anything is tried."""
    assert catalogue.unknown(["resend-after-done", "resent"]) == ["resent"]

"""`core`, `hold-job`, `release-job`: the switches, and what the hub does by them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from relayhub.controls import HUB, Job, Switch
from relayhub.flows import reprocess, resolve
from relayhub.states import State
from tests.emulated import never_arrives, refused, reply_lost
from tests.integration.cli_kit import REPROCESSOR, RESOLVER, Office, open_office
from tests.maintenance import NOT_FOUND, reprocessor, resolver, sweep
from tests.world import World, document

LOST = "ReadTimeoutError"


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack whose reprocessor sweeps, and a person who looks after it."""
    made = open_office(world)

    def function(event: dict[str, Any]) -> dict[str, Any]:
        assert event == {}
        return asdict(reprocess.sweep(world.hub, world.clock() + 60_000))

    made.terminal.functions.functions[REPROCESSOR] = function
    return made


def test_a_closed_core_gets_nothing_and_nothing_falls_into_doubt(office: Office) -> None:
    """A new request is told E902 and waits; opened again it is sent, once."""
    world = office.world
    assert office.act("core", "close") == {"core": "closed"}
    world.clock.advance(3)
    assert document(world.post())["code"] == "E902"
    assert world.held().state is State.FAILED
    assert reprocessor(world) == "waits"
    resolver(world)
    assert (world.core.sent, world.core.asked) == ([], [])
    world.clock.advance(600)
    assert office.act("core", "open") == {"core": "open", "hinted": 1}
    world.core.findings = [NOT_FOUND]
    reprocessor(world)
    assert len(world.core.sent) == 1
    assert world.held().code == "0000"


def test_who_closed_the_core_why_and_when_is_shown(office: Office) -> None:
    """And is in the operators' log."""
    assert office.terminal.json("core", "status") == {
        "core": "open",
        "closed": None,
        "held": {},
        "strikes": 0,
    }
    assert office.run("core", "status").stdout == "the core is open\n"
    office.act("core", "close")
    told = office.terminal.json("core", "status")
    assert told["core"] == "closed"
    assert told["closed"] == {
        "by": "role/Admin/alice",
        "reason": "as agreed",
        "asked_from": None,
        "at": "2027-01-15T08:00:00.000Z",
        "asked_by": [],
    }
    assert "the core is CLOSED: by role/Admin/alice" in office.run("core", "status").stdout
    assert [each["act"] for each in office.logs.of("intent")] == ["core close"]
    assert office.logs.of("outcome")[0]["outcome"] == "done"


def test_what_is_switched_already_is_refused_and_says_by_whom(office: Office) -> None:
    """So nobody undoes another's plan without knowing."""
    assert office.refused("core", "open") == "the core is open already"
    office.act("core", "close")
    office.as_person("bob")
    assert office.refused("core", "close").startswith(
        "the core is closed already: by role/Admin/alice since"
    )
    office.act("hold-job", "resolver")
    office.world.clock.advance(1)
    assert "the resolver is held already: by role/Admin/bob" in office.refused(
        "hold-job", "resolver"
    )
    assert office.refused("release-job", "reprocessor") == "the reprocessor is not held"


def test_a_person_takes_over_what_the_hub_closed_by_itself(office: Office) -> None:
    """From then on no inquiry opens it."""
    world = office.world
    world.hub.controls.close_core(Switch(HUB, "20 calls", world.clock(), world.clock() + 15_000))
    shown = office.run("core", "status").stdout
    assert "it opens by itself when an inquiry is answered" in shown
    office.act("core", "close")
    assert not world.hub.controls.reopen()
    assert office.terminal.json("core", "status")["closed"]["by"] == "role/Admin/alice"
    office.act("core", "open")


def test_a_core_that_nobody_asks_is_not_said_to_open_by_itself(office: Office) -> None:
    """While both jobs are held nobody asks it; one of them is enough."""
    world = office.world
    world.hub.controls.close_core(Switch(HUB, "20 calls", world.clock(), world.clock() + 15_000))
    nobody = "both jobs are held, so nobody asks the core that the hub closed"
    first = office.run("hold-job", "resolver", "--reason", "x")
    assert (first.exit_code, first.stderr) == (0, "")
    assert "it opens by itself" in office.run("core", "status").stdout
    asked_by = office.terminal.json("core", "status")["closed"]["asked_by"]
    assert asked_by == ["reprocessor"]
    second = office.run("hold-job", "reprocessor", "--reason", "x")
    assert second.exit_code == 0
    assert nobody in second.stderr
    shown = office.run("core", "status").stdout
    assert nobody in shown
    assert "it opens by itself" not in shown
    assert office.terminal.json("core", "status")["closed"]["asked_by"] == []


def test_that_nobody_would_ask_is_told_before_the_hub_closes_the_core(office: Office) -> None:
    """A core that a person closed is asked by nobody anyhow: there it says nothing."""
    for job in Job:
        office.act("hold-job", job)
    assert "nobody asks a core that the hub closes" in office.run("core", "status").stdout
    office.act("core", "close")
    assert "nobody asks" not in office.run("core", "status").stdout
    office.act("release-job", "resolver")
    assert office.run("hold-job", "resolver", "--reason", "x").stderr == ""


def test_a_held_job_stays_so_though_the_other_switches_cannot_be_read(office: Office) -> None:
    """What was done is not told as a failure."""
    office.world.dynamo.faults["get_item"] = [refused("AccessDeniedException")]
    result = office.run("hold-job", "resolver", "--reason", "x")
    assert result.exit_code == 0
    assert "the resolver is held, but what else" in result.stderr
    assert "resolver" in office.terminal.json("core", "status")["held"]


def test_a_run_of_a_held_job_says_who_holds_it_and_how_it_goes_on(office: Office) -> None:
    """Nothing was done: that is no success, nor a count of nothing."""
    world = office.world
    world.doubt("D-1")
    world.fail("F-1")
    world.clock.advance(600)
    office.terminal.functions.functions[RESOLVER] = lambda event: vars(
        resolve.run(world.hub, world.clock() + 60_000, dry_run=event["dry_run"])
    )
    for job, words in (
        (Job.RESOLVER, ("resolve",)),
        (Job.RESOLVER, ("resolve", "--dry-run")),
        (Job.REPROCESSOR, ("reprocess",)),
    ):
        office.act("hold-job", job)
        world.clock.advance(3)
        result = office.run(*words)
        assert result.exit_code == 3
        assert result.stdout == ""
        assert f"the {job} is held, and did nothing: by role/Admin/alice since" in result.stderr
        assert f"`relayhub release-job {job}`" in result.stderr
        assert office.terminal.json(*words, code=3)["held"]
        office.act("release-job", job)
        world.clock.advance(3)
        assert office.run(*words).exit_code == 0


def test_a_core_that_is_opened_under_a_held_reprocessor_says_that_nothing_follows(
    office: Office,
) -> None:
    """The core is open; what waits is not sent."""
    office.act("core", "close")
    office.act("hold-job", "reprocessor")
    result = office.run("core", "open", "--reason", "over")
    assert result.exit_code == 3
    assert "the core is open" in result.stdout
    assert "the reprocessor is held, and did nothing: by role/Admin/alice" in result.stderr


def test_a_run_that_rested_for_another_cause_names_nobody(office: Office) -> None:
    """Released meanwhile, or the switches could not be read: by the function, or by the command."""
    swept = {"due": 0, "held": True, "complete": False}
    office.terminal.functions.functions[REPROCESSOR] = [swept, swept]
    result = office.run("reprocess")
    assert result.exit_code == 3
    assert "it was held until now, or could not read the switches" in result.stderr
    office.world.dynamo.faults["get_item"] = [refused("AccessDeniedException")]
    result = office.run("reprocess")
    assert result.exit_code == 3
    assert "by whom is not known: the table gave no answer: AccessDenied" in result.stderr


@pytest.mark.parametrize(
    ("first", "words", "after"),
    [
        ((), ("core", "close"), "closed"),
        (("core", "close"), ("core", "open", "--no-sweep"), "open"),
    ],
    ids=["close", "open"],
)
def test_a_lost_reply_of_a_switch_is_success(
    office: Office, first: tuple[str, ...], words: tuple[str, ...], after: str
) -> None:
    """The second try meets what the first has done."""
    if first:
        office.act(*first)
    office.world.dynamo.faults["update_item"] = [reply_lost]
    assert office.act(*words)["core"] == after
    assert office.terminal.json("core", "status")["core"] == after


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ((), ("hold-job", "resolver")),
        (("hold-job", "resolver"), ("release-job", "resolver")),
    ],
    ids=["hold", "release"],
)
def test_a_lost_reply_of_a_jobs_switch_is_success(
    office: Office, first: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """As of the core's."""
    if first:
        office.act(*first)
    office.world.dynamo.faults["update_item"] = [reply_lost]
    office.act(*words)
    held = office.terminal.json("core", "status")["held"]
    assert set(held) == ({"resolver"} if words[0] == "hold-job" else set())


@pytest.mark.parametrize(
    "words",
    [("core", "close"), ("hold-job", "resolver")],
    ids=" ".join,
)
def test_a_switch_without_any_answer_is_told_as_a_failure(
    office: Office, words: tuple[str, ...]
) -> None:
    """Nobody says that it works."""
    office.world.dynamo.faults["update_item"] = [never_arrives, never_arrives]
    assert office.refused(*words, code=1) == f"the table gave no answer: {LOST}"
    assert office.logs.of("outcome")[0]["outcome"] == "failed"
    office.world.dynamo.faults["update_item"] = [refused("AccessDeniedException")]
    assert "docs/cli.md lists the permissions" in office.refused(*words, code=1)


def test_a_core_that_another_opens_at_the_same_moment_is_open(office: Office) -> None:
    """Whoever did it: it was closed, and is not now."""
    office.act("core", "close")
    office.world.dynamo.before["update_item"] = [office.world.hub.controls.open_core]
    assert office.act("core", "open", "--no-sweep")["core"] == "open"


def test_a_core_that_another_closes_at_the_same_moment_is_his(office: Office) -> None:
    """The second person is told that his reason does not stand there."""
    switch = Switch("bob", "a stop", office.world.clock())
    office.world.dynamo.before["update_item"] = [
        lambda: office.world.hub.controls.close_core(switch)
    ]
    assert office.refused("core", "close") == "another person has closed the core meanwhile"


def test_a_sweep_that_fails_is_told_and_the_core_is_open(office: Office) -> None:
    """The schedule does it within a minute."""
    office.act("core", "close")

    def fails(_: dict[str, Any]) -> None:
        raise RuntimeError("no")

    office.terminal.functions.functions[REPROCESSOR] = fails
    result = office.run("core", "open", "--reason", "over")
    assert result.exit_code == 0
    assert "the sweep failed, its schedule does it within a minute" in result.stderr


def test_the_sweep_comes_after_the_functions_look_at_the_switches_again(office: Office) -> None:
    """Else the reprocessor would still take the core for closed."""
    office.act("core", "close")
    office.world.clock.advance(60)
    sweep(office.world)  # It reads the switches, and keeps them for a while.
    before = office.world.clock()
    office.act("core", "open")
    assert office.world.clock() - before > 2_000
    assert office.world.hub.controls.known.core is None


@pytest.mark.parametrize("job", Job)
def test_a_held_job_does_nothing_until_it_is_released(office: Office, job: Job) -> None:
    """The resolver asks nothing, the reprocessor sends nothing."""
    world = office.world
    world.doubt("D-1")
    world.fail("F-1")
    office.act("hold-job", job)
    world.clock.advance(600)
    assert resolver(world).held is (job is Job.RESOLVER)
    world.core.findings = [NOT_FOUND]
    taken = reprocessor(world, "F-1")
    assert (taken == "waits") is (job is Job.REPROCESSOR)
    told = office.terminal.json("show", "D-1" if job is Job.RESOLVER else "F-1")["next"]
    assert any("is held: it does nothing until it is released" in each for each in told)
    office.act("release-job", job)
    world.clock.advance(3)
    assert not resolver(world).held


def test_a_job_that_is_none_is_bad_usage(office: Office) -> None:
    """The purger has no switch."""
    result = office.run("hold-job", "purger", "--reason", "x")
    assert result.exit_code == 2
    assert office.logs.lines == []


def test_a_switch_bears_no_word_of_a_row(office: Office) -> None:
    """The operators' log has who, why and what."""
    office.act("core", "close")
    (intent, outcome) = office.logs.lines
    assert set(intent) == {"by", "act_id", "line", "act", "reason"}
    assert set(json.loads(json.dumps(outcome))) == {
        *("by", "act_id", "line", "outcome", "act", "switched"),
    }

"""`relayhub reprocess`: a hint only for what the reprocessor would go to; it sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from relayhub.flows import reprocess
from relayhub.flows.reprocess import Hint, Taken
from relayhub.states import Event, Hold, State
from tests.emulated import FaultyClient, client, refused
from tests.integration.cli_kit import REPROCESSOR, Terminal, make_stack
from tests.world import World

INTERACTIVE = {"delivery": "interactive"}


@pytest.fixture
def terminal(world: World) -> Terminal:
    """Return a command line whose reprocessor is the real flow on the test's world."""
    make_stack(world.queue_url)

    def function(event: dict[str, Any]) -> dict[str, Any]:
        assert event == {}
        return asdict(reprocess.sweep(world.hub, world.clock() + 60_000))

    made = Terminal(world.clock)
    made.functions.functions[REPROCESSOR] = function
    return made


def absent(world: World) -> None:
    """Leave the table without the row."""
    del world


def done(world: World) -> None:
    """Make a row that has its answer."""
    world.post()


def sent(world: World) -> None:
    """Make a row whose function was killed on the way."""
    world.kill()


def unknown(world: World) -> None:
    """Make a row in doubt."""
    world.doubt()


def received(world: World) -> None:
    """Make a row as an accepted request leaves it."""
    world.fail()
    world.edit(state="RECEIVED")


def held(world: World) -> None:
    """Make a row that waits for a person."""
    world.fail()
    world.move(Event.HELD, by="operator", hold=Hold.OPERATOR)


def done_held(world: World) -> None:
    """Make a DONE row whose answers contradict each other."""
    world.post()
    world.edit(hold="contradiction")


def parked(world: World) -> None:
    """Make a row that the hub has given up to resend."""
    row = world.fail()
    world.move(Event.PARKED, by="reprocessor", parked="cap", due_at=row.valid_until)


def interactive(world: World) -> None:
    """Make a row whose customer waits."""
    world.fail(headers=INTERACTIVE)


def expired(world: World) -> None:
    """Make a row whose validity is over."""
    world.fail()
    world.clock.advance(86_401)


def cancelled(world: World) -> None:
    """Make a FAILED row that bears a cancel."""
    world.fail()
    world.edit(cancel={"at": 1, "by": "atm"})


def newer(world: World) -> None:
    """Make a row of a later version of the hub."""
    world.fail()
    world.edit(schema=2)


REASONS: dict[Callable[[World], None], str] = {
    absent: "no row",
    done: "it is DONE: it ended with 0000",
    sent: "it is SENT",
    unknown: "relayhub resolve",
    received: "it is RECEIVED",
    held: "it is held (operator)",
    done_held: "it is held (contradiction)",
    parked: "it is parked (cap)",
    interactive: "it is interactive",
    expired: "its validity ended at 2027-01-16T08:00:00.000Z",
    cancelled: "its channel cancelled it",
    newer: "newer version",
}


@pytest.mark.parametrize(
    ("make", "reason"), REASONS.items(), ids=[make.__name__ for make in REASONS]
)
def test_a_row_that_a_hint_would_not_send_gets_none_and_its_reason(
    world: World, terminal: Terminal, make: Callable[[World], None], reason: str
) -> None:
    """The reason is told, nothing is written, and the reprocessor itself would not send it."""
    make(world)
    world.hints()  # What the relay hinted at itself.
    before, sends = world.row(), len(world.core.sent)
    document = terminal.json("reprocess", "G-1", code=2)
    assert reason in document["rows"][0]["reason"]
    assert document["hinted"] == 0
    assert world.hints() == []
    assert world.row() == before
    taken = reprocess.handle(world.hub, Hint("G-1"), world.clock() + 60_000)
    assert taken in {Taken.DROPPED, Taken.ENDED}
    assert len(world.core.sent) == sends


def test_a_failed_row_gets_a_hint_with_its_attempt(world: World, terminal: Terminal) -> None:
    """The hint is the queue's usual one; row and core are left alone."""
    before = world.fail()
    world.hints()
    document = terminal.json("reprocess", "G-1")
    assert world.hints() == [{"guid": "G-1", "attempt": 1}]
    assert document == {
        "hinted": 1,
        "rows": [{"guid": "G-1", "state": "FAILED", "attempt": 1, "reason": None, "hinted": True}],
    }
    assert world.row() == before
    assert len(world.core.sent) == 1
    assert terminal.functions.calls == []


def test_some_hinted_and_some_not_is_done_in_part(world: World, terminal: Terminal) -> None:
    """Every GUID has its line, in the order given, each once."""
    world.fail("G-1")
    world.post("G-2")
    world.hints()
    result = terminal.run("reprocess", "G-2", "G-1", "G-2")
    assert result.exit_code == 3
    assert world.hints() == [{"guid": "G-1", "attempt": 1}]
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[1].startswith("G-2")
    assert "DONE" in lines[1]
    assert lines[2].startswith("G-1")
    assert lines[2].endswith("written")
    assert lines[3] == "1 hint written for 2 GUIDs"


@pytest.mark.parametrize("bad", ["!gate", "a b", "x" * 129, "é"])
def test_a_guid_that_is_none_is_refused_before_any_hint(
    world: World, terminal: Terminal, bad: str
) -> None:
    """The other GUIDs of the line are left alone too."""
    world.fail()
    world.hints()
    result = terminal.run("reprocess", "G-1", bad)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert world.hints() == []


def test_a_uuid_in_capitals_is_found_in_its_one_spelling(world: World, terminal: Terminal) -> None:
    """People copy GUIDs from anywhere; the row is kept under one spelling."""
    guid = "0198c0de-0000-4000-8000-00000000000a"
    world.fail(guid)
    world.hints()
    assert terminal.json("reprocess", guid.upper())["rows"][0]["guid"] == guid
    assert world.hints() == [{"guid": guid, "attempt": 1}]


def test_what_was_hinted_before_a_failure_is_told(world: World, terminal: Terminal) -> None:
    """The queue refuses the second hint: the first is on the table, the error is one sentence."""
    world.fail("G-1")
    world.fail("G-2")
    world.hints()
    terminal.clients["sqs"] = sqs = FaultyClient(client("sqs"))
    sqs.faults["send_message"] = [
        lambda operation, request: operation(**request),
        refused("AccessDenied"),
    ]
    result = terminal.run("reprocess", "G-1", "G-2")
    assert result.exit_code == 1
    assert "1 hint written for 1 GUID" in result.stdout
    assert "AccessDenied" in result.stderr
    assert "docs/cli.md" in result.stderr


def test_without_guids_the_sweep_hints_at_what_is_due(world: World, terminal: Terminal) -> None:
    """The function does it, by its own rules; the row is still FAILED afterwards."""
    world.fail()
    world.hints()
    world.clock.advance(600)
    result = terminal.run("reprocess")
    assert result.exit_code == 0, result.output
    assert "1 row due: 1 hint written, 0 ended (E908)" in result.stdout
    assert world.hints() == [{"guid": "G-1", "attempt": 1}]
    assert world.held().state is State.FAILED


def test_the_sweep_is_run_until_complete(terminal: Terminal) -> None:
    """What is summed and what is not: the rows due are those of the first run."""
    terminal.functions.functions[REPROCESSOR] = [
        {"due": 9, "hinted": 5, "ended": 1, "complete": False},
        {"due": 3, "hinted": 2, "ended": 0, "complete": True},
    ]
    assert terminal.json("reprocess") == {
        "complete": True,
        "runs": 2,
        "held": False,
        "due": 9,
        "hinted": 7,
        "ended": 1,
    }


def test_a_sweep_that_gets_nowhere_is_done_in_part(terminal: Terminal) -> None:
    """It is not turned for ever, and what waits is explained."""
    terminal.functions.functions[REPROCESSOR] = [{"due": 9, "hinted": 0, "complete": False}]
    result = terminal.run("reprocess")
    assert result.exit_code == 3
    assert "the rest waits" in result.stderr

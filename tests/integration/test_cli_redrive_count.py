"""`relayhub redrive-messages`: how many, how fast, and what a look at the dead letters shows."""

from __future__ import annotations

from typing import Any

import pytest

from cli.dead_letters import read_letter
from relayhub.times import rfc3339
from tests.emulated import FaultyClient
from tests.integration.cli_kit import Terminal
from tests.integration.redrive_kit import (
    BODY,
    Intake,
    at_stack,
    faulty,
    make_intake,
    stamp,
    ten,
    text,
)
from tests.world import START_MS, World


@pytest.fixture
def intake(world: World, monkeypatch: pytest.MonkeyPatch) -> Intake:
    """Return the intake queue and its dead letters, at an SQS that lives by the test's clock."""
    return make_intake(world, monkeypatch)


@pytest.fixture
def terminal(world: World, intake: Intake) -> Terminal:
    """Return a command line at a stack with these queues."""
    return at_stack(world, intake)


@pytest.fixture
def sqs(terminal: Terminal) -> FaultyClient:
    """Return the command line's SQS, whose calls can fail."""
    return faulty(terminal)


def test_how_many_and_how_old_is_said_before(intake: Intake, terminal: Terminal) -> None:
    """The first line is the count and the oldest age, by the first sending."""
    intake.die(**{"first-sent-at": stamp(START_MS - 90_000_000)})
    intake.clock.advance(61)
    intake.die()
    result = terminal.run("redrive-messages")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "2 messages in the dead letters; the oldest was first sent 1 d 1 h ago",
        "2 messages moved back to the intake queue",
    ]
    assert result.stderr == ""


def test_the_limit_is_kept(intake: Intake, terminal: Terminal) -> None:
    """What was asked for was done, so the exit code is 0; the rest is there at once."""
    for _ in range(5):
        intake.die()
    document = terminal.json("redrive-messages", "--limit", "2")
    assert (document["found"], document["moved"]) == (5, 2)
    assert len(intake.came()) == 2
    assert len(intake.dead()) == 3


@pytest.mark.parametrize("words", [(), ("--limit", "9")], ids=["no limit", "a limit above"])
def test_what_comes_meanwhile_is_for_another_run(
    intake: Intake, terminal: Terminal, sqs: FaultyClient, words: tuple[str, ...]
) -> None:
    """Each copy dies at once: the run ends nevertheless, after those that were there."""
    for _ in range(3):
        intake.die()
    sqs.before["send_message"] = [intake.die] * 9
    assert terminal.json("redrive-messages", *words)["moved"] == 3
    assert len(intake.dead()) == 3


@pytest.mark.parametrize(
    ("words", "seconds"),
    [((), 0.4), (("--rate", "2"), 2), (("--rate", "1000"), 0.004)],
    ids=["default", "slow", "fast"],
)
def test_the_rate_is_kept(
    intake: Intake, terminal: Terminal, words: tuple[str, ...], seconds: float
) -> None:
    """Five messages have four pauses between them; nobody waits after the last."""
    for _ in range(5):
        intake.die()
    assert terminal.json("redrive-messages", *words)["moved"] == 5
    assert intake.clock() == START_MS + seconds * 1000


def test_the_time_that_a_call_takes_is_no_pause(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """At 2 a second each has 500 ms: a send that takes 300 ms is followed by 200 ms."""
    for _ in range(3):
        intake.die()
    sqs.before["send_message"] = [lambda: intake.clock.advance(0.3)] * 3
    terminal.json("redrive-messages", "--rate", "2")
    assert intake.clock() == START_MS + 500 + 500 + 300


@pytest.mark.parametrize("back_s", [5, 86_400])
def test_a_clock_that_is_set_back_makes_nobody_wait(
    intake: Intake, terminal: Terminal, sqs: FaultyClient, back_s: int
) -> None:
    """The pause is that of one message at most."""
    intake.die()
    intake.die()
    intake.clock.advance(86_400)
    sqs.before["delete_message"] = [lambda: intake.clock.advance(-back_s)]
    terminal.json("redrive-messages", "--rate", "1")
    assert intake.clock() == START_MS + (86_400 - back_s) * 1000 + 1000


def test_a_dry_run_changes_nothing(intake: Intake, terminal: Terminal, sqs: FaultyClient) -> None:
    """It reads the numbers and receives once, hiding nothing; no body is on the screen."""
    for at in range(12):
        intake.die(f'{{"guid":"G-{at}","to":"A002"}}')
    intake.clock.advance(120)
    result = terminal.run("redrive-messages", "--dry-run")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "12 messages in the dead letters; the oldest of 10 looked at was first sent 2 min ago"
    )
    assert sum("G-" in line for line in lines[2:]) == 10
    assert "A002" not in result.output
    assert sqs.calls == ["get_queue_attributes", "receive_message"]
    assert sqs.requests[1]["VisibilityTimeout"] == 0
    assert intake.came() == []
    assert len(intake.dead()) == 12


def test_a_dry_run_has_its_document(intake: Intake, terminal: Terminal) -> None:
    """A message is named by its id, GUID and times; one that would be left says why."""
    one = intake.die()
    full = intake.die(**ten())
    intake.receive(intake.dead_url, hidden_s=0)
    intake.clock.advance(60)
    document = terminal.json("redrive-messages", "--dry-run")
    sample = document.pop("sample")
    assert document == {
        "dry_run": True,
        "found": 2,
        "hidden": 0,
        "looked_at": 2,
        "oldest_ms": 60_000,
    }
    assert sample[0] == {
        "message_id": one,
        "guid": "G-1",
        "first_sent_at": rfc3339(START_MS),
        "receive_count": 2,  # The test's own, and this look.
        "reason": None,
    }
    assert sample[1]["message_id"] == full
    assert "10 attributes" in sample[1]["reason"]


@pytest.mark.parametrize(
    ("body", "attributes", "guid"),
    [
        (BODY, {}, "G-1"),
        ("no JSON", {"idempotency-key": text("G-2")}, "G-2"),
        (BODY, {"Idempotency-Key": text('"G-2"')}, "G-2"),
        ("x", {"idempotency-key": {"DataType": "Binary", "BinaryValue": b"G-2"}}, "G-2"),
        (BODY, {"idempotency-key": text("a b")}, None),
        ("x", {"idempotency-key": {"DataType": "Binary", "BinaryValue": b"\xff"}}, None),
        ('{"guid":5}', {}, None),
        ("{}", {}, None),
        ('["guid"]', {}, None),
        ("no JSON", {}, None),
    ],
    ids=[
        *("body", "attribute", "quoted", "bytes", "bad attribute", "bad bytes"),
        *("number", "no guid", "list", "text"),
    ],
)
def test_the_guid_is_told_where_one_can_be_read(
    intake: Intake, terminal: Terminal, body: str, attributes: dict[str, Any], guid: str | None
) -> None:
    """By the attribute, else by the body; nothing of either is shown where there is none."""
    intake.die(body, **attributes)
    (shown,) = terminal.json("redrive-messages", "--dry-run")["sample"]
    assert shown["guid"] == guid


def test_no_text_of_a_message_holds_its_payload(intake: Intake) -> None:
    """A fault of the program shows values: those are not among them."""
    intake.die('{"to":"A002"}', account=text("A001"))
    (message,) = intake.receive(intake.dead_url)
    letter = read_letter(message)
    assert letter.message_id in repr(letter)
    assert "A00" not in repr(letter)


@pytest.mark.parametrize("words", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_an_empty_queue_is_done(
    terminal: Terminal, sqs: FaultyClient, words: tuple[str, ...]
) -> None:
    """Nothing is received, nothing is waited for."""
    result = terminal.run("redrive-messages", *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("0 messages in the dead letters\n")
    assert sqs.calls == ["get_queue_attributes"]


def test_messages_that_another_reader_hides_are_told(intake: Intake, terminal: Terminal) -> None:
    """They are left, so it is done in part; with a limit it is what was asked for."""
    intake.die()
    intake.receive(intake.dead_url)
    intake.die()
    intake.die()
    assert terminal.json("redrive-messages", "--limit", "1")["hidden"] == 1
    result = terminal.run("redrive-messages")
    assert result.exit_code == 3
    assert "1 message hidden by another reader" in result.stderr

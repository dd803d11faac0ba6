"""`relayhub redrive-messages` where a call fails: nothing is lost, all is told, and it ends."""

from __future__ import annotations

from typing import Any

import pytest

from cli.dead_letters import HIDDEN_S
from tests.emulated import FaultyClient, never_arrives, refused, reply_lost
from tests.integration.cli_kit import Terminal
from tests.integration.redrive_kit import Intake, at_stack, faulty, make_intake, ten
from tests.world import KilledError, World


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


def passed(operation: Any, request: dict[str, Any]) -> Any:
    """Let a call through: the fault is for a later one."""
    return operation(**request)


def test_a_message_whose_send_fails_is_left(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """It is there for others at once, named with AWS's reason; the rest is moved."""
    bad = intake.die()
    intake.die()
    sqs.faults["send_message"] = [refused("InvalidParameterValue")]
    document = terminal.json("redrive-messages", code=3)
    assert document["moved"] == 1
    (left,) = document["left"]
    assert left["message_id"] == bad
    assert "InvalidParameterValue" in left["reason"]
    assert [each["MessageId"] for each in intake.dead()] == [bad]
    assert len(intake.came()) == 1


def test_a_send_whose_answer_is_lost_leaves_both(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """Nobody knows, so it is not deleted: a copy too many is harmless, one too few is not."""
    intake.die()
    intake.die()
    sqs.faults["send_message"] = [reply_lost]
    document = terminal.json("redrive-messages", code=3)
    assert "may have happened" in document["left"][0]["reason"]
    assert len(intake.came()) == 2
    assert len(intake.dead()) == 1


def test_three_failures_in_a_row_end_the_run(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """What was done before is told; who may not send is not asked for each message again."""
    for _ in range(6):
        intake.die()
    denied = refused("AccessDenied")
    sqs.faults["send_message"] = [denied, denied, passed, denied, denied, denied]
    result = terminal.run("redrive-messages")
    assert result.exit_code == 1
    assert "1 message moved back to the intake queue" in result.stdout
    assert "3 in a row failed, the rest was left" in result.stderr
    assert "docs/cli.md" in result.stderr
    assert sqs.calls.count("send_message") == 6
    assert len(intake.dead()) == 5


def test_a_run_that_moved_nothing_for_a_failure_has_failed(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """One message, one refusal: that is not done in part."""
    intake.die()
    sqs.faults["send_message"] = [refused("AccessDenied")]
    document = terminal.json("redrive-messages", code=1)
    assert (document["moved"], len(document["left"])) == (0, 1)


def test_a_lost_delete_is_told(intake: Intake, terminal: Terminal, sqs: FaultyClient) -> None:
    """The message was moved and is still there; the next run moves it once more."""
    lost = intake.die()
    intake.die()
    sqs.faults["delete_message"] = [never_arrives]
    result = terminal.run("redrive-messages")
    assert result.exit_code == 3
    assert "2 messages moved back to the intake queue" in result.stdout
    assert f"{lost} (G-1) moved, but not deleted: delete_message got no answer" in result.stdout
    assert "1 message moved and not deleted" in result.stderr
    assert terminal.json("redrive-messages")["moved"] == 1
    assert len(intake.came()) == 3
    assert intake.dead() == []


def test_it_is_deleted_only_after_it_was_sent(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """A command that dies in between leaves the message in both queues, and in neither never."""
    intake.die()

    def killed(*_: Any) -> None:
        raise KilledError

    sqs.faults["delete_message"] = [killed]
    with pytest.raises(KilledError):
        terminal.run("redrive-messages")
    assert len(intake.came()) == 1
    assert len(intake.dead()) == 1


def test_an_interrupt_tells_what_was_moved_and_hides_nothing(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """Ctrl-C before the second send: it is there for others at once."""
    intake.die()
    intake.die()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    sqs.faults["send_message"] = [passed, interrupted]
    result = terminal.run("redrive-messages")
    assert result.exit_code == 130
    assert "1 message moved back to the intake queue" in result.stdout
    assert len(intake.dead()) == 1
    assert len(intake.came()) == 1


def test_a_queue_that_can_no_longer_be_read_ends_the_run(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """What was moved until then is told, and the error is one sentence."""
    intake.die()
    intake.die()
    sqs.faults["receive_message"] = [passed, passed, refused("AccessDenied")]
    result = terminal.run("redrive-messages")
    assert result.exit_code == 1
    assert "1 message moved back to the intake queue" in result.stdout
    assert "AccessDenied" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_what_cannot_be_given_back_does_not_hide_the_result(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """It comes back by itself when its hiding is over."""
    full = intake.die(**ten())
    sqs.faults["change_message_visibility"] = [refused("AccessDenied")]
    assert len(terminal.json("redrive-messages", code=3)["left"]) == 1
    assert intake.dead() == []
    intake.clock.advance(HIDDEN_S + 1)
    assert [each["MessageId"] for each in intake.dead()] == [full]


def test_fewer_messages_than_were_counted_are_told(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """SQS's count is approximate, and another person may run the same command."""
    intake.die()
    intake.die()
    sqs.before["delete_message"] = [lambda: intake.receive(intake.dead_url)]
    result = terminal.run("redrive-messages")
    assert result.exit_code == 3
    assert "1 message moved back" in result.stdout
    assert "fewer came than SQS counted" in result.stderr


def test_a_message_that_was_left_is_not_tried_again_in_the_same_run(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """Its hiding is over before the run is: it takes nobody's turn, and is named once."""
    full = intake.die(**ten())
    intake.die()
    intake.die()
    sqs.before["send_message"] = [lambda: intake.clock.advance(HIDDEN_S + 1)]
    document = terminal.json("redrive-messages", code=3)
    assert document["moved"] == 2
    assert [each["message_id"] for each in document["left"]] == [full]
    assert [each["MessageId"] for each in intake.dead()] == [full]


def test_a_delete_that_was_lost_is_made_up_for_in_the_same_run(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """The message is seen again: it is deleted, not sent once more."""
    for _ in range(3):
        intake.die()
    sqs.faults["delete_message"] = [never_arrives]
    sqs.before["send_message"] = [lambda: None, lambda: intake.clock.advance(HIDDEN_S + 1)]
    document = terminal.json("redrive-messages")
    assert (document["moved"], document["not_deleted"]) == (3, [])
    assert len(intake.came()) == 3
    assert intake.dead() == []


def test_a_message_that_comes_again_and_again_ends_the_run(
    intake: Intake, terminal: Terminal, sqs: FaultyClient
) -> None:
    """A queue that hides nothing may show the same for ever; the run gives up and says so."""
    intake.die(**ten())
    intake.die()
    (first, _) = intake.receive(intake.dead_url, hidden_s=0)
    sqs.faults["receive_message"] = [lambda *_: {"Messages": [first]}] * 1_500
    result = terminal.run("redrive-messages")
    assert result.exit_code == 3
    assert "run it again to be sure" in result.stderr
    assert sqs.calls.count("receive_message") < 1_100
    assert intake.came() == []

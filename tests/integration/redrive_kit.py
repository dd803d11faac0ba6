"""The intake queue and its dead letters for the command line's tests, on the test's own clock."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from cli.dead_letters import ATTRIBUTES_MAX
from tests.emulated import FaultyClient, client, make_queue
from tests.integration.cli_kit import Terminal, make_stack
from tests.world import Clock, World

BODY: Final = '{"guid":"G-1","amount":100}'
INTAKE: Final = "IntakeQueueUrl"
DEAD_LETTERS: Final = "IntakeDeadLetterQueueUrl"
HOUR_S: Final = 3_600


def text(value: str, kind: str = "String") -> dict[str, Any]:
    """Return a message attribute of text."""
    return {"DataType": kind, "StringValue": value}


def stamp(ms: int) -> dict[str, Any]:
    """Return the attribute of a time of first sending."""
    return text(str(ms))


def ten(**first: Any) -> dict[str, Any]:
    """Return as many attributes as a message can have."""
    rest = {f"a{at}": text("x") for at in range(ATTRIBUTES_MAX - len(first))}
    return first | rest


@dataclass
class Intake:
    """The two queues, at SQS's own client: no fault of the command line's reaches it."""

    url: str
    dead_url: str
    clock: Clock
    sqs: Any = field(default_factory=lambda: client("sqs"))

    def die(self, body: str = BODY, /, **attributes: Any) -> str:
        """Put a message into the dead letters, sent now; return its id."""
        request = {"QueueUrl": self.dead_url, "MessageBody": body, "MessageAttributes": attributes}
        return str(self.sqs.send_message(**request)["MessageId"])

    def came(self) -> list[dict[str, Any]]:
        """Return what the intake queue holds and is not hidden, and take it away."""
        return self._take(self.url)

    def dead(self) -> list[dict[str, Any]]:
        """Return what the dead letters hold and is not hidden, and take it away."""
        return self._take(self.dead_url)

    def _take(self, url: str) -> list[dict[str, Any]]:
        taken = []
        while found := self.receive(url):
            taken += found
            for each in found:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return taken

    def receive(self, url: str, hidden_s: int = HOUR_S) -> list[dict[str, Any]]:
        """Return up to ten messages with all that SQS says of them."""
        found = self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=hidden_s,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        return list(found.get("Messages", ()))


def make_intake(world: World, monkeypatch: pytest.MonkeyPatch) -> Intake:
    """Return the queues; SQS's times, its hiding and its long polls are the test's clock's."""
    clock, moments = world.clock, itertools.count(1)

    def now_ms() -> float:
        # moto hides what was shown until later than now; here no time passes by itself.
        return clock() + next(moments) / 4_096

    def wait(_: object, timeout: float) -> None:
        clock.advance(timeout)

    monkeypatch.setattr("moto.sqs.models.unix_time_millis", now_ms)
    monkeypatch.setattr("moto.sqs.models.unix_time", lambda: now_ms() / 1000)
    monkeypatch.setattr("moto.sqs.models.Queue.wait_for_messages", wait)
    return Intake(world.intake_url, make_queue("relayhub-intake-dead-letters"), clock)


def at_stack(world: World, intake: Intake) -> Terminal:
    """Return a command line at a stack with the queues."""
    make_stack(world.queue_url, more={INTAKE: intake.url, DEAD_LETTERS: intake.dead_url})
    return Terminal(world.clock)


def faulty(terminal: Terminal) -> FaultyClient:
    """Return the command line's SQS client, whose calls can fail from now on."""
    terminal.clients["sqs"] = made = FaultyClient(client("sqs"))
    return made

"""What the function writes: one JSON line per step, metrics, and never a word of the payload."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from relayhub import telemetry
from relayhub.core import Answered, Doubt, NotSent, SendOutcome
from relayhub.ledger import Ledger
from relayhub.message import Answer
from tests.world import TABLE, World, get_event, post_event

SECRET = "a-word-of-the-payload"
BODY = json.dumps({"amount": 100, "note": SECRET, "account": "4711-0815"}).encode()
ANSWER = Answer(200, "application/json", b'{"code":"0000","balance":"99887766"}', "0000")


@dataclass
class Log:
    """What was logged, as text and as lines."""

    stream: io.StringIO

    def text(self) -> str:
        """Return everything."""
        return self.stream.getvalue()

    def lines(self) -> list[dict[str, Any]]:
        """Return every line, each of which must be one JSON object."""
        return [json.loads(line) for line in self.text().splitlines()]

    def steps(self) -> list[dict[str, Any]]:
        """Return the lines of steps."""
        return [line for line in self.lines() if line["message"] == "step"]


@pytest.fixture
def log(world: World) -> Iterator[Log]:
    """Let the world's hub write its real log, and return it."""
    world.hub = replace(
        world.hub,
        note=telemetry.note,
        ledger=Ledger(world.dynamo, TABLE, shards=16, on_step=telemetry.step, pause=lambda _: None),
    )
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(telemetry.logger.registered_formatter)
    telemetry.logger.addHandler(handler)
    yield Log(stream)
    logging.getLogger("relayhub").removeHandler(handler)
    telemetry.metrics.clear_metrics()


def test_each_step_is_one_line_with_what_one_looks_for(world: World, log: Log) -> None:
    """GUID, channel, event, from, to, attempt and elapsed time."""
    world.core.during.append(lambda: world.clock.advance(1.5))
    world.post()
    claimed, answered = log.steps()
    assert {name: claimed[name] for name in ("guid", "channel", "event", "to_state")} == {
        "guid": "G-1",
        "channel": "atm",
        "event": "claimed",
        "to_state": "SENT",
    }
    assert "from_state" not in claimed
    assert (answered["from_state"], answered["to_state"]) == ("SENT", "DONE")
    assert (answered["attempt"], answered["elapsed_ms"], answered["code"]) == (1, 1_500, "0000")


def test_every_answer_is_one_line_too(world: World, log: Log) -> None:
    """With its code, status and how long it took."""
    world.post()
    world.post(None)
    answers = [line for line in log.lines() if line["message"] == "answered"]
    assert [(line["code"], line["status"]) for line in answers] == [("0000", 200), ("E905", 400)]


def test_no_word_of_the_payload_is_ever_logged(world: World, log: Log) -> None:
    """Neither body, nor headers, nor the core's answer, whatever becomes of the request."""
    marked = {"x-operation": "transfer", "authorization": SECRET, "x-other": SECRET}
    outcomes: tuple[SendOutcome, ...] = (
        Answered(ANSWER),
        NotSent("connect_refused"),
        Doubt("no_answer", aborted=True),
    )
    for number, outcome in enumerate(outcomes):
        world.core.outcomes.append(outcome)
        for _ in range(2):
            world.post(f"G-{number}", BODY, headers=marked)
            world.post(f"G-{number}", BODY + b" ", headers=marked)
    world.post("G-9", b'{"guid":"' + SECRET.encode() + b' "}', headers=marked)
    world.post("G-9", BODY, headers={**marked, "x-operation": f"{SECRET} "})
    world.post("G-9", BODY, headers={**marked, "valid-until": SECRET})
    world.post("G-9", BODY, headers={**marked, "content-type": f"{SECRET} "})
    world.kill("G-7", body=BODY, headers=marked)
    text = log.text()
    assert len(log.lines()) > 20
    for word in (SECRET, "4711-0815", "99887766", "amount", "balance"):
        assert word not in text


def test_a_fault_inside_is_logged_without_the_payload(world: World, log: Log) -> None:
    """The line names the kind of error; its text could hold what was being handled."""

    def break_down() -> None:
        raise ValueError(f"cannot handle {SECRET}")

    world.core.during.append(break_down)
    world.post("G-1", BODY)
    (fault,) = [line for line in log.lines() if line["level"] == "ERROR"]
    assert fault["error"] == "ValueError"
    assert SECRET not in log.text()


class Context:
    """What Lambda hands over beside the event."""

    function_name = "relay"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:relay"
    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        """Return the whole time of a fresh function."""
        return 25_000


def test_the_deployed_function_answers_and_gives_its_metrics(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real handler with its own hub: base64 out, EMF metrics, a core that refuses."""
    from functions.relay.handler import handler  # noqa: PLC0415 - it builds its hub at import

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        response = handler(post_event(), Context())
    assert (response["statusCode"], response["isBase64Encoded"]) == (202, True)
    assert world.held().state == "FAILED"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    (emf,) = [line for line in lines if "_aws" in line]
    (directive,) = emf["_aws"]["CloudWatchMetrics"]
    names = {each["Name"] for each in directive["Metrics"]}
    assert directive["Namespace"] == "relayhub"
    assert names >= {"Step.claimed", "Step.not_sent"}
    assert all(name in emf for name in names)
    assert world.hints() == [{"guid": "G-1", "attempt": 1}]


@pytest.mark.parametrize("event", [get_event("G-1"), post_event(None), {}])
def test_an_answer_without_a_step_warns_of_nothing(world: World, event: dict[str, Any]) -> None:
    """A status, a duplicate and a refusal have no metric: no warning in the log for each."""
    del world
    from functions.relay.handler import handler  # noqa: PLC0415 - it builds its hub at import

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handler(event, Context())

"""The message function as it is deployed: its answers, metrics and log, and what it never says."""

from __future__ import annotations

import io
import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.relay.handler import handler as http_handler
from functions.relay.messages import NotTakenError, handler
from relayhub import telemetry
from relayhub.hub import epoch_ms
from relayhub.message_event import UnknownEventError
from tests.emulated import client
from tests.message_events import (
    PREFER,
    TOPIC,
    Event,
    accepted_message,
    kafka_event,
    kafka_record,
    put_aside,
    sqs_event,
    sqs_message,
)
from tests.world import World, post_event

SECRET = "a-word-of-the-payload"
DAY_MS = 86_400_000


class Context:
    """What Lambda hands over beside the event."""

    function_name = "messages"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:messages"
    aws_request_id = "request-1"

    def __init__(self, left_ms: int) -> None:
        self.left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still live."""
        return self.left_ms


def invoke(event: Event, left_ms: int = 60_000) -> dict[str, Any]:
    """Invoke the function with its own hub: the wall clock, and a core that is not there."""
    answer: dict[str, Any] = handler(event, cast("LambdaContext", Context(left_ms)))
    return answer


@pytest.fixture(autouse=True)
def _no_metrics_of_before() -> None:
    """Forget what tests that use the flows alone have counted."""
    telemetry.metrics.clear_metrics()


def counted(capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """Return the metrics that were written since the last look."""
    found: Counter[str] = Counter()
    for line in capsys.readouterr().out.splitlines():
        emf = json.loads(line)
        if "_aws" in emf:
            (directive,) = emf["_aws"]["CloudWatchMetrics"]
            assert (directive["Namespace"], directive["Dimensions"]) == ("relayhub", [["service"]])
            for each in directive["Metrics"]:
                found[each["Name"]] += int(sum(emf[each["Name"]]))
    return found


@pytest.fixture
def log(world: World) -> Iterator[io.StringIO]:
    """Catch what the function logs."""
    del world
    stream = io.StringIO()
    catcher = logging.StreamHandler(stream)
    catcher.setFormatter(telemetry.logger.registered_formatter)
    telemetry.logger.addHandler(catcher)
    yield stream
    logging.getLogger("relayhub").removeHandler(catcher)


def lines(log: io.StringIO, message: str) -> list[dict[str, Any]]:
    """Return the lines of that message; each line of the log must be a JSON object."""
    every = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in every if line["message"] == message]


def now(guid: str | None = "G-1", body: str = '{"amount":100}', **more: Any) -> Any:
    """Return a message that was sent now."""
    return sqs_message(guid, body, **{"sent_ms": epoch_ms(), **more})


def test_the_function_answers_a_batch_and_counts_what_became_of_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not sent but recorded, put aside for each reason, dropped: nothing comes again."""
    other = now("G-1", '{"amount":7}')
    old = now("G-2", sent_ms=epoch_ms() - 29 * DAY_MS)
    event = sqs_event(now(), now(None), other, old, accepted_message("G-9"), now(None))
    assert invoke(event) == {"batchItemFailures": []}
    assert world.held().state == "FAILED"
    assert [each["code"] for each in put_aside(world)] == ["E905", "E904", "E907", "E905"]
    names = {"MessageRejected": 4, "Rejected.E904": 1, "Rejected.E905": 2, "Rejected.E907": 1}
    taken = {"Message.recorded": 1, "Message.rejected": 4, "Message.dropped": 1}
    steps = {"Step.claimed": 1, "Step.not_sent": 1, "CoreRefused": 1}
    assert counted(capsys) == names | taken | steps
    assert world.hints() == [{"guid": "G-1", "attempt": 1}]


def test_what_comes_again_is_named_and_counted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """No time for a call: by SQS the messages' ids."""
    answer = invoke(sqs_event(now(), now("G-2")), left_ms=10_000)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}, {"itemIdentifier": "m-2"}]}
    assert world.row() is None
    assert counted(capsys) == {"MessageGivenBack": 2, "Message.given_back": 2}


def test_a_batch_that_fails_whole_still_gives_its_metrics(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says how many and where, and nothing of what is in them."""
    record = kafka_record("G-1", SECRET.encode(), key=SECRET.encode(), sent_ms=epoch_ms())
    with pytest.raises(NotTakenError, match="1 of 1 records come again") as caught:
        invoke(kafka_event([record]), left_ms=10_000)
    assert SECRET not in str(caught.value)
    assert TOPIC in str(caught.value)
    assert counted(capsys) == {"MessageGivenBack": 1, "Message.given_back": 1}
    assert world.row() is None


def test_an_order_at_risk_is_counted_where_there_is_one(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """One record with a key and one without, both not sent now."""
    sent_ms = epoch_ms()
    records = [kafka_record("G-1", sent_ms=sent_ms), kafka_record("G-2", key=None, sent_ms=sent_ms)]
    assert invoke(kafka_event(records)) == {"batchItemFailures": []}
    found = counted(capsys)
    assert (found["OrderAtRisk"], found["Message.recorded"]) == (1, 2)
    assert len(world.hints()) == 2


def test_a_rejects_queue_that_is_gone_is_counted_as_given_back(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not as put aside."""
    client("sqs").delete_queue(QueueUrl=world.intake_rejects_url)
    answer = invoke(sqs_event(now(None), now("G-2")))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    found = counted(capsys)
    assert (found["MessageGivenBack"], found["MessageRejected"]) == (1, 0)
    assert (found["Message.given_back"], found["Message.recorded"]) == (1, 1)


def test_an_accepted_requests_lost_message_is_counted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the HTTP function: 202 all the same."""
    client("sqs").delete_queue(QueueUrl=world.intake_url)
    event = post_event(headers=PREFER)
    response = http_handler(event, cast("LambdaContext", Context(25_000)))
    assert (response["statusCode"], world.held().state) == (202, "RECEIVED")
    assert response["headers"]["Preference-Applied"] == "respond-async"
    found = counted(capsys)
    assert (found["IntakeLost"], found["Step.accepted"], found["Answer.E903"]) == (1, 1, 1)


STRANGE: list[Any] = [
    pytest.param({}, id="empty"),
    pytest.param({"Records": None}, id="null"),
    pytest.param({"Records": {}}, id="no_list"),
    pytest.param({"Records": [{"eventSource": "aws:s3", "messageId": "1"}]}, id="another_source"),
    pytest.param({"Records": [{"eventSource": "aws:sqs", "body": "{}"}]}, id="no_message_id"),
    pytest.param({"eventSource": "aws:kafka"}, id="no_records"),
    pytest.param({"eventSource": "aws:kafka", "records": [1]}, id="no_partitions"),
    pytest.param(post_event(), id="an_http_call"),
]


@pytest.mark.filterwarnings("ignore:No application metrics:UserWarning")
@pytest.mark.parametrize("event", STRANGE)
def test_an_event_of_something_else_is_no_batch_that_was_taken(world: World, event: Event) -> None:
    """It fails, so that nobody takes an empty answer for a success; nothing is read or written."""
    with pytest.raises(UnknownEventError, match="no event of SQS or Kafka"):
        handler(event, cast("LambdaContext", Context(60_000)))
    assert (world.row(), put_aside(world)) == (None, [])


def test_every_record_is_one_line_that_names_it(world: World, log: io.StringIO) -> None:
    """GUID, origin, what became of it, and with which code."""
    del world
    invoke(sqs_event(now(), accepted_message("G-9"), now(None)))
    invoke(kafka_event([kafka_record("G-2", sent_ms=epoch_ms())], first=41))
    told = lines(log, "message")
    of_sqs = [(each["message_id"], each["taken"], each.get("code")) for each in told[:3]]
    assert of_sqs == [
        ("m-1", "recorded", "E902"),
        ("m-2", "dropped", None),
        ("m-3", "rejected", "E905"),
    ]
    assert (told[3]["guid"], told[3]["topic"], told[3]["partition"], told[3]["offset"]) == (
        *("G-2", TOPIC, 0, 41),
    )
    (rejected,) = lines(log, "message_rejected")
    assert (rejected["level"], rejected["code"], rejected["message_id"]) == (
        *("WARNING", "E905", "m-3"),
    )
    assert "GUID is missing" in rejected["reason"]


def test_the_steps_of_a_message_name_who_took_it(world: World, log: io.StringIO) -> None:
    """Its channel is its source, and the actor is not the HTTP function."""
    del world
    invoke(sqs_event(now()))
    told = [(each["by"], each["channel"], each["to_state"]) for each in lines(log, "step")]
    channel = "sqs:relayhub-intake"
    assert told == [("messages", channel, "SENT"), ("messages", channel, "FAILED")]


def test_no_word_of_the_payload_is_ever_logged(world: World, log: io.StringIO) -> None:
    """Neither of body, headers, key nor value, whatever is wrong with them."""
    body = json.dumps({"note": SECRET})
    wrong: list[dict[str, str]] = [
        {},
        *({name: f"{SECRET}/"} for name in ("delivery", "valid-until", "x-operation")),
        {"content-type": f"{SECRET}/"},
        {"first-sent-at": SECRET},
        {"x-other": SECRET},
    ]
    messages = [now(f"G-{n}", body, attributes=each) for n, each in enumerate(wrong)]
    messages += [
        now("G-0", body + " "),
        now(f"{SECRET}/", body),
        now(None, f'{{"guid":"{SECRET}/"}}'),
    ]
    messages += [now("G-8", body) | {"attributes": {"SentTimestamp": SECRET}}]
    invoke(sqs_event(*messages))
    marked = [(name, f"{SECRET}/".encode()) for name in ("delivery", "other")]
    more: Any = {"key": SECRET.encode(), "headers": marked, "sent_ms": epoch_ms()}
    invoke(kafka_event([kafka_record("G-9", body.encode(), **more)]))
    assert len(put_aside(world)) == 10
    assert len(lines(log, "message")) == 12
    assert SECRET not in log.getvalue()


def test_a_fault_inside_is_one_line_without_the_payload(
    world: World, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record that breaks the reading is put aside; the log says where, never what."""
    broken = now() | {"messageAttributes": {7: SECRET}}
    assert invoke(sqs_event(broken)) == {"batchItemFailures": []}
    (fault,) = lines(log, "fault")
    assert (fault["level"], fault["error"]) == ("ERROR", "AttributeError")
    assert SECRET not in log.getvalue()
    found = counted(capsys)
    assert (found["Fault"], found["MessageRejected"], len(put_aside(world))) == (1, 1, 1)


def test_the_message_of_a_row_that_cannot_be_read_is_put_aside(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be met each time, and on Kafka stop its partition; a person mends the row."""
    invoke(sqs_event(now()))
    world.edit(state="A_WORD_OF_NO_VERSION")
    counted(capsys)
    answer = invoke(sqs_event(now(), now("G-2")))
    assert answer == {"batchItemFailures": []}
    assert (counted(capsys)["Rejected.E901"], world.held("G-2").state) == (1, "FAILED")
    (aside,) = put_aside(world)
    assert (aside["code"], aside["guid"]) == ("E901", "G-1")
    assert "Mend the row" in aside["reason"]

"""The functions of resolver, reprocessor and purger: an event in, the platform's answer out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.purger.handler import handler as purge_handler
from functions.reprocessor.handler import handler as reprocess_handler
from functions.reprocessor.handler import take
from functions.resolver.handler import handler as resolve_handler
from relayhub.core import NotSent
from relayhub.hub import epoch_ms
from relayhub.message_event import UnknownEventError
from relayhub.settings import SettingsError
from relayhub.states import State
from tests.emulated import client, make_queue
from tests.maintenance import (
    NOT_FOUND,
    RUN_MS,
    accept,
    failed_row,
    hint_body,
    put_rows,
    resolver,
)
from tests.plant import Plant, Works
from tests.world import START_MS, KilledError, refused

# A run without a metric is legal; Powertools says so by a warning.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics:UserWarning")


@dataclass(frozen=True)
class Context:
    """What the platform tells a function of itself."""

    left_ms: int = RUN_MS
    function_name: str = "function"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still live."""
        return self.left_ms


def context(left_ms: int = RUN_MS) -> LambdaContext:
    """Return the platform's context."""
    return cast("LambdaContext", Context(left_ms))


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS; the queues have the names of the environment."""
    del aws
    works = Works()
    make_queue("relayhub-rejects")
    return works


def records(*bodies: str) -> dict[str, Any]:
    """Return the event of a batch of messages."""
    return {
        "Records": [
            {"messageId": f"m-{number}", "body": body, "eventSource": "aws:sqs"}
            for number, body in enumerate(bodies, 1)
        ]
    }


def rejected(url: str) -> list[dict[str, Any]]:
    """Take what was put aside."""
    found = client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [json.loads(each["Body"]) for each in found.get("Messages", [])]


def batch(works: Works, *bodies: str) -> list[bool]:
    """Take each message of a batch, as the function does."""
    event = records(*bodies)
    return [take(works.hub, each, works.clock() + RUN_MS) for each in event["Records"]]


def test_one_bad_message_is_put_aside_and_the_other_nine_are_executed(works: Works) -> None:
    """Ten messages, the seventh malformed."""
    guids = [f"G-{number}" for number in range(1, 11)]
    for guid in guids:
        works.fail(guid)
    bodies = [hint_body(guid, 1) for guid in guids]
    bodies[6] = '{"guid":"G-7","attempt":"one"}'
    works.core.findings += [NOT_FOUND] * 9
    before = works.item("G-7")
    assert batch(works, *bodies) == [True] * 10
    done = [guid for guid in guids if works.held(guid).state is State.DONE]
    assert done == [guid for guid in guids if guid != "G-7"]
    assert works.item("G-7") == before
    assert len(works.core.sent) == 10 + 9
    (aside,) = rejected(works.rejects_url)
    assert (aside["body"], works.noted("hint_rejected")) == (bodies[6], 1)
    assert "attempt" in aside["reason"]


def test_a_malformed_hint_that_cannot_be_put_aside_comes_again(works: Works) -> None:
    """It is not lost, and the others of its batch are taken."""
    works.fail("G-1")
    works.core.findings.append(NOT_FOUND)
    works.sqs.faults["send_message"].append(refused("AccessDenied", 403))
    assert batch(works, "nonsense", hint_body("G-1", 1)) == [False, True]
    assert works.held("G-1").state is State.DONE


def test_a_hint_of_a_number_too_long_to_read_is_put_aside(works: Works) -> None:
    """Else it would come again for as long as the queue keeps it."""
    body = '{"guid":"G-1","attempt":' + "9" * 5_000 + "}"
    assert batch(works, body) == [True]
    assert len(rejected(works.rejects_url)) == 1


def test_a_long_reject_is_cut(works: Works) -> None:
    """A queue's message has a limit, and so has what a person wants to read."""
    batch(works, "x" * 200_000)
    (aside,) = rejected(works.rejects_url)
    assert len(aside["body"]) == 4_096


def test_only_what_was_not_looked_at_comes_again(works: Works) -> None:
    """A ledger that does not answer for one row gives that one back alone."""
    for guid in ("G-1", "G-2", "G-3"):
        works.fail(guid)
    works.core.findings += [NOT_FOUND] * 3
    throttled = [refused("ThrottlingException")] * 2
    works.dynamo.before["update_item"] += [
        lambda: None,  # The claim of the first; its outcome is written after this.
        lambda: works.dynamo.faults["get_item"].extend(throttled),
    ]
    assert batch(works, *(hint_body(f"G-{n}", 1) for n in (1, 2, 3))) == [True, False, True]
    states = [works.held(f"G-{n}").state for n in (1, 2, 3)]
    assert states == [State.DONE, State.FAILED, State.DONE]


def test_a_fault_of_one_record_harms_no_other(
    works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever nobody expected: that one comes again, and the log names it, not what it says."""
    works.fail("G-1")
    works.fail("G-2")

    def fault() -> None:
        raise RuntimeError("a fault of this row alone")

    works.core.during_ask.append(fault)
    works.core.findings += [NOT_FOUND] * 2
    assert batch(works, hint_body("G-1", 1), hint_body("G-2", 1)) == [False, True]
    (fault_line,) = [vars(each) for each in caplog.records if each.message == "fault"]
    assert (fault_line["guid"], fault_line["error"]) == ("G-1", "RuntimeError")
    assert "a fault of this row alone" not in str(fault_line)


def test_a_batch_that_takes_long_gives_back_what_no_longer_fits(works: Works) -> None:
    """Nothing is begun that the function's end could cut off."""
    for number in (1, 2, 3):
        works.fail(f"G-{number}")
    works.core.findings += [NOT_FOUND] * 3
    works.core.during += [lambda: works.clock.advance(16)] * 3
    dead_at_ms = works.clock() + RUN_MS
    event = records(*(hint_body(f"G-{n}", 1) for n in (1, 2, 3)))
    taken = [take(works.hub, each, dead_at_ms) for each in event["Records"]]
    assert taken == [True, True, False]
    assert works.held("G-3").state is State.FAILED


def test_a_kill_in_mid_batch_takes_nobody_elses_attempt(works: Works) -> None:
    """The rest of the batch was not begun; all of it comes again."""
    works.fail("G-1")
    works.fail("G-2")

    def die() -> None:
        raise KilledError

    works.core.during.append(die)
    works.core.findings += [NOT_FOUND] * 2
    with pytest.raises(KilledError):
        batch(works, hint_body("G-1", 1), hint_body("G-2", 1))
    assert (works.held("G-1").state, works.held("G-2").attempt) == (State.SENT, 1)
    assert batch(works, hint_body("G-1", 1), hint_body("G-2", 1)) == [True, True]
    assert (works.held("G-1").state, works.held("G-2").state) == (State.SENT, State.DONE)
    assert len(works.core.sent) == 4


def test_the_hint_of_an_accepted_request_is_read_and_executed(aws: None) -> None:
    """What the resolver says of an overdue message is a hint that the reprocessor understands."""
    del aws
    plant = Plant(shards=1, read_shards=1)
    accept(plant)
    plant.clock.advance(121)
    resolver(plant)
    plant.schedules(3)
    assert plant.inbox.rejected == []
    assert (plant.held().code, plant.bank.executed) == ("0000", {"G-1": 1})


def test_a_hint_that_the_sqs_entry_failed_for_comes_again_by_the_sweep(works: Works) -> None:
    """The metric counts what was really sent."""
    works.sqs.faults["send_message"].append(refused("InternalError", 500))
    works.core.outcomes.append(NotSent("connect_refused"))
    works.post()
    assert (works.noted("hint_lost"), works.hints()) == (1, [])


# From here on the functions as they are deployed: their own hub, the wall clock, a core that is not
# there (the environment's port 9).


def test_the_reprocessors_function_answers_a_batch_with_its_failures(works: Works) -> None:
    """Malformed: aside. No row: dropped. No time: given back."""
    del works
    event = records("nonsense", hint_body("G-1", 1))
    assert reprocess_handler(event, context()) == {"batchItemFailures": []}
    none_left = reprocess_handler(records(hint_body("G-1", 1)), context(10_000))
    assert none_left == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/relayhub-rejects"
    assert [each["body"] for each in rejected(url)] == ["nonsense"]


@pytest.mark.parametrize("body", [None, ["{}"], 7, "\ud800"], ids=repr)
def test_a_message_without_a_text_is_put_aside_and_never_comes_again(
    works: Works, body: object
) -> None:
    """Nothing in it could ever be read, so it must not come until the queue gives up."""
    del works
    event = {"Records": [{"messageId": "m-1", "body": body}, {"messageId": "m-2"}]}
    assert reprocess_handler(event, context()) == {"batchItemFailures": []}
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/relayhub-rejects"
    assert [each["body"] for each in rejected(url)] == [str(body), "None"]


@pytest.mark.parametrize(
    "handler",
    [reprocess_handler, resolve_handler, purge_handler],
    ids=["reprocessor", "resolver", "purger"],
)
@pytest.mark.parametrize("event", [None, [], "{}"], ids=repr)
def test_an_event_that_is_none_is_refused_in_words(works: Works, handler: Any, event: Any) -> None:
    """Nothing is looked at; whoever invoked the function is told what it takes."""
    with pytest.raises(UnknownEventError, match="This is no event of"):
        handler(event, context())
    assert works.dynamo.calls == []


def test_the_reprocessors_function_sweeps_when_no_message_brought_it(works: Works) -> None:
    """By its schedule: the report is the answer."""
    put_rows([failed_row("G-1", epoch_ms() - 60_000)])
    swept = reprocess_handler({}, context())
    assert (swept["due"], swept["complete"]) == (1, True)
    assert works.held("G-1").due_at is not None


def test_the_resolvers_function_reports_what_it_did(works: Works) -> None:
    """A core that is not there decides nothing; the row waits."""
    now_ms = epoch_ms()
    row = failed_row("G-1", now_ms - 60_000)
    shard = str(row.open_shard).replace("FAILED", "UNKNOWN")
    put_rows([replace(row, state=State.UNKNOWN, why=None, open_shard=shard)])
    report = resolve_handler({}, context())
    assert (report["due"], report["asked"], report["complete"]) == (1, 1, True)
    row = works.held("G-1")
    assert (row.state, row.inquiries) == (State.UNKNOWN, 1)
    assert (row.due_at or 0) > now_ms


def test_the_resolvers_function_refuses_an_age_below_its_bound(works: Works) -> None:
    """By hand it may wait longer, never shorter; the refusal names the least that would do."""
    with pytest.raises(SettingsError, match=r"MIN_AGE_S=64 is too small.*at least 65"):
        resolve_handler({"min_age_s": 64}, context())
    assert works.dynamo.calls == []
    assert resolve_handler({"min_age_s": 65}, context())["complete"]


@pytest.mark.parametrize(
    ("event", "left"),
    [({}, 0), ({"dry_run": True}, 1), ({"dry_run": False}, 0)],
    ids=["plain", "dry", "wet"],
)
def test_the_purgers_function_deletes_unless_it_is_told_to_count(
    works: Works, event: dict[str, Any], left: int
) -> None:
    """Whoever counts finds everything as it was."""
    row = replace(failed_row("G-1", START_MS - 10**10), state=State.DONE, open_shard=None)
    put_rows([replace(row, due_at=None, expires_at=1)])
    report = purge_handler(event, context(900_000))
    assert (report["deleted"], report["scanned"], report["complete"]) == (1, 1, True)
    assert (works.row("G-1") is not None) is bool(left)


def test_a_purge_that_was_perhaps_meant_as_a_count_is_none(works: Works) -> None:
    """A word that is no boolean is refused, and nothing is read or deleted."""
    for handler in (purge_handler, resolve_handler):
        with pytest.raises(UnknownEventError, match="dry_run is neither true nor false"):
            handler({"dry_run": "true"}, context(900_000))
    assert works.dynamo.calls == []


def test_every_functions_answer_is_json(works: Works) -> None:
    """Whoever invokes it by hand gets a report that can be read."""
    del works
    for handler in (reprocess_handler, resolve_handler, purge_handler):
        assert json.loads(json.dumps(handler({}, context(900_000))))

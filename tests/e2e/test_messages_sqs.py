"""Messages by SQS and accepted requests on the deployed stack, with a ledger that refuses one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from local.core_client import CoreControl
from local.core_ledger import read_journal
from local.fault_proxy import refuses
from local.rounds import until_settled
from local.stack import SHORT_LIMITS, Stack, StackConfig
from relayhub.queues import AGAIN_S
from tests.e2e.conftest import LOGS

pytestmark = pytest.mark.e2e

BODY: Final = '{"from":"A001","to":"A002","amount":100}'
VISIBLE_AGAIN_S: Final = 31  # Above the function's timeout: what a killed one had comes soon.
LIMITS: Final = {**SHORT_LIMITS, "MessagesTimeoutS": "30", "IntakeWindowS": "1"}


@pytest.fixture(scope="module")
def faulty(built: None) -> Iterator[Stack]:
    """Return a stack of its own, with a fault proxy between the functions and AWS."""
    del built
    config = StackConfig(logs=LOGS / "messages", parameters=LIMITS, has_faults=True)
    with Stack.running(config) as stack:
        queue = stack.name_of("IntakeQueue")
        stack.emulator.client("sqs").set_queue_attributes(
            QueueUrl=queue, Attributes={"VisibilityTimeout": str(VISIBLE_AGAIN_S)}
        )
        yield stack


@pytest.fixture
def bank(faulty: Stack) -> Iterator[CoreControl]:
    """Return the core's control; no faults before and after."""
    control = CoreControl(faulty.control_url)
    control.clear()
    yield control
    control.clear()
    faulty.faults.set_rules([])
    control.close()


def message(guid: str, body: str = BODY) -> dict[str, Any]:
    """Return one entry of a batch that is sent."""
    name = {"DataType": "String", "StringValue": guid}
    attributes = {"Idempotency-Key": name} if guid else {}
    return {"MessageBody": body, "MessageAttributes": attributes}


def send(stack: Stack, *messages: dict[str, Any]) -> None:
    """Send up to ten messages at once."""
    entries = [{"Id": str(place), **each} for place, each in enumerate(messages)]
    sent = stack.emulator.client("sqs").send_message_batch(
        QueueUrl=stack.name_of("IntakeQueue"), Entries=entries
    )
    assert not sent.get("Failed")


def switch_source(stack: Stack, *, on: bool) -> None:
    """Let the intake queue's event source rest, or go on."""
    client = stack.emulator.client("lambda")
    arn = stack.name_of("MessagesFunction")
    for source in client.list_event_source_mappings(FunctionName=arn)["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=source["UUID"], Enabled=on)


def until(true: Callable[[], object], within_s: float = 30) -> None:
    """Return when it is true; fail when time is up."""
    ends = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < ends, "it did not come true in time"
        time.sleep(0.1)


def executed(stack: Stack, guid: str) -> int:
    """Return how often the core executed the GUID."""
    return sum(1 for each in read_journal(stack.journal) if each.guid == guid)


def rejects(stack: Stack) -> list[dict[str, Any]]:
    """Take what was put aside off its queue."""
    client, url = stack.emulator.client("sqs"), stack.name_of("IntakeRejectsQueue")
    found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    for each in found:
        client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return [json.loads(each["Body"]) for each in found]


def deliver_while_busy(stack: Stack, bank: CoreControl, busy: str, batch: list[str]) -> None:
    """Deliver the batch at once, while another call of the function holds `busy` at the core."""
    switch_source(stack, on=False)
    try:
        with ThreadPoolExecutor(1) as pool:
            holder = pool.submit(stack.invoke, "MessagesFunction", event_of(busy))
            until(lambda: bank.received(busy))
            send(stack, *(message(guid) for guid in batch))
            switch_source(stack, on=True)
            until(lambda: stack.queue_depth("IntakeQueue") <= 1)
            assert holder.result() == {"batchItemFailures": []}
    finally:
        switch_source(stack, on=True)


def test_of_a_batch_of_ten_only_what_the_ledger_refused_comes_again(
    faulty: Stack, bank: CoreControl
) -> None:
    """A duplicate, a malformed one and one in progress elsewhere are taken, each in its own way."""
    busy, refused = "sqs-busy", "sqs-refused"
    others = [f"sqs-{number}" for number in range(6)]
    bank.set_faults([{"kind": "execute_then_hang", "guid": busy}])
    faulty.faults.set_rules([refuses("PutItem", refused)])
    deliver_while_busy(faulty, bank, busy, [*others, others[0], "", busy, refused])
    assert faulty.queue_depth("IntakeQueue") == 1
    assert faulty.ledger_row(refused) is None
    assert [executed(faulty, guid) for guid in others] == [1] * len(others)
    (aside,) = rejects(faulty)
    assert (aside["code"], aside["origin"]["source"], aside["body"]) == ("E905", "sqs", BODY)
    assert "GUID is missing" in aside["reason"]
    faulty.faults.set_rules([])
    bank.clear()
    # The function lets what it gives back come again after a minute.
    until(lambda: executed(faulty, refused), within_s=AGAIN_S + 30)
    until(lambda: faulty.queue_depth("IntakeQueue") == 0)
    until_settled(faulty, within_s=60)
    assert [executed(faulty, guid) for guid in (*others, busy, refused)] == [1] * 8
    assert rejects(faulty) == []


def event_of(guid: str) -> dict[str, Any]:
    """Return the event of one message, as the event source hands it over."""
    now_ms = str(int(time.time() * 1000))
    record = {
        "messageId": f"by-hand-{guid}",
        "receiptHandle": "none",
        "body": BODY,
        "attributes": {"SentTimestamp": now_ms, "ApproximateReceiveCount": "1"},
        "messageAttributes": {"idempotency-key": {"dataType": "String", "stringValue": guid}},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:000000000000:relayhub-intake",
    }
    return {"Records": [record]}


def test_a_done_message_that_is_delivered_again_is_acknowledged(
    faulty: Stack, bank: CoreControl
) -> None:
    """Its delete was lost: the ledger holds it, so it is taken, and executed once."""
    del bank
    event = event_of("sqs-again")
    answers = [faulty.invoke("MessagesFunction", event) for _ in range(3)]
    assert answers == [{"batchItemFailures": []}] * 3
    assert executed(faulty, "sqs-again") == 1


def test_an_accepted_request_is_executed_by_its_message(faulty: Stack, bank: CoreControl) -> None:
    """202 with where to ask; its repeat the same; then the answer, by status and by a resend."""
    guid, wish = "async-1", {"Prefer": "respond-async"}
    switch_source(faulty, on=False)
    first = faulty.atm.post(guid, BODY.encode(), headers=wish)
    again = faulty.atm.post(guid, BODY.encode(), headers=wish)
    assert [(each.status, each.code) for each in (first, again)] == [(202, "E903")] * 2
    assert first.headers["location"] == f"/transactions/{guid}"
    assert first.headers["preference-applied"] == "respond-async"
    assert faulty.atm.post(guid, BODY.encode()).status == 409
    assert executed(faulty, guid) == 0
    switch_source(faulty, on=True)
    until(lambda: (faulty.ledger_row(guid) or {}).get("state") == "DONE")
    assert faulty.atm.post(guid, BODY.encode(), headers=wish).code == "0000"
    assert faulty.atm.status(guid).json()["executed"] == "yes"
    assert executed(faulty, guid) == 1
    assert len(bank.received(guid)) == 1

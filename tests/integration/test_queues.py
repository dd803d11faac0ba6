"""The hints: what they say, and that one which is lost is said to be lost."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from relayhub import queues
from relayhub.queues import HintQueue
from tests.emulated import Fault, fails
from tests.world import World, refused


def test_a_hint_is_the_guid_and_its_attempt(world: World) -> None:
    """Nothing else: the ledger is the truth."""
    assert world.hub.hints.send_hint("G-1", 3) is None
    assert world.hints() == [{"guid": "G-1", "attempt": 3}]
    (request,) = world.sqs.requests
    assert set(request) == {"QueueUrl", "MessageBody"}
    assert json.loads(request["MessageBody"]) == {"guid": "G-1", "attempt": 3}


FAULTS = [
    pytest.param(refused("AccessDenied", 403), "ClientError", id="denied"),
    pytest.param(
        fails(ReadTimeoutError(endpoint_url="http://x")), "ReadTimeoutError", id="no_answer"
    ),
    pytest.param(
        fails(EndpointConnectionError(endpoint_url="http://x")),
        "EndpointConnectionError",
        id="no_connection",
    ),
]


@pytest.mark.parametrize(("fault", "why"), FAULTS)
def test_a_hint_that_does_not_go_out_says_why(world: World, fault: Fault, why: str) -> None:
    """No error is raised, and it is not tried again: the sweep makes up for it."""
    world.sqs.faults["send_message"].append(fault)
    assert world.hub.hints.send_hint("G-1", 1) == why
    assert world.sqs.calls == ["send_message"]
    assert world.hints() == []


def test_a_queue_that_is_not_there_is_no_error_either(world: World) -> None:
    """The row is written by then; the channel's answer stands."""
    hints = HintQueue(world.sqs, f"{world.queue_url}-gone", world.queue_url)
    assert hints.send_hint("G-1", 1) is not None


def test_the_client_tries_once_and_not_long(aws: None) -> None:
    """A channel waits behind it."""
    del aws
    config = queues.make_client().meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.connect_timeout <= 1
    assert config.read_timeout <= 1

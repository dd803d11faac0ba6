"""The settings of messages: which sources there are, of which channel, for which operation."""

from __future__ import annotations

import json

import pytest

from relayhub.settings import SettingsError, load
from tests.environment import ENVIRONMENT


def fault_of(name: str, text: str) -> str:
    """Return the only fault of an environment with that variable."""
    with pytest.raises(SettingsError) as caught:
        load(ENVIRONMENT | {name: text})
    assert str(caught.value).count("; ") == 0
    return str(caught.value)


BAD_WORDS = [
    ("SOURCE_OPERATIONS", "transfer"),
    ("SOURCE_OPERATIONS", "[]"),
    ("SOURCE_OPERATIONS", '{"kafka:receipts": 1}'),
    ("SOURCE_OPERATIONS", '{"kafka:receipts": ""}'),
    ("SOURCE_OPERATIONS", '{"kafka:receipts": "a b"}'),
    ("SOURCE_OPERATIONS", json.dumps({"kafka:receipts": "x" * 65})),
    ("SOURCE_OPERATIONS", '{"receipts": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"http:receipts": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"kafka:": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"KAFKA:receipts": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"kafka:re ceipts": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"kafka:receipts\\n": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"sqs:arn:aws:sqs:eu-west-1:1:q": "receipt"}'),
    ("SOURCE_OPERATIONS", '{"sqs:q": "transfer", "topic": "receipt"}'),
    ("KAFKA_KEY_IS_GUID", "yes"),
    ("KAFKA_PARTIAL_BATCHES", "1"),
]


@pytest.mark.parametrize(("name", "text"), BAD_WORDS)
def test_a_word_that_makes_no_sense_is_a_fault_at_the_start(name: str, text: str) -> None:
    """Not found out by the first message."""
    assert fault_of(name, text).startswith(f"{name}: must ")


GOOD_WORDS = [
    ("KAFKA_KEY_IS_GUID", "true", "kafka_key_is_guid", True),
    ("KAFKA_KEY_IS_GUID", "False", "kafka_key_is_guid", False),
    ("KAFKA_PARTIAL_BATCHES", " TRUE ", "kafka_partial_batches", True),
    ("KAFKA_PARTIAL_BATCHES", "false", "kafka_partial_batches", False),
    ("SOURCE_OPERATIONS", "{}", "source_operations", ()),
    (
        "SOURCE_OPERATIONS",
        '{"sqs:pay-in_1.fifo": "Transfer_2.b-c", "kafka:a.b_c-1": "receipt"}',
        "source_operations",
        (("kafka:a.b_c-1", "receipt"), ("sqs:pay-in_1.fifo", "Transfer_2.b-c")),
    ),
]


@pytest.mark.parametrize(("variable", "text", "name", "value"), GOOD_WORDS)
def test_a_word_is_read_as_it_is_meant(variable: str, text: str, name: str, value: object) -> None:
    """Whatever a queue or a topic may be called."""
    assert getattr(load(ENVIRONMENT | {variable: text}), name) == value


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("CHANNEL_NAMES", "identity to channel name"),
        ("SOURCE_OPERATIONS", "source to operation"),
    ],
)
@pytest.mark.parametrize(
    "text", ["x", "[]", '{"kafka:a":"b","kafka:a":"c"}', '{"kafka:a": 1}', '{"kafka:a": ""}']
)
def test_a_fault_says_what_is_named_by_what(name: str, what: str, text: str) -> None:
    """Two settings have the same form."""
    assert fault_of(name, text) == f"{name}: must be a JSON object of {what}, each name once"


def test_a_source_may_be_a_channel_of_another_name() -> None:
    """By the same setting as an identity: the fallback of a channel is that channel."""
    names = '{"AROA1":"atm","sqs:relayhub-intake":"atm","kafka:receipts":"branch"}'
    loaded = load(ENVIRONMENT | {"CHANNEL_NAMES": names})
    assert loaded.channel_name("sqs:relayhub-intake") == loaded.channel_name("AROA1") == "atm"
    assert loaded.channel_name("kafka:receipts") == "branch"


def test_a_source_without_an_operation_has_none() -> None:
    """Its messages say it then; a source is named whole."""
    loaded = load(ENVIRONMENT | {"SOURCE_OPERATIONS": '{"kafka:receipts":"receipt"}'})
    assert loaded.operation_of("kafka:receipts") == "receipt"
    assert loaded.operation_of("sqs:receipts") is None
    assert loaded.operation_of("kafka:receipts-2") is None


def test_a_bad_source_or_operation_is_named() -> None:
    """So that the one of many is found."""
    fault = fault_of("SOURCE_OPERATIONS", '{"kafka:a": "x", "topic:b": "y"}')
    assert fault.endswith("must name sources as sqs:<queue> or kafka:<topic>, not 'topic:b'")
    fault = fault_of("SOURCE_OPERATIONS", '{"kafka:a": "x", "kafka:b": "y z"}')
    assert fault.endswith("must name operations of 1 to 64 of A-Z a-z 0-9 _ . -: 'y z'")

"""Hints as they come from the queue: read strictly, since anybody may have written them."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.flows.reprocess import Hint
from relayhub.hint_event import failures, read_batch, read_hint
from relayhub.message import MalformedError
from relayhub.message_event import UnknownEventError


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ('{"guid":"G-1","attempt":1}', Hint("G-1", 1)),
        ('{"guid":"G-1"}', Hint("G-1", None)),
        ('{"guid":"G-1","attempt":null}', Hint("G-1", None)),
        (' {"attempt": 20, "guid": "G-1", "by": "a person"} ', Hint("G-1", 20)),
        (
            '{"guid":"6BA7B810-9DAD-41D1-80B4-00C04FD430C8"}',
            Hint("6ba7b810-9dad-41d1-80b4-00c04fd430c8", None),
        ),
    ],
    ids=["whole", "no_attempt", "null", "more", "folded"],
)
def test_a_hint_is_read(body: str, hint: Hint) -> None:
    """The attempt may be missing: then the row's own counts; a GUID is folded as ever."""
    assert read_hint(body) == hint


MALFORMED: list[Any] = [
    pytest.param("", id="empty"),
    pytest.param("no json", id="no_json"),
    pytest.param('["G-1"]', id="list"),
    pytest.param('"G-1"', id="string"),
    pytest.param("{}", id="no_guid"),
    pytest.param('{"guid":null}', id="null"),
    pytest.param('{"guid":7}', id="number"),
    pytest.param('{"guid":"!gate"}', id="own_key"),
    pytest.param('{"guid":"a b"}', id="blank"),
    pytest.param('{"guid":"G-1","guid":"G-2"}', id="twice"),
    pytest.param('{"guid":"G-1","attempt":-1}', id="negative"),
    pytest.param('{"guid":"G-1","attempt":1.0}', id="fraction"),
    pytest.param('{"guid":"G-1","attempt":1e3}', id="exponent"),
    pytest.param('{"guid":"G-1","attempt":"1"}', id="text"),
    pytest.param('{"guid":"G-1","attempt":true}', id="truth"),
    pytest.param('{"guid":"G-1","attempt":NaN}', id="nan"),
    pytest.param('{"guid":"G-1","attempt":' + "9" * 5_000 + "}", id="too_many_digits"),
    pytest.param('{"guid":"G-1"}\n{"guid":"G-2"}', id="two"),
    pytest.param("[" * 70 + "]" * 70, id="deep"),
    pytest.param('{"guid":"\ud800"}', id="no_text"),
    pytest.param(None, id="no_body"),
    pytest.param(["{}"], id="body_of_another_kind"),
]


@pytest.mark.parametrize("body", MALFORMED)
def test_what_is_no_hint_is_refused_with_a_reason(body: object) -> None:
    """MalformedError and nothing else, so that the message is put aside and never comes again."""
    with pytest.raises(MalformedError) as refused:
        read_hint(body)
    assert str(refused.value)


def test_a_batch_is_its_messages_and_the_schedules_event_brings_none() -> None:
    """Whatever else an event of the schedule has; an empty batch is a batch."""
    records = [{"messageId": "m-1", "body": 7}, {"messageId": "m-2"}]
    assert read_batch({"Records": records}) == records
    assert read_batch({"Records": []}) == []
    assert read_batch({}) is None
    assert read_batch({"source": "aws.scheduler"}) is None


UNKNOWN: list[Any] = [
    pytest.param(None, id="null"),
    pytest.param([], id="list"),
    pytest.param("{}", id="text"),
    pytest.param({"Records": None}, id="records_null"),
    pytest.param({"Records": {"0": {"messageId": "m-1"}}}, id="records_object"),
    pytest.param({"Records": ""}, id="records_text"),
    pytest.param({"Records": [{"messageId": "m-1"}, {}]}, id="one_without_its_name"),
    pytest.param({"Records": [{"messageId": 7}]}, id="a_name_of_another_kind"),
    pytest.param({"Records": ["m-1"]}, id="texts"),
]


@pytest.mark.parametrize("event", UNKNOWN)
def test_an_event_whose_messages_cannot_be_told_apart_fails_whole(event: object) -> None:
    """It says what the function takes; nothing of it is read, so that nothing is half done."""
    with pytest.raises(UnknownEventError, match="dead-letter queue"):
        read_batch(event)


def test_the_answer_names_the_messages_that_must_come_again() -> None:
    """In the form of an SQS event source; none means that all are taken."""
    assert failures([]) == {"batchItemFailures": []}
    assert failures(["m-2", "m-7"]) == {
        "batchItemFailures": [{"itemIdentifier": "m-2"}, {"itemIdentifier": "m-7"}]
    }

"""Headers of messages in odd forms: twice, of any bytes, null, of another shape than they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.message_event_kit import (
    KEY,
    WITH_KEY,
    attribute,
    by_kafka,
    by_sqs,
    fault_of,
    request_of,
)

WITH_GUID = '{"guid":"G-2","amount":1}'
COUNTING = [KEY, "x-operation", "content-type", "delivery", "valid-until"]

# One header by either source.
SOURCES: list[Any] = [
    pytest.param(lambda name, value: by_sqs({name: value}, WITH_GUID), id="sqs"),
    pytest.param(lambda name, value: by_kafka([(name, value)], WITH_GUID.encode()), id="kafka"),
]


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize(
    "twice",
    [
        pytest.param(lambda name: [(name, b"a"), (name, b"a")], id="the_same"),
        pytest.param(lambda name: [(name, b"a"), (name, b"b")], id="another"),
        pytest.param(lambda name: [(name, b"a"), (name.title(), b"a")], id="other_case"),
        pytest.param(lambda name: [(name, None), (name, b"a")], id="null_first"),
    ],
)
def test_a_header_that_comes_twice_is_refused(name: str, twice: Callable[[str], Any]) -> None:
    """Kafka keeps both; which of them counts is not guessed at."""
    assert f"The header {name} came twice" in fault_of(by_kafka(twice(name), WITH_GUID.encode()))


@pytest.mark.parametrize("name", COUNTING)
def test_an_attribute_in_two_cases_is_a_header_that_comes_twice(name: str) -> None:
    """SQS tells them apart, a header's name does not."""
    asked = by_sqs({name: "a", name.title(): "a"}, WITH_GUID)
    assert f"The header {name} came twice" in fault_of(asked)


def test_two_types_with_parameters_do_not_read_as_one() -> None:
    """Joined by a comma they would: what follows a semicolon may be anything."""
    types = [("content-type", b"text/plain; a=b"), ("content-type", b"application/json")]
    assert "content-type came twice" in fault_of(by_kafka([(KEY, b"G-1"), *types]))


def test_a_header_that_does_not_count_may_come_twice() -> None:
    """Tracing does so."""
    assert request_of(by_kafka([(KEY, b"G-1"), ("trace", b"a"), ("trace", b"b")])).guid == "G-1"
    assert request_of(by_sqs({**WITH_KEY, "trace": "a", "Trace": "b"})).guid == "G-1"


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("by", SOURCES)
def test_a_header_that_counts_and_is_not_utf_8_is_refused(by: Any, name: str) -> None:
    """By its name."""
    assert f"The header {name} is not UTF-8 text" in fault_of(by(name, b"G\xff"))


@pytest.mark.parametrize("name", ["trace", "idempotency-keys", "x-idempotency-key", "accept", ""])
@pytest.mark.parametrize("by", SOURCES)
def test_a_header_that_does_not_count_may_be_of_any_bytes(by: Any, name: str) -> None:
    """It is the producer's own, and not looked at."""
    assert request_of(by(name, bytes(range(256)))).guid == "G-2"


def test_a_headers_bytes_may_have_a_sign() -> None:
    """As the platform writes those from 128 on: read as UTF-8 then, and told by their place."""
    raw = [{KEY: [65, -61, -87]}]
    assert "holds a character outside ASCII at place 2" in fault_of(by_kafka(headers=raw))
    unsigned = [{KEY: [65, 195, 169]}]
    assert fault_of(by_kafka(headers=unsigned)) == fault_of(by_kafka(headers=raw))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param(KEY, "The Idempotency-Key header is empty", id="key"),
        pytest.param("x-operation", "X-Operation must be 1 to 64", id="operation"),
        pytest.param("delivery", "Delivery must be deferred or interactive", id="delivery"),
        pytest.param("valid-until", "Valid-Until cannot be read", id="valid_until"),
    ],
)
@pytest.mark.parametrize("value", [None, b""], ids=["null", "empty"])
def test_a_header_that_is_null_is_an_empty_one(name: str, says: str, value: bytes | None) -> None:
    """It was sent, so it is not passed over."""
    assert says in fault_of(by_kafka([(name, value)], WITH_GUID.encode()))


def test_a_null_that_may_be_empty_is_taken() -> None:
    """A type that is empty is one that was not sent, as by HTTP."""
    headers = [(KEY, b"G-1"), ("content-type", None), ("trace", None)]
    assert request_of(by_kafka(headers)).content_type == "application/json"


@pytest.mark.parametrize(
    "held",
    [
        pytest.param({**attribute("G-1"), "stringValue": None}, id="no_value"),
        pytest.param({**attribute(b""), "binaryValue": "%%%"}, id="not_base64"),
        pytest.param({**attribute("G-1"), "stringValue": 7}, id="number"),
        pytest.param({}, id="empty"),
        pytest.param(None, id="null"),
        pytest.param("G-1", id="text"),
    ],
)
def test_an_attribute_of_another_shape_is_refused_where_it_counts(held: Any) -> None:
    """Never read in a way that its sender did not mean."""
    says = f"The header {KEY} is not UTF-8 text"
    assert says in fault_of(by_sqs(messageAttributes={KEY: held}))
    attributes = {KEY: attribute("G-1"), "trace": held}
    assert request_of(by_sqs(messageAttributes=attributes)).guid == "G-1"


@pytest.mark.parametrize("held", [7, [1.5], ["G"], {"a": 1}, "G-1", [None]])
def test_a_kafka_header_of_another_shape_is_refused_where_it_counts(held: Any) -> None:
    """The same."""
    says = f"The header {KEY} is not UTF-8 text"
    assert says in fault_of(by_kafka(headers=[{KEY: held}]))
    headers = [{KEY: [71, 45, 49]}, {"trace": held}]
    assert request_of(by_kafka(headers=headers)).guid == "G-1"


@pytest.mark.parametrize("held", [7, "ab", [1], True])
def test_headers_that_are_none_did_not_arrive(held: Any) -> None:
    """A GUID might have stood in them, so the body's is not taken in its place."""
    says = "The headers did not arrive whole"
    assert says in fault_of(by_sqs({}, WITH_GUID, messageAttributes=held))
    assert says in fault_of(by_kafka((), WITH_GUID.encode(), headers=held))


@pytest.mark.parametrize("held", [None, [], {}])
def test_headers_may_be_absent(held: Any) -> None:
    """The body's GUID is enough."""
    assert request_of(by_sqs({}, WITH_GUID, messageAttributes=held)).guid == "G-2"
    assert request_of(by_kafka((), WITH_GUID.encode(), headers=held)).guid == "G-2"

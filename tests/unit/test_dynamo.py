"""One request to DynamoDB: what is certain after each way in which it can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse, HTTPHeaders
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from relayhub import dynamo
from relayhub.dynamo import Applied, Conflict, NoAnswer, Refused

URL = "http://127.0.0.1"


def said(code: str, status: int | None = 400, /, **more: Any) -> ClientError:
    """Return what botocore raises for an error that DynamoDB said."""
    response: Any = {"Error": {"Code": code}, **more}
    if status is not None:
        response["ResponseMetadata"] = {"HTTPStatusCode": status}
    return ClientError(response, "UpdateItem")


class Script:
    """An operation that ends each time as it is told to; counts how often it was sent."""

    def __init__(self, *ends: Exception | Mapping[str, Any]) -> None:
        self._ends = list(ends)
        self.requests: list[Mapping[str, Any]] = []
        self.pauses: list[int] = []

    def send(self, **request: Any) -> Mapping[str, Any]:
        """End as told."""
        self.requests.append(request)
        end = self._ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def call(self) -> dynamo.Result:
        """Send it as the ledger does."""
        return dynamo.call(self.send, {"TableName": "t"}, self.pauses.append)


THROTTLED = said("ThrottlingException")
NOT_LEFT = [
    EndpointConnectionError(endpoint_url=URL),
    ConnectTimeoutError(endpoint_url=URL),
    ProxyConnectionError(proxy_url=URL),
    NoCredentialsError(),
    CredentialRetrievalError(provider="x", error_msg="y"),
]
LOST = [
    ReadTimeoutError(endpoint_url=URL),
    ConnectionClosedError(endpoint_url=URL),
    BotoConnectionError(error=OSError("reset")),
    HTTPClientError(error="broken"),
    SSLError(endpoint_url=URL, error=OSError("broken")),
    said("InternalServerError", 500),
    said("ServiceUnavailable", 503),
    said("Unknown", None),
]
DENIED = [
    said("AccessDeniedException"),
    said("ResourceNotFoundException"),
    said("ValidationException"),
    said("ItemCollectionSizeLimitExceededException"),
    said("UnrecognizedClientException"),
    said("ExpiredTokenException"),
]
AGAIN = [
    THROTTLED,
    said("ProvisionedThroughputExceededException"),
    said("RequestLimitExceeded"),
    said("TransactionConflictException"),
    said("ReplicatedWriteConflictException"),
]


def name_of(error: Exception) -> str:
    """Return the error's name for a test's id."""
    if isinstance(error, ClientError):
        return str(error.response["Error"]["Code"])
    return type(error).__name__


def test_an_answer_is_an_answer() -> None:
    """At the first attempt there is no pause."""
    script = Script({"Attributes": {}})
    assert script.call() == Applied({"Attributes": {}})
    assert (script.requests, script.pauses) == ([{"TableName": "t"}], [])


@pytest.mark.parametrize("error", [*NOT_LEFT, *AGAIN], ids=name_of)
def test_what_never_left_or_was_refused_every_time_is_refused(error: Exception) -> None:
    """Tried again, and in the end certainly not applied."""
    script = Script(error, error)
    assert isinstance(script.call(), Refused)
    assert (len(script.requests), script.pauses) == (2, [1])


@pytest.mark.parametrize("error", DENIED, ids=name_of)
def test_what_is_denied_is_not_repeated(error: Exception) -> None:
    """The same request would be denied word for word."""
    script = Script(error)
    assert isinstance(script.call(), Refused)
    assert (len(script.requests), script.pauses) == (1, [])


@pytest.mark.parametrize("error", LOST, ids=name_of)
def test_what_may_have_been_applied_has_no_answer(error: Exception) -> None:
    """Nobody knows; tried again, which a condition makes harmless."""
    script = Script(error, error)
    assert isinstance(script.call(), NoAnswer)
    assert len(script.requests) == 2


@pytest.mark.parametrize("second", [*NOT_LEFT, *AGAIN, *DENIED], ids=name_of)
@pytest.mark.parametrize("first", LOST, ids=name_of)
def test_a_refusal_after_a_lost_reply_takes_no_doubt_away(
    first: Exception, second: Exception
) -> None:
    """The first attempt may stand, whatever became of the second."""
    script = Script(first, second)
    assert isinstance(script.call(), NoAnswer)


@pytest.mark.parametrize("first", [*NOT_LEFT, *AGAIN], ids=name_of)
def test_a_lost_reply_after_a_refusal_is_no_answer(first: Exception) -> None:
    """The second attempt may stand."""
    assert isinstance(Script(first, LOST[0]).call(), NoAnswer)


@pytest.mark.parametrize("first", [*NOT_LEFT, *AGAIN, *LOST], ids=name_of)
def test_an_answer_at_the_second_attempt_is_an_answer(first: Exception) -> None:
    """After one pause."""
    script = Script(first, {})
    assert script.call() == Applied({})
    assert script.pauses == [1]


CONFLICT = said("ConditionalCheckFailedException", Item={"guid": {"S": "G-1"}})


@pytest.mark.parametrize("before", [(), (LOST[0],), (THROTTLED,)], ids=["first", "lost", "again"])
def test_a_conflict_brings_the_item_and_is_not_repeated(before: tuple[Exception, ...]) -> None:
    """The caller sees whose row it is."""
    script = Script(*before, CONFLICT)
    assert script.call() == Conflict({"guid": {"S": "G-1"}})
    assert len(script.requests) == len(before) + 1


@pytest.mark.parametrize("item", [None, {}], ids=["absent", "empty"])
def test_a_conflict_without_an_item_is_no_answer(item: dict[str, Any] | None) -> None:
    """It tells nothing about whose row is there, or whether one is."""
    error = said("ConditionalCheckFailedException")
    if item is not None:
        error = said("ConditionalCheckFailedException", Item=item)
    assert isinstance(Script(error).call(), NoAnswer)


@pytest.mark.parametrize("error", [*NOT_LEFT, *AGAIN, *LOST], ids=name_of)
def test_attempts_are_bounded(error: Exception) -> None:
    """Two, whatever happens; a third would find the script empty."""
    script = Script(error, error)
    script.call()
    assert len(script.requests) == 2


def test_a_reason_names_the_kind_and_nothing_of_the_request() -> None:
    """It goes to the log."""
    text = "Invalid value G-1"
    error = said("ValidationException", Message=text)
    result = Script(error).call()
    assert result == Refused("ValidationException")
    lost = Script(LOST[0], LOST[0]).call()
    assert lost == NoAnswer("ReadTimeoutError")


def test_the_client_itself_never_retries(aws: None) -> None:
    """Its retries would hide whether an attempt may have taken effect."""
    del aws
    client = dynamo.make_client()
    config = client.meta.config
    assert config.retries["total_max_attempts"] == 1
    assert (config.connect_timeout, config.read_timeout) == (0.5, 1.2)
    assert config.tcp_keepalive is True
    assert client.meta.service_model.service_name == "dynamodb"


class Raw:
    """The body of an answer, as the connection gives it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> list[bytes]:
        """Return the body in one piece."""
        return [self._body]


def test_the_client_sends_one_request_per_call(aws: None) -> None:
    """Counted where they leave: a throttled request is not sent again by the client."""
    del aws
    client, sent = dynamo.make_client(), []

    def throttle(request: Any, **_: Any) -> Any:
        sent.append(request)
        body = b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}'
        return AWSResponse(request.url, 400, HTTPHeaders(), Raw(body))

    client.meta.events.register_first("before-send.dynamodb", throttle)
    result = dynamo.call(
        client.get_item, {"TableName": "t", "Key": {"guid": {"S": "G"}}}, lambda _: None
    )
    assert isinstance(result, Refused)
    assert len(sent) == 2


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_pause_is_short(attempt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half to all of 50 ms, doubling: the margin must hold it."""
    waits: list[float] = []
    sleep: Callable[[float], None] = waits.append
    monkeypatch.setattr("time.sleep", sleep)
    for _ in range(50):
        dynamo.back_off(attempt)
    longest_s = 0.05 * 2 ** (attempt - 1)
    assert longest_s / 2 <= min(waits) <= max(waits) <= longest_s
    assert len(set(waits)) > 1

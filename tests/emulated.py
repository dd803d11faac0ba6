"""Emulated AWS for tests: moto with the lock that it lacks, and clients whose calls can fail.

The seam for faults is the boto3 client: each call can lose its reply after it took effect, be lost
before it did, or be refused.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import cache
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from tests.environment import BUCKET, TABLE
from tools import template

QUEUE: Final = "relayhub-hints"

# moto takes no lock of its own, so two conditional writes at once could both win.
_MOTO_LOCK: Final = threading.RLock()
_call_action = DynamoHandler.call_action


def _locked_call_action(self: Any) -> Any:
    with _MOTO_LOCK:
        return _call_action(self)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test an empty AWS, with the lock that moto lacks."""
    monkeypatch.setattr(DynamoHandler, "call_action", _locked_call_action)
    with mock_aws():
        yield


@cache
def client(service: str) -> Any:
    """Return a plain client, made once: moto answers it in every test, each with its own AWS."""
    return boto3.client(service)  # type: ignore[call-overload]


@cache
def _table() -> dict[str, Any]:
    return template.table(TABLE)


def make_table() -> None:
    """Create the ledger as the template describes it."""
    client("dynamodb").create_table(**_table())


def make_bucket() -> None:
    """Create the bucket for large answers."""
    place = {"LocationConstraint": "eu-west-1"}
    client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)


def make_queue(name: str = QUEUE) -> str:
    """Create a queue, the dead-letter queue by default, and return its URL."""
    return str(client("sqs").create_queue(QueueName=name)["QueueUrl"])


Fault = Callable[[Callable[..., Any], dict[str, Any]], Any]


def reply_lost(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
    """Let the request take effect (or its condition fail) and lose the reply."""
    with contextlib.suppress(ClientError):
        operation(**request)
    raise ReadTimeoutError(endpoint_url="http://127.0.0.1")


def never_arrives(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
    """Lose the request itself, which nobody can tell from a lost reply."""
    del operation, request
    raise ReadTimeoutError(endpoint_url="http://127.0.0.1")


def fails(error: Exception) -> Fault:
    """Return a fault: the call raises the error, and nothing takes effect."""

    def fault(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
        del operation, request
        raise error

    return fault


def refused(code: str, status: int = 400) -> Fault:
    """Return a fault: the service refuses the request with the code."""
    meta = {"HTTPStatusCode": status}
    return fails(ClientError({"Error": {"Code": code}, "ResponseMetadata": meta}, "operation"))  # type: ignore[typeddict-item]


class FaultyClient:
    """A boto3 client whose next calls of an operation can be given faults; it counts the calls.

    With `now_ms` its answers bear that clock's Date, as a service with a right clock would.
    """

    def __init__(self, client: Any, now_ms: Callable[[], int] | None = None) -> None:
        self._client = client
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self.calls: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.before: dict[str, list[Callable[[], object]]] = defaultdict(list)
        self.faults: dict[str, list[Fault]] = defaultdict(list)

    def __getattr__(self, name: str) -> Any:
        """Return the operation, with the next fault that it was given."""
        operation = getattr(self._client, name)

        def call(**request: Any) -> Any:
            with self._lock:
                self.calls.append(name)
                self.requests.append(request)
                fault = self.faults[name].pop(0) if self.faults[name] else None
                before = self.before[name].pop(0) if self.before[name] else None
            if before is not None:
                before()
            try:
                answer = fault(operation, request) if fault else operation(**request)
            except ClientError as error:
                self._stamp(error.response)
                raise
            self._stamp(answer)
            return answer

        return call

    def _stamp(self, response: Any) -> None:
        if self._now_ms is not None:
            headers = response["ResponseMetadata"].setdefault("HTTPHeaders", {})
            headers["date"] = formatdate(self._now_ms() / 1000, usegmt=True)

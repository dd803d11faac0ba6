"""One request to DynamoDB, sent again where that is safe, and what is certain about it afterwards.

The SDK's own retries are off. They would hide the one thing that a claim must know when it fails:
whether any attempt may have taken effect. A retry here is always of a conditional write or a read,
so sending it again never applies it twice; the caller recognises its own applied write.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ProxyConnectionError,
)

from relayhub.settings import LEDGER_ATTEMPTS, LEDGER_CONNECT_S, LEDGER_READ_S

# Nothing of the request can have left: no connection was there, or no signature could be made.
_NOT_LEFT: Final = (
    EndpointConnectionError,
    ConnectTimeoutError,
    ProxyConnectionError,
    NoCredentialsError,
    CredentialRetrievalError,
)
# DynamoDB refused for now; every other refusal with a 4xx would be repeated word for word.
_AGAIN: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionConflictException",
    }
)
_SERVER_FAULT: Final = 500
_BACKOFF_S: Final = 0.05


@dataclass(frozen=True)
class Applied:
    """DynamoDB answered: the request took effect, and this is its answer."""

    response: Mapping[str, Any]


@dataclass(frozen=True)
class Conflict:
    """The condition did not hold; the item as it was found, and the service's own time."""

    item: Mapping[str, Any]
    date_ms: int | None = None


@dataclass(frozen=True)
class Refused:
    """Certainly not applied: refused every time, or nothing ever left."""

    reason: str


@dataclass(frozen=True)
class NoAnswer:
    """Nobody knows whether it was applied."""

    reason: str


Result = Applied | Conflict | Refused | NoAnswer


def make_client() -> Any:
    """Return a DynamoDB client with every option that matters stated."""
    config = Config(
        connect_timeout=LEDGER_CONNECT_S,
        read_timeout=LEDGER_READ_S,
        retries={"mode": "standard", "total_max_attempts": 1},
        tcp_keepalive=True,
    )
    return boto3.client("dynamodb", config=config)


def back_off(attempt: int) -> None:
    """Wait a little, with jitter, before the attempt after this one (1-based)."""
    time.sleep(random.uniform(0.5, 1) * _BACKOFF_S * 2 ** (attempt - 1))  # noqa: S311 - no secret


def call(
    operation: Callable[..., Mapping[str, Any]],
    request: Mapping[str, Any],
    pause: Callable[[int], None] = back_off,
) -> Result:
    """Send the request up to LEDGER_ATTEMPTS times and say what is certain; raises nothing."""
    may_be_applied, reason = False, ""
    for attempt in range(1, LEDGER_ATTEMPTS + 1):
        if attempt > 1:
            pause(attempt - 1)
        try:
            return Applied(operation(**request))
        except ClientError as error:
            reason = error.response["Error"]["Code"]
            if reason == "ConditionalCheckFailedException":
                return _conflict(error)
            may_be_applied = may_be_applied or _status(error) >= _SERVER_FAULT
            if not may_be_applied and reason not in _AGAIN:
                break
        except _NOT_LEFT as error:
            reason = type(error).__name__
        except (BotoCoreError, HTTPClientError) as error:
            may_be_applied, reason = True, type(error).__name__
    return NoAnswer(reason) if may_be_applied else Refused(reason)


def date_ms(response: Any) -> int | None:
    """Return the service's own time of its answer, epoch ms in whole seconds; None without one."""
    text = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        return None if text is None else int(parsedate_to_datetime(text).timestamp() * 1000)
    except (TypeError, ValueError):
        return None


def is_clock_off(before_ms: int, date: int | None, after_ms: int, skew_s: int) -> bool:
    """Tell whether one's own clock is off by over half the skew.

    The service's time lies between the request and its answer, and has whole seconds. An answer
    without a time tells nothing.
    """
    if date is None:
        return False
    half_ms = skew_s * 500
    return date > after_ms + half_ms or date + 1000 < before_ms - half_ms


def _conflict(error: ClientError) -> Conflict | NoAnswer:
    """Return the conflict; without the item it tells nothing about whose row is there."""
    item: Any = error.response.get("Item")
    if not item:
        return NoAnswer("conflict without an item")
    return Conflict(item, date_ms(error.response))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", _SERVER_FAULT))

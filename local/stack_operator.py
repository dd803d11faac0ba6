"""What an operator sees of the running stack: rows, queues, logs.

The identity may do what the command line needs: read, invoke a function, send a hint, move a dead
letter back, and take a step of a row, on record. Tests invoke functions and kill their processes as
the emulator's administrator instead.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from boto3.dynamodb.types import Binary, TypeDeserializer

from local.emulator import Credentials, Emulator

_ALLOWED: Final = (
    "cloudformation:DescribeStacks",
    "lambda:GetFunctionConfiguration",
    "lambda:InvokeFunction",
    "sqs:SendMessage",
    "sqs:ReceiveMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "dynamodb:BatchGetItem",
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "sqs:GetQueueAttributes",
    "s3:GetObject",
    "s3:PutObject",
    "s3:ListBucket",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "logs:FilterLogEvents",
    "logs:DescribeLogStreams",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "cloudwatch:ListMetrics",
)


def operator_statement() -> dict[str, Any]:
    """Return the operator's one permission, all over the local account."""
    return {"Effect": "Allow", "Action": list(_ALLOWED), "Resource": "*"}


@dataclass(frozen=True)
class Operator:
    """Reads what the stack has stored; every read of the table is consistent."""

    emulator: Emulator
    credentials: Credentials
    table: str

    def row(self, guid: str) -> dict[str, Any] | None:
        """Return the ledger's row, or None; numbers as int, binaries as bytes."""
        client = self._client("dynamodb")
        found = client.get_item(
            TableName=self.table, Key={"guid": {"S": guid}}, ConsistentRead=True
        )
        return _plain_row(found["Item"]) if "Item" in found else None

    def rows(self) -> list[dict[str, Any]]:
        """Return every GUID's row; the project's own, whose keys begin with `!`, are left out."""
        pages = self._client("dynamodb").get_paginator("scan")
        return [
            _plain_row(item)
            for page in pages.paginate(TableName=self.table, ConsistentRead=True)
            for item in page["Items"]
            if not item["guid"]["S"].startswith("!")
        ]

    def depth(self, queue_url: str) -> int:
        """Return how many messages the queue holds, those in flight and delayed included."""
        names = (
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        )
        client = self._client("sqs")
        found = client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=list(names))
        return sum(int(found["Attributes"].get(name, 0)) for name in names)

    def log_lines(self, function: str) -> list[str]:
        """Return what the function has printed so far, the platform's own lines included."""
        return self.lines_of(f"/aws/lambda/{function}")

    def lines_of(self, group: str) -> list[str]:
        """Return the lines of a log group."""
        pages = self._client("logs").get_paginator("filter_log_events")
        return [
            event["message"].rstrip("\n")
            for page in pages.paginate(logGroupName=group)
            for event in page["events"]
        ]

    def _client(self, service: str) -> Any:
        return self.emulator.client(service, self.credentials)


def json_lines(lines: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects among the lines: log entries, and metrics in EMF."""
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)


def _plain_row(item: Mapping[str, Any]) -> dict[str, Any]:
    read = TypeDeserializer().deserialize
    return {name: _plain(read(value)) for name, value in item.items()}


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else value
        case Binary():
            raw: Any = value
            return bytes(raw)
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return value

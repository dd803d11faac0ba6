"""Meets rows with whatever relayhub stands on the path, and writes down what it told and did.

It runs as a program of its own, so that two versions never meet in one process, and uses of a
version only what every version has: the functions' parts and the names of the core's answers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws

from relayhub.core import Answered, Finding
from relayhub.flows import purge, reprocess, resolve
from relayhub.message import Answer
from relayhub.states import Verdict


@dataclass
class Core:
    """A core that executes what it gets, and has never heard of what it is asked about."""

    sent: list[str] = field(default_factory=list)

    def prepare(self) -> None:
        """Need nothing."""

    def send(self, request: Any, *, within_s: float) -> Answered:
        """Execute the request."""
        del within_s
        self.sent.append(request.guid)
        return Answered(Answer(200, "application/json", b'{"code":"0000"}', "0000"))

    def ask(self, guid: str, *, inquiry_id: str, within_s: float) -> Finding:
        """Have no record of it."""
        del guid, inquiry_id, within_s
        return Finding(Verdict.NOT_FOUND, None, "")


def event(route: str, path: str, guid: str, channel: str) -> dict[str, Any]:
    """Return an HTTP event."""
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "requestContext": {"authorizer": {"iam": {"userId": f"{channel}:session"}}},
        "headers": {"content-type": "application/json", "idempotency-key": guid},
        "pathParameters": {"guid": guid},
        "body": '{"amount":100}',
        "isBase64Encoded": False,
    }


def deeds(hub: Any, guid: str, channel: str) -> Mapping[str, Callable[[], object]]:
    """Return what can happen to a row: by its channel, and by the hub's own jobs."""
    from functions.relay.handler import answer  # noqa: PLC0415 - it builds its hub at import

    dead_at_ms = hub.now_ms() + 60_000

    def call(route: str, path: str) -> object:
        reply = answer(hub, event(route, path, guid, channel), dead_at_ms)
        return [reply.status, reply.code]

    one = f"/transactions/{guid}"
    return {
        "resend": lambda: call("POST /transactions", "/transactions"),
        "status": lambda: call("GET /transactions/{guid}", one),
        "cancel": lambda: call("POST /transactions/{guid}/cancel", f"{one}/cancel"),
        "resolver": lambda: _ran(resolve.run(hub, dead_at_ms)),
        "hint": lambda: str(reprocess.handle(hub, reprocess.Hint(guid, None), dead_at_ms)),
        "sweep": lambda: _ran(reprocess.sweep(hub, dead_at_ms)),
        "purger": lambda: _ran(purge.run(hub, dead_at_ms)),
    }


def _ran(report: object) -> None:
    """Forget a report: versions count differently, and the row shows what was done."""
    del report


def coded(item: Any, *, back: bool) -> Any:
    """Return an item with its bytes as text, or back again."""
    match item:
        case {"B": raw}:
            return {"B": raw.encode("latin-1") if back else bytes(raw).decode("latin-1")}
        case dict():
            return {name: coded(value, back=back) for name, value in sorted(item.items())}
        case list():
            return [coded(value, back=back) for value in item]
    return item


@cache
def client(service: str) -> Any:
    """Return a client, made once."""
    return boto3.client(service)  # type: ignore[call-overload]


def meet(hub: Any, row: Mapping[str, Any], deed: str) -> dict[str, Any]:
    """Let one deed be done to one row; return what was told, sent and left in the table."""
    dynamo, s3 = client("dynamodb"), client("s3")
    table, bucket = os.environ["TABLE_NAME"], os.environ["ANSWERS_BUCKET"]
    item = coded(row["item"], back=True)
    for each in dynamo.scan(TableName=table)["Items"]:
        dynamo.delete_item(TableName=table, Key={"guid": each["guid"]})
    dynamo.put_item(TableName=table, Item=item)
    for key, body in row["objects"].items():
        s3.put_object(Bucket=bucket, Key=key, Body=body.encode())
    core = Core()
    channel = item["channel"]["S"]
    act = deeds(replace(hub, core=core), item["guid"]["S"], channel)[deed]
    told = act()
    found = dynamo.get_item(TableName=table, Key={"guid": item["guid"]}).get("Item", {})
    return {"told": told, "sent": len(core.sent), "item": coded(found, back=False)}


def at(now_ms: int, hub: Any) -> Any:
    """Return the hub with a clock that stands still."""
    hub = replace(hub, now_ms=lambda: now_ms, sleep=lambda _: None)
    hub.upkeep._now_ms = hub.now_ms  # noqa: SLF001 - it compares the service's time with its own
    return hub


def dated(now_ms: int) -> Callable[..., None]:
    """Return what lets an answer of a service bear this time: else the hub's clock were wrong."""
    date = formatdate(now_ms / 1000, usegmt=True)

    def stamp(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ResponseMetadata"].setdefault("HTTPHeaders", {})["date"] = date

    return stamp


@mock_aws
def main(target: Path) -> None:
    """Read rows from the standard input, write what became of them to the file."""
    asked = json.load(sys.stdin)
    boto3.DEFAULT_SESSION = session = boto3.Session()
    session.events.register("after-call.dynamodb", dated(asked["now_ms"]))
    boto3.client("dynamodb").create_table(**asked["table"])
    boto3.client("s3").create_bucket(
        Bucket=os.environ["ANSWERS_BUCKET"],
        CreateBucketConfiguration={"LocationConstraint": "eu-west-1"},
    )
    from relayhub.hub import build  # noqa: PLC0415 - clients are made inside the emulation

    hub = at(asked["now_ms"], build())
    names = list(deeds(hub, "G-1", "atm"))
    found = {
        kind: {deed: meet(hub, row, deed) for deed in names} for kind, row in asked["rows"].items()
    }
    target.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

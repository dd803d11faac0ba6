"""The hub in this process behind a real HTTP port, before a real core; and doctors that spoil it.

What runs are the real flows on emulated AWS, under a real clock. A doctor stands at the port: it
sees each call and its answer, may change either, and may send to the core by itself, as a bad relay
would.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from functions.reprocessor.handler import take
from local.core_client import CoreProcess
from relayhub.answers import AnswerStore
from relayhub.controls import Controls
from relayhub.core import HttpCore
from relayhub.credentials import Credentials
from relayhub.flows import accept, reprocess, resolve
from relayhub.hub import Hub, epoch_ms, new_claim_id
from relayhub.ledger import Ledger
from relayhub.queues import HintQueue, IntakeQueue
from relayhub.replies import Reply
from relayhub.settings import Settings, load
from relayhub.upkeep import Upkeep
from tests.emulated import (
    FaultyClient,
    client,
    make_bucket,
    make_queue,
    make_table,
)
from tests.environment import BUCKET, ENVIRONMENT, TABLE

INTAKE: Final = "relayhub-intake"
RELAY_S: Final = 9
JOB_S: Final = 30
ROUND_S: Final = 0.2
SHORT: Final[dict[str, int]] = {
    "core_deadline_s": 3,
    "core_connect_s": 2,
    "relay_timeout_s": RELAY_S,
    "core_longest_s": 4,
    "clock_skew_s": 1,
    "min_age_s": 5,
    "not_found_apart_s": 1,
    "inquiry_backoff_min_s": 1,
    "inquiry_backoff_max_s": 5,
    "probe_s": 2,
    "inquiries_per_s": 100,
}


@dataclass(frozen=True)
class Call:
    """A request as it came to the port; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def guid(self) -> str:
        """The GUID of the path or of the header; empty without one."""
        parts = self.path.strip("/").split("/")
        return parts[1] if len(parts) > 1 else self.headers.get("idempotency-key", "")

    @property
    def is_post(self) -> bool:
        """Whether it submits a request."""
        return (self.method, self.path) == ("POST", "/transactions")

    @property
    def is_cancel(self) -> bool:
        """Whether it cancels one."""
        return self.path.endswith("/cancel")

    @property
    def is_status(self) -> bool:
        """Whether it asks for a status."""
        return self.method == "GET"

    def without(self, *names: str) -> Call:
        """Return the call without these headers."""
        kept = {name: value for name, value in self.headers.items() if name not in names}
        return replace(self, headers=kept)


Pass = Callable[[Call], Reply]
Doctor = Callable[["HubServer", Call, Pass], Reply]


def healthy(_server: HubServer, call: Call, pass_on: Pass) -> Reply:
    """Let everything be as it is."""
    return pass_on(call)


@dataclass
class HubServer:
    """The hub at a port; `doctor` may be changed at any time."""

    hub: Hub
    core: CoreProcess
    dynamo: FaultyClient
    doctor: Doctor = healthy
    has_upkeep: bool = True
    notes: dict[str, Any] = field(default_factory=dict)  # What a doctor remembers.
    port: int = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, call: Call) -> Reply:
        """Answer a call, through the doctor."""
        return self.doctor(self, call, self._pass_on)

    def send_to_core(self, guid: str, body: bytes) -> httpx.Response | None:
        """Send a request to the core, past every rule; None when there was no answer."""
        headers = {"X-GUID": guid, "Content-Type": "application/json"}
        url = f"{self.core.url}/transactions"
        with suppress(httpx.HTTPError), httpx.Client(trust_env=False, timeout=2) as http:
            return http.post(url, content=body, headers=headers)
        return None

    def upkeep(self, stopped: threading.Event) -> None:
        """Do what the hub's own functions do by schedule and by queue, until stopped."""
        while not stopped.wait(ROUND_S):
            if self.has_upkeep:
                self._round()

    def _round(self) -> None:
        dead_at = epoch_ms() + JOB_S * 1000
        resolve.run(self.hub, dead_at)
        reprocess.sweep(self.hub, dead_at)
        for body in _messages(make_queue()):
            take(self.hub, {"messageId": "1", "body": body}, epoch_ms() + JOB_S * 1000)
        for body in _messages(make_queue(INTAKE)):
            accept.send(self.hub, json.loads(body)["guid"], epoch_ms() + JOB_S * 1000)

    def _pass_on(self, call: Call) -> Reply:
        from functions.relay.handler import answer  # noqa: PLC0415 - it builds its hub at import

        return answer(self.hub, _event(call), epoch_ms() + RELAY_S * 1000)


def _messages(queue_url: str) -> Iterator[str]:
    sqs = client("sqs")
    found = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
    for each in found.get("Messages", []):
        sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=each["ReceiptHandle"])
        yield each["Body"]


def _event(call: Call) -> dict[str, Any]:
    """Return the HTTP API's event: a text body arrives as text, as that front makes it."""
    is_text = call.headers.get("content-type", "").startswith(("application/json", "text/"))
    text = call.body.decode("utf-8", "replace")
    parts = call.path.strip("/").split("/")
    routes = {1: "/transactions", 2: "/transactions/{guid}", 3: "/transactions/{guid}/cancel"}
    user = f"{call.headers.get('x-channel', 'atm')}:session"
    return {
        "version": "2.0",
        "routeKey": f"{call.method} {routes[len(parts)]}",
        "rawPath": call.path,
        "headers": dict(call.headers),
        "pathParameters": {"guid": parts[1]} if len(parts) > 1 else {},
        "requestContext": {"authorizer": {"iam": {"userId": user}}},
        "body": text if is_text else base64.b64encode(call.body).decode(),
        "isBase64Encoded": not is_text,
    }


class _Handler(BaseHTTPRequestHandler):
    """One call at the port."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Answer a status."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a request or a cancel."""
        self._answer()

    def log_message(self, *_: Any) -> None:
        """Be quiet."""

    def _answer(self) -> None:
        names = {name.lower() for name in self.headers}
        # The HTTP API joins header lines of one name.
        headers = {name: ",".join(self.headers.get_all(name, [])) for name in names}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        reply = self.server.hub_server.answer(Call(self.command, self.path, headers, body))
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hub_server: HubServer) -> None:
        self.hub_server = hub_server
        super().__init__(("127.0.0.1", 0), _Handler)


def make_hub(core_url: str, dynamo: FaultyClient) -> Hub:
    """Return a hub on emulated AWS, under a real clock and short limits."""
    settings: Settings = replace(load(ENVIRONMENT), core_url=core_url, **SHORT)  # type: ignore[arg-type]
    make_table()
    make_bucket()
    sqs = client("sqs")
    return Hub(
        settings=settings,
        ledger=Ledger(dynamo, TABLE, shards=settings.shards, on_step=lambda *_: None),
        upkeep=Upkeep(dynamo, TABLE, now_ms=epoch_ms, skew_s=settings.clock_skew_s),
        controls=Controls(dynamo, TABLE, now_ms=epoch_ms),
        core=HttpCore(
            core_url,
            connect_s=settings.core_connect_s,
            codes=settings.definite_codes,
            answer_bytes_max=settings.answer_bytes_max,
            credentials=Credentials("", None),
            now_ms=epoch_ms,
        ),
        hints=HintQueue(sqs, make_queue(), make_queue("relayhub-hint-rejects")),
        intake=IntakeQueue(sqs, make_queue(INTAKE), make_queue("relayhub-intake-rejects")),
        store=AnswerStore(client("s3"), BUCKET),
        now_ms=epoch_ms,
        new_id=new_claim_id,
        note=lambda *_, **__: None,
    )


def _one_at_a_time(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the call under a lock: moto has none, so two conditional writes could both win."""
    lock = threading.RLock()

    def locked(handler: Any) -> Any:
        with lock:
            return call(handler)

    return locked


@contextmanager
def hub_server(folder: Path) -> Iterator[HubServer]:
    """Start core, hub and upkeep, yield the hub's server, and end all of it."""
    with ExitStack() as owned:
        patch = owned.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(DynamoHandler, "call_action", _one_at_a_time(DynamoHandler.call_action))
        owned.enter_context(mock_aws())
        core = owned.enter_context(CoreProcess(folder / "journal.jsonl"))
        dynamo = FaultyClient(client("dynamodb"), epoch_ms)
        served = HubServer(make_hub(core.url, dynamo), core, dynamo)
        server = owned.enter_context(_Server(served))
        served.port = server.server_address[1]
        stopped = threading.Event()
        for run in (server.serve_forever, lambda: served.upkeep(stopped)):
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            owned.callback(thread.join, 10)
        owned.callback(server.shutdown)
        owned.callback(stopped.set)
        yield served

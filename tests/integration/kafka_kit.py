"""What the tests of the Kafka source share: a broker, records, a function in process, members."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from confluent_kafka import Producer

from local.kafka_broker import ROOT, Broker, is_supported
from local.kafka_client import Membership
from local.kafka_member import Member
from local.kafka_source import LambdaHandle

needs_broker = pytest.mark.skipif(
    not is_supported(),
    reason="needs Linux on x86-64 or aarch64, or macOS on arm64: there is no broker elsewhere",
)
WITHIN_S: Final = 30.0  # A rebalance takes about two seconds; a busy machine more.
PARTITIONS: Final = 2  # Of every topic.
_POLL_S: Final = 0.02


class FunctionFaultError(Exception):
    """What a function raises: the platform answers with FunctionError."""


class FakeLambda:
    """A function in process, as boto3's client of Lambda shows it; remembers the events.

    The function's return value becomes the payload, bytes as they are. FunctionFaultError becomes
    a FunctionError; any other exception is raised by `invoke`, as the SDK raises its own.
    """

    def __init__(self, function: Callable[[dict[str, Any]], Any] = lambda _: None) -> None:
        self.function = function
        self.events: list[dict[str, Any]] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 (AWS's names)
        """Call the function with the event and wait."""
        del FunctionName
        event = json.loads(Payload)
        self.events.append(event)
        try:
            answer = self.function(event)
        except FunctionFaultError as error:
            told = json.dumps({"errorType": "FunctionFaultError", "errorMessage": str(error)})
            return {"Payload": io.BytesIO(told.encode()), "FunctionError": "Unhandled"}
        said = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return {"Payload": io.BytesIO(said)}

    def offsets(self) -> list[dict[str, list[int]]]:
        """Return what each call was given: offsets by partition."""
        return [offsets_of(event) for event in self.events]


def offsets_of(event: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the offsets in an event, by partition."""
    return {
        name: [record["offset"] for record in records] for name, records in event["records"].items()
    }


@dataclass(eq=False)
class Log:
    """The lines that a member reported."""

    lines: list[Mapping[str, Any]] = field(default_factory=list)

    def batches(self) -> list[Mapping[str, Any]]:
        """Return the lines about batches."""
        return [line for line in self.lines if line["event"] == "batch"]

    def owned(self) -> set[str]:
        """Return the partitions that the member has by its own word."""
        found: set[str] = set()
        for line in self.lines:
            if line["event"] == "assigned":
                found |= set(line["partitions"])
            elif line["event"] in ("revoked", "lost"):
                found -= set(line["partitions"])
        return found


def group_of(topic: str) -> str:
    """Name the group that the tests read a topic as; each topic has its own."""
    return f"of-{topic}"


def committed(broker: Broker, topic: str) -> list[int | None]:
    """Return what the topic's group has committed, by the numbers of its two partitions."""
    found = broker.committed(group_of(topic), topic, PARTITIONS)
    return [found[number] for number in range(PARTITIONS)]


class Running:
    """A consumer as a process of its own, and the lines that it has printed so far."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        self.log = Log()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.log.lines.append(json.loads(line))

    def finish(self) -> int:
        """Wait for its end and its last line; return the exit code."""
        code = self.child.wait(WITHIN_S)
        self._reader.join(WITHIN_S)
        return code


@contextmanager
def source(
    broker: Broker, topic: str, client: FakeLambda, *, partial: bool = False, **changes: Any
) -> Iterator[Log]:
    """Run a source in a thread as member of the topic's group; it ends with the context."""
    quick = {"window_s": 0.05, "back_off_s": 0.02, "back_off_s_max": 0.1}
    membership = Membership(broker.bootstrap, topic, group_of(topic), **(quick | changes))
    log = Log()
    handle = LambdaHandle(client, "messages", broker.bootstrap, partial=partial)
    member = Member(membership, handle, log.lines.append)
    thread = threading.Thread(target=member.run)
    thread.start()
    try:
        yield log
    finally:
        member.stop()
        thread.join(WITHIN_S)
        assert not thread.is_alive()


@contextmanager
def process(module: str, broker: Broker, topic: str, *options: str) -> Iterator[Running]:
    """Run a consumer of local/ as a process of the topic's group; it ends with the context."""
    command = [
        *(sys.executable, "-m", module, "--bootstrap", broker.bootstrap, "--topic", topic),
        *("--group", group_of(topic), *options),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        running = Running(child)
        try:
            yield running
        finally:
            child.kill()
            running.finish()


def produce(broker: Broker, topic: str, values: Iterable[str], *, partition: int = 0) -> None:
    """Append records; each one's key is its value."""
    send(broker, topic, [{"key": each, "value": each} for each in values], partition=partition)


def send(
    broker: Broker, topic: str, records: Sequence[Mapping[str, Any]], *, partition: int = 0
) -> None:
    """Append records as the client library takes them, and wait until the broker has them."""
    client = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for record in records:
        client.produce(topic, partition=partition, **record)
    assert client.flush(WITHIN_S) == 0


def until(is_so: Callable[[], object], *, within_s: float = WITHIN_S) -> bool:
    """Wait until something is so; False when it never was."""
    ends_s = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > ends_s:
            return False
        time.sleep(_POLL_S)
    return True


@contextmanager
def lambda_server(client: FakeLambda, timeout_s: int = 5) -> Iterator[str]:
    """Serve the function by Lambda's HTTP interface on loopback; yield the endpoint.

    A ClientError of the function's is answered with a 503, as the platform answers its own faults.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(json.dumps({"Timeout": timeout_s}).encode())

        def do_POST(self) -> None:
            payload = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                found = client.invoke(FunctionName="messages", Payload=payload)
            except ClientError:
                self._answer(b"{}", status=503)
                return
            error = {"X-Amz-Function-Error": "Unhandled"} if "FunctionError" in found else {}
            self._answer(found["Payload"].read(), error)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
            """Say nothing."""

        def _answer(
            self, body: bytes, headers: Mapping[str, str] | None = None, status: int = 200
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()

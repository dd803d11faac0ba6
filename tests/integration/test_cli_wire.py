"""The command line on a real boto3 and a real socket: what goes over the wire, and how often."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

import pytest
from typer.testing import CliRunner, Result

from cli.app import app
from cli.stack import Target, make_client
from local.ports import LOOPBACK, free_ports

STACKS: Final = b"""<DescribeStacksResponse><DescribeStacksResult><Stacks><member>
<StackName>relayhub</StackName><StackStatus>CREATE_COMPLETE</StackStatus><Outputs><member>
<OutputKey>PurgerFunctionName</OutputKey><OutputValue>a-purger</OutputValue>
</member></Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"""
REPORT: Final = json.dumps({"scanned": 3, "deleted": 2, "complete": True}).encode()
INVOKE: Final = "/2015-03-31/functions/a-purger/invocations"


class Aws(BaseHTTPRequestHandler):
    """CloudFormation and Lambda, as far as a purge needs them; Lambda does as it is told."""

    protocol_version = "HTTP/1.1"
    status: ClassVar[int] = 200
    hangs_up: ClassVar[bool] = False
    paths: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """Answer one request."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.paths.append(self.path)
        if self.path == "/":
            self.answer(200, STACKS)
        elif self.hangs_up:
            self.close_connection = True
        else:
            self.answer(self.status, REPORT if self.status == 200 else b'{"Message":"no"}')

    def answer(self, status: int, body: bytes) -> None:
        """Send one answer."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def aws_url() -> Iterator[str]:
    """Return the address of a fresh AWS on this machine."""
    Aws.status, Aws.hangs_up, Aws.paths = 200, False, []
    with ThreadingHTTPServer((LOOPBACK, 0), Aws) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://{LOOPBACK}:{server.server_port}"
        server.shutdown()
        thread.join()


def purge(url: str) -> Result:
    """Run a purge against the address, by the command line's own clients."""
    return CliRunner().invoke(app, ["purge", "--endpoint-url", url])


def test_a_command_reaches_the_address_that_it_is_given(aws_url: str) -> None:
    """CloudFormation names the function, Lambda runs it, all at the one address."""
    result = purge(aws_url)
    assert result.exit_code == 0, result.output
    assert "3 rows seen: 2 deleted" in result.stdout
    assert Aws.paths == ["/", INVOKE]


@pytest.mark.parametrize("status", [429, 500], ids=["throttled", "server error"])
def test_an_invoke_that_is_refused_is_not_sent_again(aws_url: str, status: int) -> None:
    """The SDK's usual retries are off for an invoke: one request, and a sentence."""
    Aws.status = status
    result = purge(aws_url)
    assert result.exit_code == 1
    assert "AWS answered with an error: Invoke" in result.stderr
    assert Aws.paths.count(INVOKE) == 1


def test_an_invoke_whose_answer_is_lost_is_not_sent_again(aws_url: str) -> None:
    """The function may run: a person is told so, and no second run is started beside it."""
    Aws.hangs_up = True
    result = purge(aws_url)
    assert result.exit_code == 1
    assert "may have happened" in result.stderr
    assert Aws.paths.count(INVOKE) == 1


def test_a_proxy_of_the_developer_is_not_asked_for_this_machine(
    aws_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local stack listens on loopback, where no proxy looks."""
    monkeypatch.setenv("HTTP_PROXY", f"http://{LOOPBACK}:{free_ports(1)[0]}")
    assert purge(aws_url).exit_code == 0


def test_nobody_at_the_address_is_told_in_one_sentence() -> None:
    """The sentence names the address, the option and what starts the local stack."""
    url = f"http://{LOOPBACK}:{free_ports(1)[0]}"
    result = purge(url)
    assert result.exit_code == 1
    assert url in result.stderr
    assert "`make up`" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_invoke_is_waited_for_as_long_as_a_function_may_run() -> None:
    """Lambda answers when the function ends, which may take 900 s; other calls end soon."""
    waits = {
        service: make_client(Target("relayhub"), service).meta.config.read_timeout
        for service in ("lambda", "cloudformation", "sqs", "dynamodb")
    }
    assert waits.pop("lambda") > 900
    assert set(waits.values()) == {20}

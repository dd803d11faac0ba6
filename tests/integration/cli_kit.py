"""A stack for the command line: moto's CloudFormation, table and queue; functions by a stub client.

The seam is the boto3 client: Lambda's alone is a stub, since moto runs no function.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from typer.testing import CliRunner, Result

from cli.app import app
from cli.command import Here, Seams
from cli.desk import Desk, open_desk
from cli.screen import Screen
from cli.stack import Stack, Target, make_client
from tests.emulated import client
from tests.environment import ENVIRONMENT
from tests.world import TABLE, Clock, World

STACK: Final = "relayhub"
RESOLVER: Final = "stack-resolver"
REPROCESSOR: Final = "stack-reprocessor"
PURGER: Final = "stack-purger"
LOG_GROUP: Final = "/relayhub/relayhub/operators"

# The declared fields of the requests that `paid` makes.
MONEY: Final = (("amount", "/amount"), ("currency", "/currency"), ("reference", "/ref"))

Function = Callable[[dict[str, Any]], Any]


@dataclass
class StubLambda:
    """Lambda's client: each function gives its next result, or does what a callable does.

    What a callable raises is the function's error, told as Lambda's Python runtime tells it.
    """

    functions: dict[str, list[Any] | Function] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)  # Of every function.
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def get_function_configuration(self, **request: Any) -> dict[str, Any]:
        """Return the function's settings, which are those of a test's environment."""
        assert request == {"FunctionName": RESOLVER}
        return {"Environment": {"Variables": {**ENVIRONMENT, **self.environment}}}

    def invoke(self, **request: Any) -> dict[str, Any]:
        """Run the function and return what Lambda would."""
        assert set(request) == {"FunctionName", "InvocationType", "Payload"}
        assert request["InvocationType"] == "RequestResponse"
        name, event = request["FunctionName"], json.loads(request["Payload"])
        self.calls.append((name, event))
        function = self.functions[name]
        if not callable(function):
            result = function.pop(0)
            if isinstance(result, BaseException):
                raise result
            return _answer(result)
        try:
            return _answer(function(event))
        except Exception as error:  # noqa: BLE001 - a function may fail in any way
            said = {"errorType": type(error).__name__, "errorMessage": str(error)}
            return {**_answer({**said, "stackTrace": ["line"]}), "FunctionError": "Unhandled"}


@dataclass
class StubLogs:
    """CloudWatch Logs' client: it keeps the lines; moto's would refuse the test's clock."""

    streams: list[str] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Exception | dict[str, Any] | None] = field(default_factory=list)

    def create_log_stream(self, **request: Any) -> None:
        """Make a stream."""
        assert request["logGroupName"] == LOG_GROUP
        assert not {":", "*"} & set(request["logStreamName"])
        self.streams.append(request["logStreamName"])

    def put_log_events(self, **request: Any) -> dict[str, Any]:
        """Keep one line, or do as the next fault says: raise, or answer so."""
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        if fault is not None:
            return fault
        assert request["logGroupName"] == LOG_GROUP
        assert request["logStreamName"] == self.streams[-1]
        (event,) = request["logEvents"]
        self.lines.append(json.loads(event["message"]))
        return {}

    def of(self, line: str) -> list[dict[str, Any]]:
        """Return the lines of one kind: intent, or outcome."""
        return [each for each in self.lines if each["line"] == line]


@dataclass
class StubSts:
    """STS's client: it says who the caller is."""

    arn: str = "arn:aws:sts::123456789012:assumed-role/Admin/alice"

    def get_caller_identity(self) -> dict[str, str]:
        """Return the caller."""
        return {"Account": "123456789012", "Arn": self.arn}


def _answer(result: Any) -> dict[str, Any]:
    payload = result if isinstance(result, bytes) else json.dumps(result).encode()
    return {"StatusCode": 200, "Payload": io.BytesIO(payload)}


@dataclass
class Terminal:
    """A person's command line, with the stack that it finds."""

    clock: Clock
    functions: StubLambda = field(default_factory=StubLambda)
    clients: dict[str, Any] = field(default_factory=dict)  # In place of AWS's, by service.

    def run(self, *words: str) -> Result:
        """Run one command line."""
        seams = Seams(make_client=self.make_client, now_ms=self.clock, sleep=self.clock.advance)
        return CliRunner().invoke(app, words, obj=seams, prog_name="relayhub")

    def json(self, *words: str, code: int = 0) -> Any:
        """Run one with --json and return its document; `code` is the exit code expected."""
        result = self.run(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def make_client(self, target: Target, service: str) -> Any:
        """Return the stub for Lambda, the given client, or a real one, which moto answers."""
        if service == "lambda":
            return self.functions
        return self.clients.get(service) or make_client(target, service)


def paid(amount: str, currency: str = "JPY", reference: str = "R-1") -> bytes:
    """Return a request of this amount, spelt so."""
    return f'{{"amount":{amount},"currency":"{currency}","ref":"{reference}"}}'.encode()


@dataclass
class Office:
    """A stack with a ledger, and the people who look after it."""

    world: World
    terminal: Terminal
    logs: StubLogs
    sts: StubSts

    def as_person(self, name: str, role: str = "Admin") -> None:
        """Let another person give the next commands."""
        self.sts.arn = f"arn:aws:sts::123456789012:assumed-role/{role}/{name}"

    def set(self, **variables: str) -> None:
        """Deploy other settings, by the names of their variables."""
        self.terminal.functions.environment.update(variables)

    def run(self, *words: str) -> Result:
        """Run one command line."""
        return self.terminal.run(*words)

    def desk(self) -> Desk:
        """Return the desk as a command would open it."""
        stack = Stack(Target(STACK), self.terminal.make_client)
        clock = self.world.clock
        return open_desk(Here(stack, Screen(as_json=True), clock, clock.advance))

    def act(self, *words: str, code: int = 0) -> Any:
        """Do something, for a reason; return its document."""
        return self.terminal.json(*words, "--reason", "as agreed", code=code)

    def refused(self, *words: str, code: int = 2) -> str:
        """Do something that is refused; return the sentence."""
        result = self.terminal.run(*words, "--reason", "as agreed")
        assert result.exit_code == code, result.output
        (line,) = [each for each in result.stderr.splitlines() if "is left out" not in each]
        return str(line).removeprefix("relayhub: ")


def open_office(world: World) -> Office:
    """Return the office of the world's stack; its clients can be given faults."""
    make_stack(world.queue_url)
    logs, sts = StubLogs(), StubSts()
    terminal = Terminal(world.clock)
    terminal.clients |= {"dynamodb": world.dynamo, "s3": world.s3, "logs": logs, "sts": sts}
    # Made once for all tests: to make a client takes longer than most commands.
    terminal.clients |= {each: client(each) for each in ("cloudformation", "sqs")}
    terminal.functions.environment["DEAD_LETTER_QUEUE_URL"] = world.queue_url
    return Office(world, terminal, logs, sts)


def make_stack(
    queue_url: str, *, without: str = "", name: str = STACK, more: Mapping[str, str] | None = None
) -> None:
    """Deploy a stack that has the template's outputs, and nothing behind them."""
    outputs = {
        "TableName": TABLE,
        "DeadLetterQueueUrl": queue_url,
        "ResolverFunctionName": RESOLVER,
        "ReprocessorFunctionName": REPROCESSOR,
        "PurgerFunctionName": PURGER,
        "OperatorLogGroupName": LOG_GROUP,
        **(more or {}),
    }
    template = {
        "Resources": {"Another": {"Type": "AWS::SQS::Queue"}},  # A template needs one.
        "Outputs": {each: {"Value": value} for each, value in outputs.items() if each != without},
    }
    client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))

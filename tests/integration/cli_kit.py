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
from cli.command import Seams
from cli.stack import Target, make_client
from tests.emulated import client
from tests.world import TABLE, Clock

STACK: Final = "relayhub"
RESOLVER: Final = "stack-resolver"
REPROCESSOR: Final = "stack-reprocessor"
PURGER: Final = "stack-purger"

Function = Callable[[dict[str, Any]], Any]


@dataclass
class StubLambda:
    """Lambda's client: each function gives its next result, or does what a callable does.

    What a callable raises is the function's error, told as Lambda's Python runtime tells it.
    """

    functions: dict[str, list[Any] | Function] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

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
        **(more or {}),
    }
    template = {
        "Resources": {"Another": {"Type": "AWS::SQS::Queue"}},  # A template needs one.
        "Outputs": {each: {"Value": value} for each, value in outputs.items() if each != without},
    }
    client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))

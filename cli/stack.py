"""A deployed stack: its functions, table and queues by their names, and clients to reach them.

The names come from the stack's outputs, which are what the template promises to others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cli.aws_errors import explain, is_bad_usage, is_no_such_stack
from cli.exits import CommandError, Exit

_CONNECT_S: Final = 5
_READ_S: Final = 20
_TRIES_MAX: Final = 3
# A Lambda function may run for 900 s, and answers an invoke only then; 15 s for the way.
_INVOKE_READ_S: Final = 915
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Output(StrEnum):
    """The outputs of the template that the commands use."""

    TABLE = "TableName"
    DEAD_LETTER_QUEUE = "DeadLetterQueueUrl"
    INTAKE_QUEUE = "IntakeQueueUrl"
    INTAKE_DEAD_LETTER_QUEUE = "IntakeDeadLetterQueueUrl"
    RESOLVER = "ResolverFunctionName"
    REPROCESSOR = "ReprocessorFunctionName"
    PURGER = "PurgerFunctionName"
    OPERATOR_LOG = "OperatorLogGroupName"


@dataclass(frozen=True)
class Target:
    """Which stack is meant and how it is reached, as the options say."""

    stack: str
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None


MakeClient = Callable[[Target, str], Any]


def make_client(target: Target, service: str) -> Any:
    """Return a boto3 client with every option that matters stated. Raises BotoCoreError."""
    session = boto3.Session(profile_name=target.profile, region_name=target.region)
    make: Any = session.client
    return make(service, endpoint_url=target.endpoint_url, config=_config(target, service))


def _config(target: Target, service: str) -> Config:
    is_invoke = service == "lambda"
    # Of a write to the table, too, whoever made it must know whether any try may have taken effect:
    # the hub's own code tries again, and can tell.
    is_once = is_invoke or service == "dynamodb"
    return Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_INVOKE_READ_S if is_invoke else _READ_S,
        # An invoke is never sent again by the SDK. When its answer is lost, or late, the function
        # still runs: a second one beside it would be safe for the rows, since every write is
        # conditional, but it would double the inquiries that the core has to bear, and the report
        # would be that of another run. A person who is told may start it again.
        retries={"mode": "standard", "total_max_attempts": 1 if is_once else _TRIES_MAX},
        # Routers forget a connection that is silent for some minutes, as one of an invoke is.
        tcp_keepalive=True,
        # A developer's proxy cannot reach what listens on this machine alone.
        proxies={} if is_local(target) else None,
        # No name leads to a bucket of its own there.
        s3={"addressing_style": "path"} if is_local(target) else None,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )


def is_local(target: Target) -> bool:
    """Tell whether the stack's address is this machine's own."""
    url = target.endpoint_url
    return url is not None and urlsplit(url).hostname in _LOOPBACK


class TellingClient:
    """A boto3 client whose errors are sentences (CommandError); for reads, messages and invokes.

    Not for a write of a row: who writes needs the SDK's own error, to know whether it took effect.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        """Return the operation of the client."""
        operation = getattr(self._client, name)

        def call(**request: Any) -> Any:
            try:
                return operation(**request)
            except (BotoCoreError, ClientError) as error:
                raise CommandError(explain(error, name)) from error

        return call


class Stack:
    """One stack; nothing is asked of AWS before a name or a client is needed."""

    def __init__(self, target: Target, make: MakeClient = make_client) -> None:
        self.target = target
        self._make = make

    def client(self, service: str) -> TellingClient:
        """Return a client whose errors are sentences. Raises CommandError."""
        return TellingClient(self.raw(service))

    def raw(self, service: str) -> Any:
        """Return a client with the SDK's own errors, for who judges them. Raises CommandError."""
        try:
            return self._make(self.target, service)
        except BotoCoreError as error:
            code = Exit.REFUSED if is_bad_usage(error) else Exit.FAILED
            raise CommandError(explain(error, f"the client for {service}"), code) from error
        except ValueError as error:  # What botocore says to an address that is none.
            raise CommandError(f"--endpoint-url: {error}", Exit.REFUSED) from error

    def name(self, output: Output) -> str:
        """Return what the stack calls it. Raises CommandError."""
        if output not in self._outputs:
            raise CommandError(
                f"the stack {self.target.stack} has no output {output}: it is none of relayhub's,"
                " or older than this command line and must be deployed again"
            )
        return self._outputs[output]

    @cached_property
    def _outputs(self) -> Mapping[str, str]:
        client = self.raw("cloudformation")
        try:
            found = client.describe_stacks(StackName=self.target.stack)["Stacks"][0]
        except (BotoCoreError, ClientError) as error:
            if is_no_such_stack(error):
                raise CommandError(self._not_there(), Exit.REFUSED) from error
            raise CommandError(explain(error, "DescribeStacks")) from error
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}

    def _not_there(self) -> str:
        where = f" at {self.target.endpoint_url}" if self.target.endpoint_url else ""
        return (
            f"there is no stack {self.target.stack}{where} in this account and region:"
            " name another by --stack, --region or --profile"
        )

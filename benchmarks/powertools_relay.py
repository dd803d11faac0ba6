"""A relay on Powertools' idempotency decorator, as its documentation shows it, for comparison.

`python -m benchmarks.powertools_relay --core URL --table NAME --port P --endpoint-url URL`. The
handler is what a Lambda function would be; around it stands a small HTTP front that gives it HTTP
API events and a context whose time runs out, since the decorator takes the end of an attempt from
there. Each thread has its own handler, as each of Lambda's execution environments would.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

import boto3
import httpx
import typer
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyKeyError,
    IdempotencyValidationError,
)
from botocore.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.naive_relay import serve

FUNCTION: Final = "powertools-relay"
THREADS: Final = 64
_IN_PROGRESS: Final = IdempotencyAlreadyInProgressError
# What the documentation's errors become in the words of IETF's idempotency-key draft.
STATUSES: Final[dict[type[Exception], int]] = {
    IdempotencyKeyError: 400,
    IdempotencyValidationError: 422,
    _IN_PROGRESS: 409,
}
GATEWAY_STATUSES: Final = frozenset({502, 503, 504})
_SERVER_ERROR: Final = 500

Event = dict[str, Any]
Handler = Callable[[Event, "Context"], Event]


@dataclass(frozen=True)
class Context:
    """Lambda's context of one invocation: how much of its time is left."""

    ends_s: float
    function_name: str = FUNCTION
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = f"arn:aws:lambda:eu-west-1:000000000000:function:{FUNCTION}"
    aws_request_id: str = field(default_factory=lambda: f"{time.monotonic_ns():x}")

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the platform ends the invocation."""
        return max(0, round((self.ends_s - time.monotonic()) * 1000))


def make_handler(core: httpx.Client, client: Any, table: str) -> Handler:
    """Return the handler, decorated as the documentation has it."""
    store = DynamoDBPersistenceLayer(table_name=table, boto3_client=client)
    config = IdempotencyConfig(
        event_key_jmespath='headers."idempotency-key"',
        payload_validation_jmespath="body",
        raise_on_no_idempotency_key=True,
    )

    @idempotent(config=config, persistence_store=store)  # type: ignore[type-var]
    def handler(event: Event, context: Context) -> Event:
        """Send the request to the core, and return its answer."""
        del context
        headers = event["headers"]
        answer = core.post(
            "/transactions",
            content=base64.b64decode(event["body"]),
            headers={
                "X-GUID": headers["idempotency-key"].strip('"'),
                "X-Operation": headers.get("x-operation", ""),
                "Content-Type": headers.get("content-type", "application/json"),
            },
        )
        if answer.status_code in GATEWAY_STATUSES:
            # No answer of the core's. An exception takes the record away: a resend tries again.
            answer.raise_for_status()
        return {
            "statusCode": answer.status_code,
            "headers": {"Content-Type": answer.headers.get("content-type", "")},
            "body": base64.b64encode(answer.content).decode(),
            "isBase64Encoded": True,
        }

    return handler


class Front:
    """Hands HTTP requests to handlers, as API Gateway and Lambda do."""

    def __init__(self, make: Callable[[], Handler], timeout_s: float) -> None:
        """Make a handler for each thread; `timeout_s` is the function's timeout."""
        self._make = make
        self._timeout_s = timeout_s
        self._own = threading.local()
        self.pool = ThreadPoolExecutor(THREADS)

    async def transact(self, request: Request) -> Response:
        """Answer one request; what the handler raises is an error of the function."""
        event = {
            "headers": dict(request.headers),
            "body": base64.b64encode(await request.body()).decode(),
        }
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, self._invoke, event)

    def _invoke(self, event: Event) -> Response:
        if not hasattr(self._own, "handler"):
            self._own.handler = self._make()
        try:
            result = self._own.handler(event, Context(time.monotonic() + self._timeout_s))
        except Exception as error:  # noqa: BLE001 - Lambda's own edge
            status = STATUSES.get(type(error), _SERVER_ERROR)
            said = {"message": type(error).__name__ if status < _SERVER_ERROR else "Internal error"}
            headers = {"Retry-After": "1"} if status == STATUSES[_IN_PROGRESS] else {}
            return JSONResponse(said, status_code=status, headers=headers)
        body = base64.b64decode(result["body"])
        return Response(body, status_code=result["statusCode"], headers=result["headers"])


def application(front: Front) -> Starlette:
    """Return the HTTP front's application."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        front.pool.shutdown(wait=False, cancel_futures=True)

    route = Route("/transactions", front.transact, methods=["POST"])
    return Starlette(routes=[route], lifespan=lifespan)


def dynamo_client(endpoint_url: str | None) -> Any:
    """Return the client that the store uses; the SDK's own retries are as they come."""
    is_local = endpoint_url is not None
    config = Config(max_pool_connections=THREADS, proxies={} if is_local else None)
    make: Any = boto3.client
    return make("dynamodb", endpoint_url=endpoint_url, config=config)


def main(  # noqa: PLR0917 - typer names them all
    core: Annotated[str, typer.Option(help="The core's address, http://127.0.0.1:P.")],
    table: Annotated[str, typer.Option(help="The idempotency table; its key is `id`.")],
    port: Annotated[int, typer.Option(help="0 takes a free port.")] = 0,
    endpoint_url: Annotated[str | None, typer.Option(help="Another address of DynamoDB.")] = None,
    deadline: Annotated[float, typer.Option(min=0.05, help="Seconds for the core.")] = 3.0,
    timeout: Annotated[float, typer.Option(min=0.1, help="The function's timeout.")] = 9.0,
) -> None:
    """Run the relay until it is stopped."""
    os.environ.setdefault("AWS_LAMBDA_FUNCTION_NAME", FUNCTION)
    client = dynamo_client(endpoint_url)
    # A fresh connection per call, so that no stale one is mistaken for a fault of the core.
    limits = httpx.Limits(max_keepalive_connections=0)
    http = httpx.Client(base_url=core, timeout=deadline, limits=limits, trust_env=False)
    front = Front(partial(make_handler, http, client, table), timeout)
    try:
        asyncio.run(serve(application(front), port))
    except OSError as error:
        typer.echo(f"powertools relay: cannot start: {error}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)

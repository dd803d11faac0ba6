"""The negative control: the same front without a ledger, retrying as such relays do.

`python -m local.naive_relay --port P --core URL`. It exists to be wrong: a time-out or a broken
connection makes it send the same request again, and a resent request is sent again too.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from typing import Annotated

import httpx
import typer
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

RETRIES = 2  # what many HTTP clients are set to out of habit
STOP_S = 1


class NaiveRelay:
    """Forwards and hopes."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        """Use one client for all requests."""
        self._client = client

    async def transact(self, request: Request) -> Response:
        """Forward with retries; 502 or 504 when every try failed."""
        guid = request.headers.get("idempotency-key", "").strip('"')
        if not guid:
            return JSONResponse({"error": "Idempotency-Key is missing"}, status_code=400)
        headers = {"X-GUID": guid, "X-Operation": request.headers.get("x-operation", "")}
        headers["Content-Type"] = request.headers.get("content-type", "application/json")
        body = await request.body()
        failure = ""
        status = 502
        for _ in range(1 + RETRIES):
            try:
                answer = await self._client.post("/transactions", content=body, headers=headers)
            except httpx.TimeoutException as error:
                status, failure = 504, type(error).__name__
            except httpx.TransportError as error:
                status, failure = 502, type(error).__name__
            else:
                return _passed_on(answer)
        return JSONResponse({"error": failure, "guid": guid}, status_code=status)


def _passed_on(answer: httpx.Response) -> Response:
    kept = {
        name: answer.headers[name]
        for name in ("content-type", "x-response-code")
        if name in answer.headers
    }
    return Response(answer.content, status_code=answer.status_code, headers=kept)


def application(core: str, deadline_s: float) -> Starlette:
    """Make the application in front of a core; `deadline_s` is for one try."""
    # A fresh connection per try, so that what is seen is the retry and not a stale connection.
    limits = httpx.Limits(max_keepalive_connections=0)
    client = httpx.AsyncClient(
        base_url=core, timeout=deadline_s, limits=limits, trust_env=False, follow_redirects=False
    )
    relay = NaiveRelay(client)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    route = Route("/transactions", relay.transact, methods=["POST"])
    return Starlette(routes=[route], lifespan=lifespan)


async def serve(app: Starlette, port: int) -> None:
    """Serve until SIGTERM or SIGINT; says where on one line of stdout."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(512)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, timeout_graceful_shutdown=STOP_S
    )
    # The kernel takes connections from the moment of listen: the line need not wait for uvicorn.
    sys.stdout.write(f"naive relay: listening on 127.0.0.1:{sock.getsockname()[1]}\n")
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[sock])


def main(
    core: Annotated[str, typer.Option(help="The core's address, http://127.0.0.1:P.")],
    port: Annotated[int, typer.Option(help="0 takes a free port.")] = 0,
    deadline: Annotated[float, typer.Option(min=0.05, help="Seconds for one try.")] = 5.0,
) -> None:
    """Run the naive relay until it is stopped."""
    try:
        asyncio.run(serve(application(core, deadline), port))
    except OSError as error:
        typer.echo(f"naive relay: cannot start: {error}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        # uvicorn hands the signal on after it has stopped.
        raise typer.Exit(0) from None


if __name__ == "__main__":
    typer.run(main)

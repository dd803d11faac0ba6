"""A core that is not idempotent, as a real HTTP server: asked twice, it debits twice.

`python -m local.core --port P --control-port C --journal FILE`. The rule it protects: nothing
here ever compares a GUID with an earlier one before executing. Never used in production.
"""

import asyncio
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from local import core_control, core_transactions
from local.core_answers import plain_json
from local.core_bank import Bank
from local.core_faults import FaultBook, Group, Kind
from local.core_http import BadRequestError, Peer, Request
from local.core_inquiry import Inquiries
from local.core_ledger import Execution, Receipt, read_journal, read_received, received_path
from local.core_port import Door, Port

__all__ = ["Execution", "Receipt", "main", "read_journal", "read_received", "received_path"]

PATH = "/transactions"
GUID_LENGTH_MAX = 256  # looser than the hub's, so that a bad GUID that slips through is seen


class Core:
    """The two ports, the bank behind them, and the faults between."""

    def __init__(self, bank: Bank, journal: Path, *, port: int, control_port: int) -> None:
        """Open both ports; raises OSError when one is taken."""
        self._bank = bank
        self._book = FaultBook()
        self._inquiries = Inquiries(bank, self._book)
        self._tasks: set[asyncio.Task[None]] = set()
        self._reopening: asyncio.TimerHandle | None = None
        self.control_port = Port(control_port, partial(self._accepted, is_control=True))
        self.port = Port(port, partial(self._accepted, is_control=False))
        self._control = core_control.Control(
            bank, self._book, journal, self._turn_port, self._reset, self._health
        )

    def close(self) -> None:
        """Give both ports back."""
        self.port.close()
        self.control_port.close()

    def _accepted(self, sock: socket.socket, *, is_control: bool) -> None:
        """Start serving a connection, or reset it when a rule says so."""
        peer = Peer(sock)
        if not is_control and self._book.pick(Group.CONNECTION) is not None:
            peer.reset()
            return
        task = asyncio.get_running_loop().create_task(self._serve(peer, is_control=is_control))
        if not is_control:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, peer: Peer, *, is_control: bool) -> None:
        try:
            request = await peer.read_request()
            if request is not None and request.path.startswith(core_control.PREFIX):
                await peer.answer(core_control.handle(self._control, request))
            elif request is not None and is_control:
                await peer.answer(plain_json(404, {"error": "this port takes /_core/... only"}))
            elif request is not None:
                await self._serve_transactions(peer, request)
        except BadRequestError as error:
            await peer.answer(plain_json(error.status, {"error": str(error)}))
        except asyncio.CancelledError:
            peer.reset()
            raise
        finally:
            peer.close()

    async def _serve_transactions(self, peer: Peer, request: Request) -> None:
        guid = request.path.removeprefix(PATH + "/")
        if request.path == PATH and request.method == "POST":
            await self._serve_post(peer, request)
        elif guid not in (request.path, "") and request.method == "GET":
            await self._inquiries.take(peer, request, guid)
        else:
            # No X-Verdict: a wrong path is not a word about a GUID.
            told = f"there is no {request.method} {request.path}"
            await peer.answer(plain_json(404, {"error": told}))

    async def _serve_post(self, peer: Peer, request: Request) -> None:
        guid = request.headers.get("x-guid", "")
        if not 1 <= len(guid) <= GUID_LENGTH_MAX:
            told = {"code": "E500", "guid": guid[:GUID_LENGTH_MAX], "detail": "X-GUID is missing"}
            await peer.answer(plain_json(500, told))
            return
        await core_transactions.take(self._bank, self._book, peer, request)

    def _turn_port(self) -> None:
        """Put the rule about the port in force; it ends by itself when it has seconds."""
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None
        rule = self._book.port_rule()
        if rule is None:
            self.port.turn(Door.OPEN)
            return
        self.port.turn(Door.REFUSED if rule.kind is Kind.REFUSE else Door.PAUSED)
        if rule.seconds is not None:
            loop = asyncio.get_running_loop()
            self._reopening = loop.call_later(rule.seconds, self.port.turn, Door.OPEN)

    def _reset(self) -> None:
        """Start anew; what is in the works or in the backlog is thrown away, not executed."""
        if self.port.door is Door.PAUSED:
            self.port.turn(Door.REFUSED)
        self._book.replace(type(self._book.settings)())
        self._inquiries.forget_cached()
        self._bank.reset()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
        self._turn_port()

    def _health(self) -> dict[str, object]:
        return {
            "ok": True,
            "port": self.port.number,
            "control_port": self.control_port.number,
            "door": self.port.door.value,
            "in_works": self._bank.in_works(),
        }


async def serve(bank: Bank, journal: Path, *, port: int, control_port: int) -> None:
    """Serve until SIGTERM or SIGINT, then stop at once."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    core = Core(bank, journal, port=port, control_port=control_port)
    where = f"127.0.0.1:{core.port.number}, control on 127.0.0.1:{core.control_port.number}"
    sys.stdout.write(f"core: listening on {where}\n")
    sys.stdout.flush()
    await stopped.wait()
    core.close()


def now_ms() -> int:
    """Read the wall clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def main(
    journal: Annotated[Path, typer.Option(help="The execution journal, JSON lines.")],
    port: Annotated[int, typer.Option(help="Traffic; 0 takes a free port.")] = 0,
    control_port: Annotated[int, typer.Option(help="Control; 0 takes a free port.")] = 0,
    accounts: Annotated[int, typer.Option(min=2, max=999, help="A001, A002, ...")] = 10,
    balance: Annotated[int, typer.Option(min=0, help="Of each, in the minor unit.")] = 1_000_000,
) -> None:
    """Run the local core until it is stopped."""
    try:
        bank = Bank(journal, accounts=accounts, balance=balance, now_ms=now_ms)
        asyncio.run(serve(bank, journal, port=port, control_port=control_port))
    except (OSError, ValueError, KeyError) as error:
        typer.echo(f"core: cannot start: {error}", err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    typer.run(main)

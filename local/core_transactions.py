"""`POST /transactions`: execute, and answer well or badly as the fault rules say.

The rule it protects: whether money moves and what the wire shows are two separate things; each
fault is one short function in which both are visible.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from local.core_answers import CODE_HEADER, answer_of, gateway_page, with_code
from local.core_bank import Bank, Entry, Outcome
from local.core_faults import FaultBook, Group, Kind, Rule
from local.core_http import Peer, Request, Response
from local.core_ledger import Form

GARBAGE = b"\x00\x16\x03\x01 this is no HTTP \xff\xfe\r\n\r\n"


@dataclass(frozen=True)
class Job:
    """One request in the works, with the rule that it met."""

    bank: Bank
    peer: Peer
    request: Request
    entry: Entry
    rule: Rule
    honour_not_after: bool

    def run(self, *, form: Form = Form.JSON) -> Response:
        """Execute now, unless the request may not be started any more."""
        if self.honour_not_after and self._is_too_late():
            return answer_of(self.bank.refuse(self.entry, "E500", "X-Not-After has passed"))
        outcome = self.bank.execute(
            self.entry, self.request.body, form=form, form_bytes=self.rule.bytes
        )
        return answer_of(outcome)

    def run_if_told(self) -> Response:
        """Execute if the rule says so; else give the answer that an executed one would get."""
        if self.rule.executes:
            return self.run()
        return answer_of(Outcome(self.entry.guid, "0000", "C00000000"))

    def _is_too_late(self) -> bool:
        """Judge by the clock; an unreadable X-Not-After counts as passed."""
        told = self.request.headers.get("x-not-after")
        if told is None:
            return False
        try:
            not_after_s = datetime.fromisoformat(told).timestamp()
        except ValueError:
            return True
        return not_after_s * 1000 < self.bank.now_ms()


async def take(bank: Bank, book: FaultBook, peer: Peer, request: Request) -> None:
    """Record the request, let it meet its rule, and forget it if nothing came of it."""
    guid = request.headers["x-guid"]
    told = request.headers.get("x-attempt", "")
    attempt = int(told) if told.isascii() and told.isdecimal() else None
    entry = bank.receive(guid, attempt, request.headers.get("x-operation", ""))
    rule = book.pick(Group.REQUEST, guid, entry.attempt)
    job = Job(bank, peer, request, entry, rule or PLAIN, book.settings.honour_not_after)
    try:
        await (BEHAVIOURS[rule.kind] if rule else _plain)(job)
    finally:
        bank.drop(entry)


async def _plain(job: Job) -> None:
    await job.peer.answer(job.run())


async def _hang_before(job: Job) -> None:
    """Hold first; then execute late whatever became of the peer, or never."""
    if not job.rule.executes:
        await job.peer.hold(job.rule.seconds)
        return
    await asyncio.sleep(job.rule.wait_s)
    await _plain(job)


async def _execute_then_hang(job: Job) -> None:
    job.run()
    await job.peer.hold(job.rule.seconds)


async def _execute_then_close(job: Job) -> None:
    job.run()
    job.peer.close()


async def _execute_then_reset(job: Job) -> None:
    job.run()
    job.peer.reset()


async def _execute_late(job: Job) -> None:
    """Wait, then execute whatever became of the peer."""
    job.entry.is_seen = job.rule.seen
    if job.rule.close_first:
        job.peer.close()
    await asyncio.sleep(job.rule.wait_s)
    job.entry.is_seen = True
    answer = job.run()
    if not job.rule.close_first:
        await job.peer.answer(answer)


async def _slow(job: Job) -> None:
    answer = job.run()
    await asyncio.sleep(job.rule.wait_s)
    await job.peer.answer(answer)


async def _gateway_page(job: Job) -> None:
    job.run_if_told()
    await job.peer.answer(gateway_page(job.rule.status))


async def _garbage(job: Job) -> None:
    job.run_if_told()
    await job.peer.send(GARBAGE)


async def _unknown_code(job: Job) -> None:
    await job.peer.answer(with_code(job.run_if_told(), job.rule.code))


async def _two_codes(job: Job) -> None:
    await job.peer.answer(replace(job.run(), headers=((CODE_HEADER, "B201"),)))


async def _refuse_by_rule(job: Job) -> None:
    code = job.rule.code or "E500"
    await job.peer.answer(answer_of(job.bank.refuse(job.entry, code, "refused by a fault rule")))


async def _shift_jis(job: Job) -> None:
    await job.peer.answer(job.run(form=Form.SHIFT_JIS))


async def _big(job: Job) -> None:
    await job.peer.answer(job.run(form=Form.BIG))


async def _redirect(job: Job) -> None:
    """Point back to the same address: a client that follows executes once more."""
    job.run_if_told()
    page = Response(job.rule.status, "text/plain", b"", (("Location", "/transactions"),))
    await job.peer.answer(page)


async def _gzip(job: Job) -> None:
    answer = job.run()
    body = gzip.compress(answer.body)
    await job.peer.answer(replace(answer, body=body, headers=(("Content-Encoding", "gzip"),)))


async def _truncated(job: Job) -> None:
    """Promise the whole body, send half of it, close."""
    answer = job.run()
    whole = _framed(job, answer)
    await job.peer.send(whole[: len(whole) - len(answer.body) // 2])


async def _chunked(job: Job) -> None:
    await job.peer.send(job.peer.framed(job.run()))


async def _no_length(job: Job) -> None:
    """Send an answer whose end nothing but the close shows."""
    answer = job.run()
    head = f"HTTP/1.1 {answer.status} OK\r\nContent-Type: {answer.content_type}\r\n"
    await job.peer.send(head.encode() + b"Connection: close\r\n\r\n" + answer.body)


async def _drip(job: Job) -> None:
    """Send the answer byte by byte, so that it outlives every timeout between two reads."""
    for byte in _framed(job, job.run()):
        if not await job.peer.send(bytes([byte])):
            return
        await asyncio.sleep(job.rule.wait_s)


def _framed(job: Job, answer: Response) -> bytes:
    return job.peer.framed(answer, (("Content-Length", str(len(answer.body))),))


PLAIN = Rule(Kind.SLOW)  # carries the defaults of a request that meets no rule
BEHAVIOURS: Mapping[Kind, Callable[[Job], Awaitable[None]]] = {
    Kind.HANG_BEFORE: _hang_before,
    Kind.EXECUTE_THEN_HANG: _execute_then_hang,
    Kind.EXECUTE_THEN_CLOSE: _execute_then_close,
    Kind.EXECUTE_THEN_RESET: _execute_then_reset,
    Kind.EXECUTE_LATE: _execute_late,
    Kind.SLOW: _slow,
    Kind.GATEWAY_PAGE: _gateway_page,
    Kind.GARBAGE: _garbage,
    Kind.UNKNOWN_CODE: _unknown_code,
    Kind.TWO_CODES: _two_codes,
    Kind.B2XX: _refuse_by_rule,
    Kind.E500: _refuse_by_rule,
    Kind.SHIFT_JIS: _shift_jis,
    Kind.BIG: _big,
    Kind.REDIRECT: _redirect,
    Kind.GZIP: _gzip,
    Kind.TRUNCATED: _truncated,
    Kind.CHUNKED: _chunked,
    Kind.NO_LENGTH: _no_length,
    Kind.DRIP: _drip,
}

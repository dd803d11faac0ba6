"""The demo's story: what channels send, what the core does, and what the right answers are.

Each act returns what its channel saw and what was wrong with it. The same acts are played through
the hub and through the naive relay; only the hub's answers are judged.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from local.channels import Reply
from local.demo_fronts import CLIENTS, Front

_ARRIVED_S = 10.0  # For the core to have read a request whose relay is about to be killed.
_POLL_S = 0.05
_RESENDS = 50
INTERACTIVE = [("Delivery", "interactive")]  # The hub never sends it later by itself.


@dataclass
class Seen:
    """One GUID of the story: what it is about, what the channel saw, what was not right."""

    guid: str
    about: str
    saw: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    body: bytes = b""  # What a later resend sends again.

    def expect(self, reply: Reply | None, *allowed: str) -> None:
        """Note the answer's code, which must be one of those allowed."""
        code = code_of(reply)
        self.saw.append(code)
        if code not in allowed:
            self.wrong.append(f"{code} instead of {' or '.join(allowed)}")

    def expect_same(self, first: Reply | None, again: Reply | None) -> None:
        """Note a replay, which must be the first answer: status, type and every byte."""
        self.saw.append("replay" if is_same(first, again) else f"other {code_of(again)}")
        if not is_same(first, again):
            self.wrong.append(f"the resend got another answer than the first: {code_of(again)}")


Act = Callable[[Front], Seen]


def transfer(amount: int = 3000) -> bytes:
    """Return the body of a transfer; the amount is in yen."""
    return json.dumps({"from": "A001", "to": "A002", "amount": amount, "currency": "JPY"}).encode()


def code_of(reply: Reply | None) -> str:
    """Return the answer's code; an answer without one means E901."""
    if reply is None:
        return "no answer"
    return reply.code or f"no code ({reply.status})"


def is_same(first: Reply | None, again: Reply | None) -> bool:
    """Tell whether two answers agree in status, type and every byte."""
    return _print_of(first) == _print_of(again)


def _print_of(reply: Reply | None) -> tuple[int, str, str] | None:
    if reply is None:
        return None
    kind = reply.headers.get("content-type", "")
    return reply.status, kind, hashlib.sha256(reply.body).hexdigest()


def a_transfer_and_its_resend(front: Front) -> Seen:
    """Send again because the answer was late: the ordinary case."""
    seen = Seen("demo-transfer", "a transfer, and its resend")
    first = front.post(seen.guid, transfer())
    seen.expect(first, "0000")
    seen.expect_same(first, front.post(seen.guid, transfer()))
    return seen


def many_resends_at_once(front: Front) -> Seen:
    """Resend 50 times from 20 clients: a channel in panic."""
    seen = Seen("demo-panic", f"{_RESENDS} resends from {CLIENTS} clients at once")
    with ThreadPoolExecutor(CLIENTS) as pool:
        replies = list(pool.map(lambda _: front.post(seen.guid, transfer(1200)), range(_RESENDS)))
    done = [reply for reply in replies if reply is not None and reply.code == "0000"]
    counted = Counter(code_of(reply) for reply in replies)
    seen.saw.append(", ".join(f"{count} x {code}" for code, count in sorted(counted.items())))
    if set(counted) - {"0000", "E903"} or not done:
        seen.wrong.append(f"answers other than the one answer or E903: {seen.saw[-1]}")
    if not all(is_same(done[0], reply) for reply in done):
        seen.wrong.append("two different answers to one GUID")
    return seen


def another_amount(front: Front) -> Seen:
    """Use one GUID for two amounts: that is another request."""
    seen = Seen("demo-amount", "the same GUID with another amount")
    seen.expect(front.post(seen.guid, transfer(100)), "0000")
    seen.expect(front.post(seen.guid, transfer(200)), "E904")
    return seen


def a_timeout(front: Front) -> Seen:
    """Let the core execute and be silent: not confirmed, and never sent again."""
    about = "the core executes and never answers; a resend"
    seen = Seen("demo-timeout", about, body=transfer(700))
    front.core.set_faults([{"kind": "execute_then_hang", "guid": seen.guid}])
    seen.expect(front.post(seen.guid, seen.body), "E901")
    seen.expect(front.post(seen.guid, seen.body), "E901")
    front.core.clear()
    return seen


def a_refused_connection(front: Front) -> Seen:
    """Close the core's port: nothing was sent, so the resend may be."""
    seen = Seen("demo-refused", "the core's port is closed; opened; a resend")
    front.core.set_faults([{"kind": "refuse"}])
    seen.expect(front.post(seen.guid, transfer(900), INTERACTIVE), "E902")
    front.core.clear()
    seen.expect(front.post(seen.guid, transfer(900), INTERACTIVE), "0000")
    return seen


def a_large_answer(front: Front) -> Seen:
    """Answer more than a row can hold: it is replayed all the same."""
    return _unusual_answer(front, Seen("demo-500kb", "a 500 KB answer, and its replay"), "big")


def a_shift_jis_answer(front: Front) -> Seen:
    """Answer with bytes that are no UTF-8, blanks and a NUL: replayed byte for byte."""
    about = "a Shift_JIS answer, and its replay"
    return _unusual_answer(front, Seen("demo-shift-jis", about), "shift_jis")


def _unusual_answer(front: Front, seen: Seen, kind: str) -> Seen:
    front.core.set_faults([{"kind": kind, "guid": seen.guid}])
    first = front.post(seen.guid, transfer(500))
    seen.saw.append("no answer" if first is None else f"{len(first.body)} bytes")
    if first is None or first.status >= 400:  # noqa: PLR2004 - HTTP's own limit for success
        seen.wrong.append("not the core's answer")
    seen.expect_same(first, front.post(seen.guid, transfer(500)))
    front.core.clear()
    return seen


def the_relay_is_killed(front: Front) -> Seen:
    """Kill the relay while the core is at it: the row says SENT, so a resend is not sent."""
    seen = Seen("demo-killed", "the relay killed in mid call; a resend", body=transfer(800))
    front.core.set_faults([{"kind": "slow", "guid": seen.guid, "seconds": 1, "times": 1}])
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(front.post, seen.guid, seen.body)
        _wait_until_received(front, seen.guid)
        front.kill()
        lost = call.result()
    seen.saw.append(code_of(lost))
    if lost is not None and lost.code is not None:
        seen.wrong.append(f"a killed relay cannot have answered {lost.code}")
    seen.expect(front.post(seen.guid, seen.body), "E903")
    front.core.clear()
    return seen


def _wait_until_received(front: Front, guid: str) -> None:
    ends = time.monotonic() + _ARRIVED_S
    while not front.core.received(guid) and time.monotonic() < ends:
        time.sleep(_POLL_S)


def a_business_refusal(front: Front) -> Seen:
    """Transfer more than there is: a definite answer like any other, not executed."""
    seen = Seen("demo-no-funds", "refused by the core (B201), and its resend")
    first = front.post(seen.guid, transfer(10**9))
    seen.expect(first, "B201")
    seen.expect_same(first, front.post(seen.guid, transfer(10**9)))
    return seen


def a_dead_core(front: Front) -> Seen:
    """Leave a request for later: the core is away, so the hub keeps it and sends it itself."""
    seen = Seen("demo-deferred", "the core is away; the hub sends it later", body=transfer(600))
    front.core.set_faults([{"kind": "refuse"}])
    seen.expect(front.post(seen.guid, seen.body), "E902")
    seen.expect(front.post(seen.guid, seen.body), "E902")
    front.core.clear()
    return seen


def a_cancel_that_overtakes(front: Front) -> Seen:
    """Cancel before the request arrives: it is not executed when it does."""
    seen = Seen("demo-cancel", "a cancel that overtakes its request", body=transfer(400))
    seen.expect(front.cancel(seen.guid), "E908")
    seen.expect(front.post(seen.guid, seen.body), "E908")
    return seen


def a_cancel_in_doubt(front: Front) -> Seen:
    """Cancel while nobody knows: it is recorded, and the truth is told when it is known."""
    seen = Seen("demo-cancel-late", "in doubt, cancelled; it was executed", body=transfer(450))
    front.core.set_faults([{"kind": "execute_then_close", "guid": seen.guid}])
    seen.expect(front.post(seen.guid, seen.body), "E901")
    seen.expect(front.cancel(seen.guid), "E901")
    front.core.clear()
    return seen


def an_expiry(front: Front) -> Seen:
    """Let the validity end: after that nobody sends it, the channel's own resend included."""
    seen = Seen("demo-expired", "the core is away until the validity has ended", body=transfer(350))
    ends_at = datetime.now(UTC) + timedelta(seconds=3)
    front.core.set_faults([{"kind": "refuse"}])
    headers = [("Valid-Until", ends_at.isoformat()), *INTERACTIVE]
    seen.expect(front.post(seen.guid, seen.body, headers), "E902")
    front.core.clear()
    return seen


def look_again(front: Front, story: Sequence[Seen]) -> None:
    """Resend what was open, after the maintenance functions have run."""
    for seen in story:
        if seen.guid in AFTERWARDS:
            seen.saw.append("later:")
            seen.expect(front.post(seen.guid, seen.body), AFTERWARDS[seen.guid])


STORY: Sequence[Act] = (
    a_transfer_and_its_resend,
    many_resends_at_once,
    another_amount,
    a_timeout,
    a_refused_connection,
    a_large_answer,
    a_shift_jis_answer,
    the_relay_is_killed,
    a_business_refusal,
    a_dead_core,
    a_cancel_that_overtakes,
    a_cancel_in_doubt,
    an_expiry,
)

# What a resend gets when the maintenance functions have ended what was open.
AFTERWARDS = {
    "demo-timeout": "0000",
    "demo-killed": "0000",
    "demo-deferred": "0000",
    "demo-cancel": "E908",
    "demo-cancel-late": "0000",
    "demo-expired": "E908",
}
EXECUTED_NEVER = {"demo-no-funds", "demo-cancel", "demo-expired"}

"""What the channels did and were told, written down by many threads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from local.channels import Reply
from tests.chaos.plan import Does


@dataclass(frozen=True)
class Told:
    """One answer to a channel; times are epoch milliseconds. Without a code it means E901."""

    guid: str
    does: str
    sent_ms: int
    told_ms: int
    status: int | None
    code: str | None


@dataclass
class Book:
    """Everything that was sent and told; `begun` counts the steps that were taken up."""

    told: list[Told] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)  # A GUID for each message that SQS took.
    begun: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Count one more step."""
        with self._lock:
            self.begun += 1

    def ask(self, guid: str, does: Does, send: Callable[[], Reply | None]) -> Reply | None:
        """Send by the given call, and write down when, and what came back."""
        with self._lock:
            self.sent.add(guid)
        sent_ms = now_ms()
        reply = send()
        status = None if reply is None else reply.status
        code = None if reply is None else reply.code
        told = Told(guid, does, sent_ms, now_ms(), status, code)
        with self._lock:
            self.told.append(told)
        return reply

    def put(self, guids: list[str], send: Callable[[], list[str]]) -> None:
        """Send messages by the given call, and write down those that the queue has taken."""
        with self._lock:
            self.sent.update(guids)
        taken = send()
        with self._lock:
            self.messages += taken

    def some(self, pick: Callable[[list[str]], list[str]]) -> list[str]:
        """Return what `pick` takes of the GUIDs that were told of so far."""
        with self._lock:
            return pick([each.guid for each in self.told[-2_000:]])

    def codes(self) -> Counter[str]:
        """Return how often each code was told."""
        return Counter(each.code or "no code" for each in self.told)


def now_ms() -> int:
    """Read the wall clock, which is the core's and the functions' as well."""
    return time.time_ns() // 1_000_000

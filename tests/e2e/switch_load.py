"""Channels that go on sending while somebody works at the switches, and what they were told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from local.channels import Channel, Reply

CLIENTS = 8
# Together some 40 requests a second: what they leave is to be drained within the test.
PAUSE_S = 0.2
BODY = b'{"from":"A001","to":"A002","amount":1,"currency":"JPY"}'


@dataclass(frozen=True)
class Sent:
    """One request: when it was sent and answered (epoch ms), and the answer."""

    guid: str
    sent_ms: int
    answered_ms: int
    reply: Reply


@dataclass
class Load:
    """What was sent so far, each GUID once."""

    channel: Channel
    name: str
    _sent: list[Sent] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def sent(self) -> tuple[Sent, ...]:
        """What was answered so far."""
        return tuple(self._sent)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the clients send meanwhile; what they cannot send is raised at the end."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            calls = [pool.submit(self._send, client) for client in range(CLIENTS)]
            try:
                yield
            finally:
                self._stop.set()
            for call in calls:
                call.result()

    def _send(self, client: int) -> None:
        number = 0
        while not self._stop.wait(PAUSE_S):
            number += 1
            guid, sent_ms = f"{self.name}-{client}-{number}", now_ms()
            reply = self.channel.post(guid, BODY)
            self._sent.append(Sent(guid, sent_ms, now_ms(), reply))


def now_ms() -> int:
    """Return the time; epoch ms."""
    return time.time_ns() // 1_000_000

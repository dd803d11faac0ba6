"""The channels: a few threads that take the plan's steps in order, and resend what is open.

At no time do more than these threads call the HTTP front: the emulator has a process for each of
them, and starves when there are many more.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from local.channels import Channel, Reply
from tests.chaos.book import Book
from tests.chaos.plan import Act, Does, Plan, Step, Way
from tests.chaos.truth import is_settled

_WAIT_S: Final = (0.3, 2.5)  # Before a resend; shorter than real channels, so that more fit in.
_ASKS: Final = 0.3  # The channel asks for the status first, and sends again only if it must.
_IDLE_S: Final = 0.05


@dataclass(order=True)
class _Due:
    """A resend that waits for its time."""

    at_s: float
    number: int
    act: Act = field(compare=False)
    nth: int = field(compare=False)


@dataclass
class Clients:
    """Takes the steps of a plan until they are done or the time is up."""

    plan: Plan
    book: Book
    channels: Mapping[str, Channel]
    send_messages: Callable[[Sequence[Act]], list[str]]
    ends_s: float  # By the monotonic clock.
    _fresh: int = 0
    _due: list[_Due] = field(default_factory=list)
    _busy: int = 0
    _numbers: Any = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, threads: int) -> None:
        """Work with so many threads; return when nothing is left, or at the end of the time."""
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()

    def _work(self) -> None:
        while time.monotonic() < self.ends_s:
            job = self._next()
            if job is None:
                return
            try:
                job()
            finally:
                with self._lock:
                    self._busy -= 1

    def _next(self) -> Callable[[], None] | None:
        """Return a resend that is due, else the next step; None when nothing can come any more."""
        while time.monotonic() < self.ends_s:
            with self._lock:
                job = self._take()
                if job is not None:
                    self._busy += 1
                    return job
                if not self._due and not self._busy:
                    return None
            time.sleep(_IDLE_S)
        return None

    def _take(self) -> Callable[[], None] | None:
        if self._due and self._due[0].at_s <= time.monotonic():
            due = heapq.heappop(self._due)
            return lambda: self._post(due.act, due.nth)
        if self._fresh < len(self.plan.steps):
            step = self.plan.steps[self._fresh]
            self._fresh += 1
            return lambda: self._step(step)
        return None

    def _step(self, step: Step) -> None:
        self.book.begin()
        (act, *_) = step.acts
        match step.does:
            case Does.POST:
                self._post(act, 0)
            case Does.AGAIN:
                self._submit(act, Does.AGAIN, act.channel, nth=1)
            case Does.OTHER:
                self._submit(act, Does.OTHER, act.other_channel)
            case Does.CANCEL:
                channel = self.channels[act.channel]
                self.book.ask(act.guid, Does.CANCEL, lambda: _heard(channel.cancel, act.guid))
            case Does.MESSAGES:
                guids = [each.guid for each in step.acts]
                self.book.put(guids, lambda: self.send_messages(step.acts))

    def _post(self, act: Act, nth: int) -> None:
        """Send the act's request for the nth time, and see to it that it is sent again if open."""
        chance = random.Random(f"{self.plan.seed}/{act.guid}/{nth}")
        if nth and chance.random() < _ASKS and _is_over(self._ask(act)):
            return
        reply = self._submit(act, Does.POST, act.channel, nth=nth)
        if nth >= act.ignores and _is_over(reply):
            return
        if nth < act.ignores + act.patience:
            at_s = time.monotonic() + chance.uniform(*_WAIT_S)
            with self._lock:
                heapq.heappush(self._due, _Due(at_s, next(self._numbers), act, nth + 1))

    def _ask(self, act: Act) -> Reply | None:
        channel = self.channels[act.channel]
        return self.book.ask(act.guid, Does.ASK, lambda: _heard(channel.status, act.guid))

    def _submit(self, act: Act, does: Does, channel: str, *, nth: int = 0) -> Reply | None:
        by = self.channels[channel]
        return self.book.ask(
            act.guid,
            does,
            lambda: _heard(by.post, spelt(act, nth), act.body(), headers=act.headers()),
        )


def _is_over(reply: Reply | None) -> bool:
    return reply is not None and is_settled(reply.code)


def spelt(act: Act, nth: int) -> str:
    """Return the GUID as the nth copy spells it: a UUID is the same one in capitals."""
    if nth % 2 == 0:
        return act.guid
    with suppress(ValueError):
        return str(uuid.UUID(act.guid)).upper()
    return act.guid


def _heard(send: Callable[..., Reply], *arguments: Any, **named: Any) -> Reply | None:
    """Return the answer, or None for a connection that broke."""
    try:
        return send(*arguments, **named)
    except (OSError, HTTPException):
        return None


@dataclass(frozen=True)
class MessageSender:
    """Puts acts into the intake queue, past the fault proxy, as another system would."""

    sqs: Any
    queue: str

    def send(self, acts: Sequence[Act]) -> list[str]:
        """Send a batch; return the GUIDs of those that the queue has taken."""
        entries = [{"Id": str(place), **message(act)} for place, act in enumerate(acts)]
        try:
            sent = self.sqs.send_message_batch(QueueUrl=self.queue, Entries=entries)
        except (BotoCoreError, ClientError):
            return []
        return [acts[int(each["Id"])].guid for each in sent.get("Successful", [])]


def message(act: Act) -> dict[str, Any]:
    """Return the act as a message; its GUID stands in the body, in every other one also outside."""
    names = act.headers() if act.way is Way.MESSAGE else {}
    if act.number % 2:
        names["Idempotency-Key"] = act.guid
    attributes = {
        name: {"DataType": "String", "StringValue": value} for name, value in names.items()
    }
    return {"MessageBody": act.body().decode(), "MessageAttributes": attributes}

"""Strikes the running stack as planned: kills, a core that is away, throttling, duplicates."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from local.core_client import CoreControl
from local.rounds import REPROCESSOR, RESOLVER
from local.stack import DEAD_LETTER_QUEUE, RELAY, Stack
from relayhub.message import ACCEPTED
from tests.chaos import weather
from tests.chaos.book import Book
from tests.chaos.kills import KillList, started
from tests.chaos.plan import Plan, Strike

MESSAGES: Final = "MessagesFunction"
PURGER: Final = "PurgerFunction"
INTAKE: Final = "IntakeQueue"
_POLL_S: Final = 0.05
_LOG_S: Final = 3.0
_RUN_S: Final = (0.02, 0.8)  # How long a maintenance run lives before it is killed.
_SOME: Final = 5
# Of the run by hand that is killed, or meets a fault: nothing depends on it.
FAULTS: Final = (RuntimeError, BotoCoreError, ClientError, ValueError)
# What runs by hand beside its schedule, and how often.
_EVERY_S: Final = {RESOLVER: 4.0, REPROCESSOR: 7.0, PURGER: 40.0}
_ENDS: Final[Mapping[Strike, str]] = {
    Strike.KILL_RESOLVER: RESOLVER,
    Strike.KILL_REPROCESSOR: REPROCESSOR,
    Strike.KILL_PURGER: PURGER,
}
_ONE_OF: Final = {Strike.KILL_RELAY: RELAY, Strike.KILL_MESSAGES: MESSAGES}


@dataclass
class Striker:
    """Strikes when as many steps have begun as the plan says, and keeps the faults in force."""

    plan: Plan
    stack: Stack
    core: CoreControl
    book: Book
    kills: KillList
    stopped: threading.Event
    proxy: weather.FiredLog = field(default_factory=weather.FiredLog)
    core_faults: Counter[str] = field(default_factory=Counter)
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.plan.seed)

    def begin(self) -> None:
        """Put the faults in force that are there all the time."""
        self._set_core("")
        self.stack.faults.set_rules(weather.proxy_rules(len(self.plan.acts)))

    def end(self) -> None:
        """Take all faults away."""
        self._count_core()
        self.core.clear()
        self.stack.faults.set_rules([])
        self.proxy.take(self.stack.faults.fired())

    def run(self) -> None:
        """Strike until the plan or the run is over."""
        for each in self.plan.strikes:
            while self.book.begun < each.at:
                if self.stopped.wait(_POLL_S):
                    return
            with suppress(*FAULTS, httpx.HTTPError):
                self._strike(each.strike)

    def read_log(self) -> None:
        """Add up the proxy's log until stopped."""
        while not self.stopped.wait(_LOG_S):
            with suppress(httpx.HTTPError):
                self.proxy.take(self.stack.faults.fired())

    def _strike(self, strike: Strike) -> None:
        match strike:
            case Strike.KILL_RELAY | Strike.KILL_MESSAGES:
                self._kill_one(_ONE_OF[strike])
            case Strike.KILL_RESOLVER | Strike.KILL_REPROCESSOR | Strike.KILL_PURGER:
                self._kill_in_run(_ENDS[strike])
            case Strike.CORE_REFUSES:
                self._close_core("refuse")
            case Strike.CORE_PAUSES:
                self._close_core("accept_nothing")
            case Strike.THROTTLED:
                self._throttle()
            case Strike.HINTS_AGAIN:
                self._send_again(DEAD_LETTER_QUEUE, lambda guid: {"MessageBody": hint(guid)})
            case Strike.ACCEPTED_AGAIN:
                self._send_again(INTAKE, accepted)

    def _kill_one(self, function: str) -> None:
        pids = started(self.stack, function)
        self.kills.kill(function, self._chance.sample(pids, min(1, len(pids))))

    def _kill_in_run(self, function: str) -> None:
        """Start a run, and kill the function's processes, this run's among them, in the midst."""
        with _in_background(lambda: run_by_hand(self.stack, function)):
            self.stopped.wait(self._chance.uniform(*_RUN_S))
            self.kills.kill(function, started(self.stack, function))

    def _close_core(self, port: str) -> None:
        self._set_core(port)
        self.stopped.wait(weather.PAUSE_S)

    def _throttle(self) -> None:
        n = len(self.plan.acts)
        self.stack.faults.set_rules(weather.proxy_rules(n, storm=True))
        self.stopped.wait(weather.STORM_S)
        self.stack.faults.set_rules(weather.proxy_rules(n))

    def _send_again(self, queue: str, entry: Callable[[str], dict[str, Any]]) -> None:
        guids = self.book.some(lambda told: self._chance.sample(told, min(_SOME, len(told))))
        entries = [{"Id": str(place), **entry(guid)} for place, guid in enumerate(guids)]
        if entries:
            client = self.stack.emulator.client("sqs")
            client.send_message_batch(QueueUrl=self.stack.name_of(queue), Entries=entries)

    def _set_core(self, port: str) -> None:
        self._count_core()
        # Another seed each time, else the same requests would meet the same faults again.
        seed = self.plan.seed + sum(self.core_faults.values())
        self.core.set_faults(weather.core_rules(seed, port, weather.PAUSE_S))

    def _count_core(self) -> None:
        """Add up how often each fault struck before the counts begin anew."""
        for rule in self.core.faults()["rules"]:
            self.core_faults[rule["kind"]] += rule["applied"]


def hint(guid: str) -> str:
    """Return a hint that the hub has not sent, or has sent before."""
    return json.dumps({"guid": guid}, separators=(",", ":"))


def accepted(guid: str) -> dict[str, Any]:
    """Return the hub's own message of an accepted request, once more."""
    mark = {ACCEPTED: {"DataType": "String", "StringValue": "1"}}
    return {"MessageBody": hint(guid), "MessageAttributes": mark}


def run_by_hand(stack: Stack, function: str) -> None:
    """Run a maintenance function; one that was killed, or met a fault, has run for nothing."""
    with suppress(*FAULTS):
        stack.invoke(function, {})


def maintain(stack: Stack, function: str, stopped: threading.Event) -> None:
    """Run the function by hand again and again, beside its schedule, until stopped."""
    while not stopped.wait(_EVERY_S[function]):
        run_by_hand(stack, function)


MAINTAINED: Final = tuple(_EVERY_S)


@contextmanager
def _in_background(work: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join()

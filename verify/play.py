"""What one scenario works with: its acts, the channels, the core, and waits.

Every GUID is fresh. What the core may have executed of each is written down with it, and is judged
when the scenario ends and once more when all have ended: a double that comes late counts too.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from verify import reading
from verify.core import Core, Rule
from verify.scenario import CannotError, FailedError, Scenario, Until
from verify.wire import Answer, Caller, Lines

if TYPE_CHECKING:
    from verify.plants import Plant

T = TypeVar("T")

JSON: Final = "application/json"
INTERACTIVE: Final = ("Delivery", "interactive")
_ARRIVED_S: Final = 15.0  # For the core to have read a request that is under way.
_POLL_S: Final = 0.02
_AMOUNTS: Final = range(100, 1_000)  # Other acts move less.


@dataclass(frozen=True)
class Limits:
    """How long is waited, and for how many at once; seconds."""

    settle_s: float = 300.0  # For the relay's own maintenance to end what is open.
    late_s: float = 2.0  # How late the core begins: less than the relay is told to reckon with.
    clients: int = 50

    @property
    def quiet_s(self) -> float:
        """How long it is watched that nothing happens; below an interactive request's validity."""
        return min(self.settle_s / 4, 30.0)


@dataclass
class Act:
    """One business act: what is sent for it each time, and how often the core may execute it."""

    guid: str
    body: bytes
    executed: int | None = 1  # None: the scenario judges that by itself.
    lines: tuple[tuple[str, str], ...] = ()
    spellings: tuple[str, ...] = ()  # Of the same GUID, beside the first.

    @property
    def guids(self) -> tuple[str, ...]:
        """The GUID in all its spellings."""
        return (self.guid, *self.spellings)


def transfer(amount: int = 1) -> bytes:
    """Return the body of a transfer; the amount is in yen."""
    return json.dumps({"from": "A001", "to": "A002", "amount": amount}).encode()


@dataclass(frozen=True)
class Table:
    """Everything that the scenarios of one run share."""

    run_id: str
    relay: Caller
    second: Caller | None
    core: Core
    limits: Limits
    pool: ThreadPoolExecutor
    plant: Plant | None = None


@dataclass
class Play:
    """One scenario as it is played."""

    scenario: Scenario
    table: Table
    acts: list[Act] = field(default_factory=list)

    @property
    def core(self) -> Core:
        """The core behind the relay."""
        return self.table.core

    @property
    def limits(self) -> Limits:
        """How long is waited."""
        return self.table.limits

    @property
    def plant(self) -> Plant:
        """The relay's processes; raises CannotError where they are out of reach."""
        if self.table.plant is None:
            raise CannotError("the relay's processes are out of reach")
        return self.table.plant

    @property
    def second(self) -> Caller:
        """Another channel; raises CannotError where there is none."""
        if self.table.second is None:
            raise CannotError("there is no second identity")
        return self.table.second

    def act(
        self,
        *lines: tuple[str, str],
        executed: int | None = 1,
        amount: int = 1,
        guid: str = "",
        spellings: Sequence[str] = (),
    ) -> Act:
        """Return a new act; `lines` go with each request of it."""
        made = f"v{self.table.run_id}-{self.scenario.id}-{len(self.acts) + 1}"
        act = Act(guid or made, transfer(amount), executed, lines, tuple(spellings))
        self.acts.append(act)
        return act

    def post(
        self,
        act: Act,
        *lines: tuple[str, str],
        body: bytes | None = None,
        content_type: str = JSON,
        by: Caller | None = None,
    ) -> Answer:
        """Send the act's request, once."""
        own = (("Idempotency-Key", act.guid), *act.lines, *lines)
        return self.submit(act.body if body is None else body, own, content_type, by)

    def submit(
        self, body: bytes, lines: Lines, content_type: str = JSON, by: Caller | None = None
    ) -> Answer:
        """Send a request with just these header lines."""
        caller = by or self.table.relay
        return caller.send(
            "POST", "/transactions", body=body, content_type=content_type, lines=lines
        )

    def status(self, act: Act, by: Caller | None = None) -> Answer:
        """Ask for the act's status, as an answer may have said where."""
        return (by or self.table.relay).send("GET", _path(act))

    def cancel(self, act: Act, by: Caller | None = None) -> Answer:
        """Cancel the act; raises CannotError where the relay knows no cancel."""
        answer = (by or self.table.relay).send("POST", f"{_path(act)}/cancel")
        if not reading.is_own_document(answer):
            raise CannotError(f"there is no cancel: it was told {reading.shown(answer)}")
        return answer

    def asked(self, act: Act, by: Caller | None = None) -> Answer:
        """Return the status; raises CannotError where the relay tells none."""
        answer = self.status(act, by)
        if not reading.is_own_document(answer):
            raise CannotError(f"there is no status: it was told {reading.shown(answer)}")
        return answer

    def faults(self, *rules: Rule) -> None:
        """Put these faults of the core in force, in the place of the scenario's earlier ones."""
        self.core.set_faults(self.scenario.id, *rules)

    def heal(self) -> None:
        """Take the scenario's faults away."""
        self.core.heal(self.scenario.id)

    def begin(self, call: Callable[[], T]) -> Future[T]:
        """Make the call in the background."""
        return self.table.pool.submit(call)

    def at_once(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Make the calls, as many at once as there are clients; return the results in order."""
        return [each.result() for each in [self.begin(call) for call in calls]]

    def begin_post(self, act: Act) -> Future[Answer]:
        """Send the act's request in the background; return when the core has read it."""
        call = self.begin(lambda: self.post(act))
        self.until_received(act)
        return call

    def until_received(self, act: Act, count: int = 1) -> None:
        """Return when the core has read the request so often; raises FailedError."""
        found = self.soon(lambda: self.core.received(*act.guids) >= count)
        require(found, f"the core did not get the request within {_ARRIVED_S:.0f} s")

    def soon(self, holds: Callable[[], bool], within_s: float = _ARRIVED_S) -> bool:
        """Wait for what comes at once, while nothing else goes on; tell whether it came."""
        ends = time.monotonic() + within_s
        while not holds():
            if time.monotonic() > ends:
                return False
            time.sleep(_POLL_S)
        return True

    def until(self, holds: Callable[[], bool]) -> Until:
        """Return a wait for the relay's own maintenance."""
        return Until(holds, self.limits.settle_s)

    def pause(self, seconds: float) -> Until:
        """Return a wait that only passes time."""
        return Until(lambda: False, seconds)

    def truth(self, act: Act) -> Generator[Until, bool, Answer]:
        """Wait until the relay knows what became of the act, and return what a resend gets then.

        Where the relay tells no status, the channel resends, as the guide lets it.
        """
        yield self.until(lambda: self.knows(act))
        return self.post(act)

    def knows(self, act: Act, *also: str) -> bool:
        """Tell whether the relay says that the act is over, or one of the other codes."""
        answer = self.status(act)
        if not reading.is_own_document(answer):
            answer = self.post(act)
        told = reading.read(answer)
        return told.is_definite or told.code in also

    def amount(self) -> int:
        """Return an amount by which a request without a GUID can be found in the journal."""
        return random.choice(_AMOUNTS)  # noqa: S311 - any will do

    def executed_amount(self, amount: int) -> int:
        """Return how often the core moved just this amount."""
        return sum(each.amount == amount for each in self.core.executions())

    def executed(self) -> tuple[int, ...]:
        """Return how often the core has executed each act so far."""
        return tuple(self.core.executed(*act.guids) for act in self.acts)

    def judge(self, executed: Sequence[int], *, doubles_only: bool) -> None:
        """Compare what the core executed with what it may have; raises FailedError.

        `doubles_only` is for a scenario that was not played to its end.
        """
        for act, count in zip(self.acts, executed, strict=True):
            if act.executed is None:
                continue
            is_right = count <= act.executed if doubles_only else count == act.executed
            had, wanted = times(count), times(act.executed)
            require(is_right, f"the core executed it {had} instead of {wanted}")


def again(act: Act, **changes: Any) -> Act:
    """Return the act with something else in it, as another request under the same GUID."""
    return replace(act, **changes)


def require(holds: object, sentence: str) -> None:
    """Raise FailedError with the sentence unless it holds."""
    if not holds:
        raise FailedError(sentence)


def times(count: int) -> str:
    """Return a count as people say it."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _path(act: Act) -> str:
    return f"/transactions/{quote(act.guid, safe='')}"

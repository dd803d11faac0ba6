"""Plays the scenarios one after the other; those that wait for maintenance wait side by side.

The rule it protects: a scenario has passed only if the core's journal agrees at the very end, when
every other one has ended too. Whatever happens, the core is left without faults.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import httpx

from local.core_client import ServerError
from verify.play import Limits, Play, Table
from verify.scenario import FailedError, Scenario, Steps, Until

_LOOK_MIN_S: Final = 0.3
_LOOK_MAX_S: Final = 4.0
_TICK_S: Final = 1.0
_IDLE_S: Final = 0.1


@dataclass(frozen=True)
class Outcome:
    """How a scenario ended; `reason` None says that it passed."""

    scenario: Scenario
    reason: str | None
    executed: tuple[int, ...]  # By the core, of each of the scenario's acts.
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether everything was right."""
        return self.reason is None


@dataclass
class _Waiting:
    """A scenario that waits: looked at again and again, ever more rarely."""

    running: _Running
    steps: Steps
    until: Until
    ends: float
    look_at: float = 0.0
    gap_s: float = _LOOK_MIN_S

    def is_over(self, now: float) -> bool | None:
        """Tell whether it holds, or that the time is over; None to wait on."""
        if now < self.look_at and now < self.ends:
            return None
        if self.until.holds():
            return True
        self.look_at = now + self.gap_s
        self.gap_s = min(_LOOK_MAX_S, self.gap_s * 2)
        return False if now >= self.ends else None


@dataclass
class _Running:
    play: Play
    begun: float = field(default_factory=time.monotonic)
    reason: str | None = None
    seconds: float = 0.0


class Runner:
    """Plays scenarios on one relay."""

    def __init__(
        self, table: Table, *, on_scenario: Callable[[str], None] = lambda _: None
    ) -> None:
        """Play with these; `on_scenario` is told what is being done."""
        self._table = table
        self._tell = on_scenario
        self._waiting: list[_Waiting] = []
        self._ticked = 0.0

    def run(self, scenarios: Sequence[Scenario]) -> list[Outcome]:
        """Play all of them, and return their outcomes in the same order."""
        running = [_Running(Play(each, self._table)) for each in scenarios]
        try:
            for each in running:
                self._tell(each.play.scenario.name)
                self._begin(each)
                self._look()
            while self._waiting:
                self._tell(f"waiting for the relay's own maintenance: {len(self._waiting)} left")
                self._look()
                time.sleep(_IDLE_S)
        finally:
            self._table.core.clear()
        return [self._outcome(each) for each in running]

    def _begin(self, running: _Running) -> None:
        running.begun = time.monotonic()

        def start() -> None:
            steps = running.play.scenario.run(running.play)
            if steps is None:
                self._end(running)
            else:
                self._advance(running, steps)

        self._guarded(running, start)

    def _advance(self, running: _Running, steps: Steps, *, came: bool | None = None) -> None:
        """Let the scenario go on to its next wait, or to its end."""
        try:
            until = next(steps) if came is None else steps.send(came)
        except StopIteration:
            self._end(running)
            return
        self._table.core.heal_port(running.play.scenario.id)
        ends = time.monotonic() + until.within_s
        self._waiting.append(_Waiting(running, steps, until, ends))

    def _look(self) -> None:
        """Look at those that wait, once each."""
        self._tick()
        for each in self._waiting[:]:
            self._guarded(each.running, lambda each=each: self._look_at(each))  # type: ignore[misc]

    def _look_at(self, waiting: _Waiting) -> None:
        came = waiting.is_over(time.monotonic())
        if came is not None:
            self._waiting.remove(waiting)
            self._advance(waiting.running, waiting.steps, came=came)

    def _tick(self) -> None:
        plant = self._table.plant
        if plant and self._waiting and time.monotonic() - self._ticked >= _TICK_S:
            plant.tick()
            self._ticked = time.monotonic()

    def _guarded(self, running: _Running, do: Callable[[], None]) -> None:
        """Do a part of a scenario; whatever goes wrong in it is that scenario's end alone."""
        try:
            do()
        except FailedError as error:
            self._end(running, str(error))
        except (httpx.HTTPError, ServerError) as error:
            self._end(running, f"the core's control failed: {type(error).__name__} {error}")
        except Exception as error:  # noqa: BLE001 - an answer of a shape that nobody thought of
            self._end(running, f"it could not be judged: {type(error).__name__}: {error}")

    def _end(self, running: _Running, reason: str | None = None) -> None:
        running.reason = reason
        running.seconds = time.monotonic() - running.begun
        self._waiting = [each for each in self._waiting if each.running is not running]
        self._table.core.heal(running.play.scenario.id)

    def _outcome(self, running: _Running) -> Outcome:
        """Compare with the journal, now that nothing is under way any more."""
        play, reasons = running.play, [running.reason] if running.reason else []
        executed = play.executed()
        try:
            play.judge(executed, doubles_only=bool(reasons))
        except FailedError as error:
            reasons.append(str(error))
        return Outcome(play.scenario, "; ".join(reasons) or None, executed, running.seconds)


def make_pool(limits: Limits) -> ThreadPoolExecutor:
    """Return the threads that the scenarios' calls at once run in."""
    return ThreadPoolExecutor(limits.clients, thread_name_prefix="channel")

"""Runs actors one step at a time in an order that a chooser gives; the same choices, the same run.

An actor is a function of the hub in a greenlet. Before each of its calls to the outside it stops at
a point: whatever may go on then is a move, and the chooser names the move. What the environment
does (time, the core's late execution, a write that takes effect late) is a move as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from tests.explore.chooser import Chooser
from tests.explore.coverage import Coverage

OK: Final = "ok"
KILLED: Final = "killed"  # Before the call.
KILLED_AFTER: Final = "killed_after"  # The call took effect, and nothing after it happens.

Line = tuple[int, str, str, str]  # Of the timeline: epoch ms, who, what, how it ended.
Move = Callable[[], object]  # Something that the environment may do now; it writes its own line.


class ViolationError(BaseException):
    """A rule was broken; no handler of the hub catches it."""


class OverError(BaseException):
    """Ends what is left of an actor when its schedule is over."""


@dataclass(frozen=True)
class Bounds:
    """What one schedule may hold; None sets no bound.

    A preemption is whatever happens while the current actor could go on: another actor's step, time
    that passes, something that the core or a late write does by itself.
    """

    faults: int
    preemptions: int | None = None
    time_moves: int = 0
    kinds: frozenset[str] | None = None  # Of faults; None for all.


@dataclass(eq=False)
class Actor:
    """A function that runs once, and its platform's end of it; `kind` names it in the coverage."""

    name: str
    kind: str
    run: Callable[[], object]
    timeout_ms: int
    after: tuple[str, ...] = ()  # Names of actors that must have ended before it may start.
    status: str = "new"
    dead_at: int = 0
    body: greenlet | None = None
    waits: Callable[[], bool] | None = None  # It may not go on while this is so.

    @property
    def is_over(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.status in {"done", "killed"}


class Scheduler:
    """One schedule. `now_ms` is the virtual clock's."""

    def __init__(
        self,
        chooser: Chooser,
        bounds: Bounds,
        coverage: Coverage,
        now_ms: Callable[[], int],
    ) -> None:
        self.chooser = chooser
        self.bounds = bounds
        self.coverage = coverage
        self.actors: list[Actor] = []
        self.environment: Callable[[], Iterator[Move]] = lambda: iter(())
        self.timeline: list[Line] = []
        self.is_free = True  # Nobody chooses: before the actors start, and after they have ended.
        self.is_over = False
        self.current: Actor | None = None
        self.faults_left = bounds.faults
        self._preemptions_left = bounds.preemptions
        self._now_ms = now_ms
        self._main = getcurrent()

    def add(self, actor: Actor) -> None:
        """Let an actor take part; it starts when the chooser says so."""
        self.actors.append(actor)

    def tell(self, what: str, how: str) -> None:
        """Write a line of the timeline."""
        who = self.current.name if self.current else ""
        self.timeline.append((self._now_ms(), who, what, how))

    def amend(self, how: str) -> None:
        """Say more of the last call, if all that is said of it is that it was made."""
        ms, who, what, ended = self.timeline[-1]
        if ended == OK:
            self.timeline[-1] = (ms, who, what, how)

    def tell_of_environment(self, what: str) -> None:
        """Write a line of the timeline about what no actor does."""
        self.timeline.append((self._now_ms(), "", what, ""))

    def run(self) -> None:
        """Run until no actor can go on."""
        self.is_free = False
        while moves := self._moves():
            move = moves[self.chooser.choose(len(moves))]
            if move is not self.current and self._preemptions_left is not None:
                self._preemptions_left -= self._can_current_go_on()
            if isinstance(move, Actor):
                self._resume(move)
            else:
                move()
        self.current = None
        self.is_free = True

    def end(self) -> None:
        """Unwind the suspended actors, without any effect; what is left holds no cycle."""
        self.is_over = True
        for actor in self.actors:
            if actor.body:  # It was started and has not ended.
                actor.body.throw()
            actor.body = None

    def point(self, call: str, faults: tuple[str, ...] = (), *, about: str = "") -> str:
        """Stop before a call to the outside, about a GUID; return how the call ends."""
        if self.is_over:
            raise OverError
        if self.is_free or self.current is None:
            self.tell(f"{call} {about}", OK)
            return OK
        self._main.switch()
        return self.ends(call, faults, about=about)

    def ends(self, call: str, faults: tuple[str, ...], *, about: str = "") -> str:
        """Return how a call of the current actor ends."""
        actor = self.current
        assert actor is not None
        how = self._how(faults)
        self.coverage.met(f"{actor.kind}: {call}", how, faults)
        self.timeline.append((self._now_ms(), actor.name, f"{call} {about}".rstrip(), how))
        if how == KILLED:
            self.stop_current()
        return how

    def wait(self, waits: Callable[[], bool]) -> None:
        """Stop the current actor until it need not wait any more."""
        if self.is_free or self.current is None:
            return
        self.current.waits = waits
        self._main.switch()
        self.current.waits = None

    def choose(self, call: str, ways: tuple[str, ...]) -> str:
        """Choose among ways in which the outside may go on; none of them is a fault."""
        if self.is_free or len(ways) == 1:
            return ways[0]
        way = ways[self.chooser.choose(len(ways))]
        self.tell(call, way)
        return way

    def decide(self, what: str, ways: tuple[str, ...]) -> str:
        """Choose what becomes of something that is left when all actors have ended."""
        way = ways[self.chooser.choose(len(ways))]
        self.tell(what, way)
        return way

    def stop_current(self) -> None:
        """End the current actor for ever: nothing of it runs any more."""
        assert self.current is not None
        self.current.status = "killed"
        self._main.switch()
        raise OverError

    def kill_overdue(self) -> None:
        """End whoever the platform ends by now."""
        for actor in self.actors:
            if actor.status == "ready" and self._now_ms() > actor.dead_at:
                actor.status = "killed"
                self.timeline.append((self._now_ms(), actor.name, "ended by the platform", ""))

    def _how(self, faults: tuple[str, ...]) -> str:
        if not faults or self.faults_left <= 0:
            return OK
        if self.bounds.kinds is not None:
            faults = tuple(each for each in faults if each in self.bounds.kinds)
        how = (OK, *faults)[self.chooser.choose(1 + len(faults))]
        if how != OK:
            self.faults_left -= 1
        return how

    def _moves(self) -> list[Actor | Move]:
        """Return what may happen next: the current actor first, so that 0 means: go on."""
        ready = [each for each in self.actors if self._may_go_on(each)]
        if not ready:
            is_waiting = any(each.status == "ready" and each.waits for each in self.actors)
            return list(self.environment()) if is_waiting else []
        if self.current in ready:
            if self._preemptions_left == 0:
                return [self.current]
            ready.remove(self.current)
            return [self.current, *ready, *self.environment()]
        return [*ready, *self.environment()]

    def _may_go_on(self, actor: Actor) -> bool:
        if actor.is_over or (actor.waits is not None and actor.waits()):
            return False
        if actor.status == "new" and actor.after:
            return all(each.is_over for each in self.actors if each.name in actor.after)
        return True

    def _can_current_go_on(self) -> bool:
        return self.current is not None and self._may_go_on(self.current)

    def _resume(self, actor: Actor) -> None:
        self.current = actor
        if actor.status == "new":
            actor.status = "ready"
            actor.dead_at = self._now_ms() + actor.timeout_ms
            actor.body = greenlet(self._body(actor))
            self.timeline.append((self._now_ms(), actor.name, "starts", ""))
        assert actor.body is not None
        actor.body.switch()

    def _body(self, actor: Actor) -> Callable[[], None]:
        def body() -> None:
            actor.run()
            actor.status = "done"

        return body

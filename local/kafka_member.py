"""A member of a consumer group that commits by hand: after success, what it owns, nothing more.

What is done with a batch is the caller's. What comes again is kept and handed over again, the same
records in the same order, until it is taken or the partition goes to another member, which then
reads it from the last commit.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from local.kafka_client import Membership, options, place_of, record_of
from local.kafka_event import Place, Record, that_fit

# While nothing comes, a signal and a rebalance are looked after so often.
_LOOK_S: Final = 0.2
_PENDING_MAX: Final = 1_000


@dataclass(frozen=True)
class Verdict:
    """What became of a batch: from which offset each partition comes again (none: all is taken)."""

    again_from: Mapping[Place, int] = field(default_factory=dict)
    reason: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_whole(cls, records: Iterable[Record], reason: str, **told: Any) -> "Verdict":
        """Return the verdict that the whole batch comes again."""
        first: dict[Place, int] = {}
        for record in records:
            first.setdefault(record.place, record.offset)
        return cls(first, reason, told)

    def takes(self, record: Record) -> bool:
        """Say whether the record need not come again."""
        begin = self.again_from.get(record.place)
        return begin is None or record.offset < begin


Handle = Callable[[Sequence[Record]], Verdict]
Report = Callable[[Mapping[str, Any]], None]


class Member:
    """Reads a topic as one member of a group until it is told to stop; one thread runs it."""

    def __init__(self, membership: Membership, handle: Handle, report: Report) -> None:
        """Make the client; the group is joined by `run`."""
        self._membership = membership
        self._handle = handle
        self._report = report
        self._stopped = threading.Event()
        self._consumer = Consumer(options(membership))
        self._owned: set[Place] = set()
        self._begun: set[Place] = set()  # Read from the beginning, and committed since.
        self._pending: list[Record] = []  # Read, and not handed over yet.
        self._again: list[Record] = []  # A whole batch that comes again as it was.
        self._is_paused = False
        self._failures = 0
        self._lives = membership.die_before_commit

    def stop(self) -> None:
        """Let `run` end after the batch in hand; any thread or signal handler may say so."""
        self._stopped.set()

    def run(self) -> None:
        """Join the group, read until stopped, leave it; raises KafkaException for a fatal error."""
        self._consumer.subscribe(
            [self._membership.topic],
            on_assign=self._assigned,
            on_revoke=partial(self._forget, "revoked"),
            on_lost=partial(self._forget, "lost"),
        )
        try:
            while not self._stopped.is_set():
                batch = self._again or self._gathered()
                if batch:
                    self._deliver(batch)
        finally:
            self._consumer.close()

    def _gathered(self) -> list[Record]:
        """Wait for records until the batch is full, too large for one call, or its time is over."""
        self._hear()
        ends_s: float | None = None
        while len(self._pending) < self._membership.batch and not self._stopped.is_set():
            self._let_come()
            if self._pending and ends_s is None:
                ends_s = time.monotonic() + self._membership.window_s
            left_s = _LOOK_S if ends_s is None else ends_s - time.monotonic()
            if left_s <= 0:
                break
            self._poll(left_s)
        if self._stopped.is_set():
            return []
        batch = list(that_fit(self._pending[: self._membership.batch]))
        del self._pending[: len(batch)]
        return batch

    def _deliver(self, batch: list[Record]) -> None:
        begun_ms = _now_ms()
        verdict = self._handle(batch)
        line = _line(batch, verdict, self._failures + 1) | {"between_ms": [begun_ms, _now_ms()]}
        taken = [record for record in batch if verdict.takes(record)]
        self._die_if_due(taken, line)
        self._keep([record for record in batch if not verdict.takes(record)], is_whole=not taken)
        # What the group has decided meanwhile is heard before anything is committed.
        self._hear()
        committed = self._commit(taken)
        self._report({**line, "committed": committed})
        self._failures = self._failures + 1 if verdict.again_from else 0
        if self._failures:
            self._rest()

    def _keep(self, left: list[Record], *, is_whole: bool) -> None:
        """Keep what comes again: a whole batch as it was, else before what was read after it."""
        self._again = left if is_whole else []
        if not is_whole:
            self._pending = left + self._pending

    def _die_if_due(self, taken: Sequence[Record], line: Mapping[str, Any]) -> None:
        """End as a crash would between the work and its commit, if this one was chosen for that."""
        if not taken or self._lives == 0:
            return
        self._lives -= 1
        if self._lives == 0:
            self._report({**line, "outcome": "killed before commit", "committed": {}})
            os.kill(os.getpid(), signal.SIGKILL)

    def _commit(self, taken: Iterable[Record]) -> dict[str, int]:
        """Commit what is still ours, and say what was; what is not committed is read again."""
        following = {
            record.place: record.offset + 1 for record in taken if record.place in self._owned
        }
        offsets = [TopicPartition(*place, offset) for place, offset in following.items()]
        if not offsets:
            return {}
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self._report({"event": "error", "reason": f"not committed: {error}"})
            return {}
        self._begun.update(following)
        return {str(place): offset for place, offset in following.items()}

    def _rest(self) -> None:
        """Wait before the next try, and hear the group meanwhile."""
        longest_s = self._membership.back_off_s_max
        rest_s = min(self._membership.back_off_s * 2 ** (self._failures - 1), longest_s)
        ends_s = time.monotonic() + rest_s
        while (left_s := ends_s - time.monotonic()) > 0 and not self._stopped.is_set():
            self._poll(min(left_s, _LOOK_S))

    def _hear(self) -> None:
        """Take in all that has come: a rebalance stands in the client's queue behind records."""
        while self._poll(0):
            pass

    def _poll(self, within_s: float) -> bool:
        """Take in one record, error or rebalance; False if there was none of the first two."""
        message = self._consumer.poll(within_s)
        if message is None:
            return False
        error = message.error()
        if error is None:
            self._pending.append(record_of(message))
            self._hold_back()
        elif error.fatal():
            raise KafkaException(error)
        else:
            self._report({"event": "error", "reason": str(error)})
        return True

    def _hold_back(self) -> None:
        """Let no more records come when there are plenty; the client's place in the log stays."""
        enough = max(_PENDING_MAX, self._membership.batch)
        if len(self._pending) >= enough and not self._is_paused:
            self._is_paused = True
            self._consumer.pause([TopicPartition(*place) for place in self._owned])

    def _let_come(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._consumer.resume([TopicPartition(*place) for place in self._owned])

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            place = place_of(partition)
            if self._membership.from_beginning and place not in self._begun:
                partition.offset = OFFSET_BEGINNING
            self._owned.add(place)
        consumer.assign(partitions)
        self._tell("assigned", partitions)

    def _forget(self, event: str, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop what another member will own: it reads that from the last commit."""
        # One given up while it is held back stays so when it comes back, and is never read again.
        self._let_come()
        places = {place_of(each) for each in partitions}
        self._owned -= places
        self._pending = [record for record in self._pending if record.place not in places]
        self._again = [record for record in self._again if record.place not in places]
        if not self._again:
            self._failures = 0
        self._tell(event, partitions)

    def _tell(self, event: str, partitions: Iterable[TopicPartition]) -> None:
        names = sorted(str(place_of(each)) for each in partitions)
        self._report({"event": event, "partitions": names})


def _line(batch: Sequence[Record], verdict: Verdict, attempt: int) -> dict[str, Any]:
    offsets: dict[str, list[int]] = {}
    for record in batch:
        offsets.setdefault(str(record.place), []).append(record.offset)
    again = [record for record in batch if not verdict.takes(record)]
    outcome = "taken" if not again else "again" if len(again) == len(batch) else "partly taken"
    line = {"event": "batch", "offsets": offsets, "attempt": attempt, "outcome": outcome}
    reason = {"reason": verdict.reason} if verdict.reason else {}
    return line | reason | dict(verdict.told)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

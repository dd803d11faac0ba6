"""Who and what the set-ups are made of: calls, jobs, rows that were there before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from relayhub.message import ACCEPTED, fingerprint
from relayhub.row import Row, hub_sends, index_key, to_item
from relayhub.settings import Settings, checked, load
from relayhub.states import Code, Event, Hold, State, Why
from tests.environment import ENVIRONMENT
from tests.events import get_event, post_event
from tests.explore.aws import READ_FAULTS, SEND_FAULTS, WRITE_FAULTS
from tests.explore.bank import EXECUTES, Attempt
from tests.explore.events import Topic, request_attributes
from tests.explore.net import CORE_FAULTS
from tests.explore.scheduler import Bounds, Move
from tests.explore.world import FOR_EVER_MS, HINTS, INTAKE, START_MS, Setup, World
from tests.maintenance import failed_row


def ulid(born_ms: int) -> str:
    """Return a ULID of that time of birth."""
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "".join(digits[(born_ms >> shift) % 32] for shift in range(45, -1, -5)) + "0" * 16


BODY: Final = b'{"amount":100}'
OTHER_BODY: Final = b'{"amount":200}'
FINGERPRINT: Final = bytes.fromhex(fingerprint("", BODY, "body"))
G: Final = "G"
# A ULID that was born 31 days before the start: beyond the ledger's memory.
OLD: Final = ulid(START_MS - 31 * 86_400_000)


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


def put(world: World, row: Row) -> None:
    """Put a row that was there before, and that its channel knows of."""
    world.table.items[row.guid] = to_item(row)
    world.rules.known.add(row.guid)


def _row(guid: str, now_ms: int = START_MS) -> Row:
    row = failed_row(guid, now_ms, shards=1)
    return replace(row, request=BODY, request_type="application/json", fingerprint=FINGERPRINT)


def executed_before(world: World, guid: str, ago_ms: int) -> bytes:
    """Let the core have executed the GUID that long ago; return its answer."""
    at_ms = START_MS - ago_ms
    attempt = Attempt(guid, 1, at_ms, at_ms)
    world.bank.attempts.append(attempt)
    world.bank.execute(attempt)
    assert attempt.fate == EXECUTES
    return attempt.answer


def failed(world: World, guid: str = G, *, hints: int = 1, **changes: Any) -> None:
    """Put a row that was certainly not sent, and hints of it."""
    row = replace(_row(guid), **changes)
    # What the hub does not send by itself has its turn when its validity ends.
    put(world, row if hub_sends(row) else replace(row, due_at=row.valid_until))
    for _ in range(hints):
        world.aws.put_message(HINTS, f'{{"guid":"{guid}","attempt":1}}')


def doubted(world: World, guid: str = G, **changes: Any) -> None:
    """Put a row that the core was believed not to have, and a hint of it."""
    failed(world, guid, doubted=True, why=Why.NOT_FOUND, **changes)


def unknown(world: World, guid: str = G, *, arrived: bool = True, **changes: Any) -> None:
    """Put a row in doubt, whose request the core may still execute, if it arrived."""
    longest_s = world.setup.settings.core_longest_s + world.setup.settings.clock_skew_s
    row = replace(
        _row(guid),
        state=State.UNKNOWN,
        code="E901",
        why=None,
        doubted=True,
        open_shard=index_key(State.UNKNOWN, 0),
        due_at=START_MS,
        sent_at=START_MS - 1_000,
        ended_at=START_MS,
        ask_after=START_MS + longest_s * 1000,
    )
    put(world, replace(row, **changes))
    if arrived:
        longest_ms = world.bank.longest_ms()
        world.bank.attempts.append(Attempt(guid, 1, START_MS + longest_ms, START_MS))


def received(world: World, guid: str = G, *, messages: int = 1, **changes: Any) -> None:
    """Put a row that was accepted for later, and its messages."""
    row = replace(
        _row(guid),
        state=State.RECEIVED,
        code=None,
        why=None,
        attempt=0,
        claim_id=f"accepted-{guid}",
        core=None,
        sent_at=None,
        dead_at=None,
        ended_at=None,
        ask_after=None,
        open_shard=index_key(State.RECEIVED, 0),
        due_at=START_MS + 120_000,
    )
    put(world, replace(row, **changes))
    for _ in range(messages):
        accepted_message(world, guid)


def sent(world: World, guid: str = G, **changes: Any) -> None:
    """Put a row whose holder died after its request had arrived."""
    open_shard = index_key(State.SENT, 0)
    dead_at = START_MS + 1_000
    longest_s = world.setup.settings.core_longest_s + world.setup.settings.clock_skew_s
    fields: dict[str, Any] = {
        "state": State.SENT,
        "code": None,
        "doubted": False,
        "open_shard": open_shard,
        "dead_at": dead_at,
        "ended_at": dead_at,
        "due_at": dead_at + 5_000,
        "ask_after": dead_at + longest_s * 1000,
    }
    unknown(world, guid, **fields | changes)


def done(world: World, guid: str = OLD, *, ago_ms: int, expires_in_ms: int, **changes: Any) -> None:
    """Put a row that was executed that long ago, and what the core knows of it."""
    answer = executed_before(world, guid, ago_ms)
    row = replace(
        _row(guid, START_MS - ago_ms),
        state=State.DONE,
        code="0000",
        why=None,
        response=answer,
        response_status=200,
        response_type="application/json",
        answer_source="core",
        open_shard=None,
        due_at=None,
        expires_at=(START_MS + expires_in_ms) // 1000,
    )
    put(world, replace(row, **changes))


def wrong_rows(world: World) -> None:
    """Put rows that no write of the hub has made: an expiry or an index key that must not be."""
    expires_at = START_MS // 1000 - 1
    done(world, "GD", ago_ms=1_000, expires_in_ms=-1_000, hold=Hold.OPERATOR)
    failed(world, "GF", hints=0, expires_at=expires_at)
    unknown(world, "GU", open_shard=None, due_at=None)
    sent(world, "GS", expires_at=expires_at)
    received(world, "GR", messages=0, open_shard="FAILED#0")
    world.others.append(DailyPurge(world))


def close_gate(world: World, probe_at_ms: int) -> None:
    """Let the core have been found away, and a probe of it be due then."""
    world.table.items["!gate"] = {"guid": {"S": "!gate"}, "probe_at": {"N": str(probe_at_ms)}}


def request_message(
    world: World, guid: str = G, *, sent_ms: int = START_MS, **headers: str
) -> None:
    """Put a message that is a request into the intake queue."""
    attributes = request_attributes(guid, **headers)
    world.aws.put_message(INTAKE, BODY.decode(), attributes, sent_ms=sent_ms)


def accepted_message(world: World, guid: str = G) -> None:
    """Put the hub's own message of an accepted request into the intake queue."""
    mark = {ACCEPTED: {"DataType": "String", "StringValue": "1"}}
    world.aws.put_message(INTAKE, f'{{"guid":"{guid}"}}', mark)


def operator(world: World, **more: Any) -> None:
    """Let an operator restore the ledger to an earlier moment, by the rules for that."""
    world.add("operator", partial(_restore, world), timeout_ms=FOR_EVER_MS, **more)


def _restore(world: World) -> None:
    """Roll back, and take every open row into doubt; nothing else runs meanwhile.

    The senders have been stopped for as long as the core and the longest function may take.
    """
    past = [items for items in world.past if G in items]
    if not past:
        return
    names = tuple(f"as after write {number}" for number in range(len(past)))
    chosen = names.index(world.scheduler.choose("restores", names))
    waits_ms = (world.hub.settings.core_longest_s + world.hub.settings.longest_timeout_s) * 1000
    world.advance_to(world.ms + waits_ms + 1)
    world.aws.late.clear()
    world.table.items = dict(past[chosen])
    world.scheduler.is_free = True
    for guid in past[chosen]:
        row = world.hub.ledger.read(guid)
        assert isinstance(row, Row)
        _take_into_doubt(world, row, waits_ms)
    world.scheduler.is_free = False


def _take_into_doubt(world: World, row: Row, waits_ms: int) -> None:
    if row.state is State.DONE:
        return
    skew_ms = world.hub.settings.clock_skew_s * 1000
    event = Event.HELD if row.state is State.UNKNOWN else Event.RESTORED
    world.hub.ledger.move(
        row,
        event,
        "operator",
        world.ms,
        code=Code.E901,
        why=None,
        hold=Hold.RESTORED,
        parked=None,
        doubted=True,
        core=world.hub.settings.core_name,
        sent_at=world.ms,
        ended_at=world.ms,
        ask_after=world.ms + waits_ms + skew_ms,
        due_at=world.ms,
    )


class Bystander:
    """Somebody who does nothing by himself before the end, and has nothing to check at it."""

    def moves(self) -> Iterator[Move]:
        """Do nothing by himself."""
        return iter(())

    def executed(self, guid: str) -> None:
        """Hear of an execution."""

    def check_end(self) -> None:
        """Check nothing."""


@dataclass(eq=False)
class DailyPurge(Bystander):
    """The purger's next day, without a fault."""

    world: World
    has_run: bool = False

    def goes_on(self) -> bool:
        """Run once."""
        if not self.has_run:
            self.has_run = True
            self.world.purger()
        return False

    def state(self) -> object:
        """Return nothing: it has not run before the end."""
        return ()


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

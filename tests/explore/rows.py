"""Rows that were there before, and what core and queues know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from relayhub.message import ACCEPTED, fingerprint
from relayhub.row import Row, hub_sends, index_key, to_item
from relayhub.states import Hold, State, Why
from tests.explore.bank import EXECUTES, Attempt
from tests.explore.hubs import HINTS, INTAKE
from tests.explore.setup import Bystander
from tests.explore.world import START_MS, World
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
    row = replace(row, **changes)
    put(world, row)
    ask_after = row.ask_after or 0
    if arrived and ask_after > START_MS:
        request_arrived(world, guid)


def nearly_believed() -> dict[str, Any]:
    """Return the times of a row in doubt whose first NOT_FOUND counted, and the second would."""
    sent_at = START_MS - 200_000
    return {
        "sent_at": sent_at,
        "dead_at": sent_at + 25_000,
        "ended_at": sent_at + 25_000,
        "ask_after": sent_at + 90_000,
        "not_found_at": sent_at + 100_000,
    }


def request_arrived(world: World, guid: str) -> None:
    """Let the GUID's first attempt wait within the core."""
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


def accepted_message(world: World, guid: str = G) -> None:
    """Put the hub's own message of an accepted request into the intake queue."""
    mark = {ACCEPTED: {"DataType": "String", "StringValue": "1"}}
    world.aws.put_message(INTAKE, f'{{"guid":"{guid}"}}', mark)


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

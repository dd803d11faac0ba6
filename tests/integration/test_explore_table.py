"""The explorer's table and moto give the same answers to the same random requests of the ledger."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from relayhub.ledger import Found, Ledger, Stored
from relayhub.row import HISTORY_MAX, Row, encode
from relayhub.states import STEPS, Event, Hold, State
from relayhub.upkeep import Due, Upkeep
from tests.emulated import client, make_table
from tests.environment import TABLE
from tests.explore.table import Table, UnknownRequestError
from tests.world import START_MS

_GUIDS: Final = ("G-1", "G-2", "G-3")
_SHARDS: Final = 2
_CALLS: Final = 200
_WRITES: Final = {"put_item", "update_item", "delete_item"}
_PUTS: Final = {Event.CLAIMED: State.SENT, Event.ACCEPTED: State.RECEIVED, Event.TOMBSTONED: None}
Steps = list[Callable[[], object]]


@dataclass
class Both:
    """A DynamoDB client that asks moto and the explorer's table, and compares what they say."""

    table: Table = field(default_factory=Table)
    seen: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        """Return the operation on both."""

        def ask(**request: Any) -> dict[str, Any]:
            theirs = _answer(getattr(client("dynamodb"), operation), request)
            ours = _answer(getattr(self.table, operation), request)
            assert _told(ours) == _told(theirs), (operation, request)
            if operation in _WRITES:
                assert self.table.items == _items()
            failed = isinstance(ours, ClientError)
            self.seen[f"{operation} {'refused' if failed else 'made'}"] += 1
            if isinstance(theirs, ClientError):
                raise theirs
            return theirs

        return ask


def _answer(operation: Any, request: dict[str, Any]) -> dict[str, Any] | ClientError:
    try:
        answer: dict[str, Any] = operation(**request)
    except ClientError as error:
        return error
    return answer


def _told(answer: dict[str, Any] | ClientError) -> tuple[Any, ...]:
    """Return what counts: the items in any order, or the error's code and item."""
    if isinstance(answer, ClientError):
        return (answer.response["Error"]["Code"], answer.response.get("Item"))
    items = sorted(answer.get("Items", ()), key=lambda item: str(item["guid"]))
    return (answer.get("Item"), items)


def _items() -> dict[str, Any]:
    found = client("dynamodb").scan(TableName=TABLE, ConsistentRead=True)["Items"]
    return {item["guid"]["S"]: item for item in found}


@dataclass
class Caller:
    """Makes random requests by the ledger's own code, with rows that are old news as well."""

    both: Both
    chance: Random
    now_ms: int = START_MS
    rows: list[Row] = field(default_factory=list)
    ids: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        """Make the hub's clients."""
        self.ledger = Ledger(
            self.both, TABLE, shards=_SHARDS, on_step=lambda *_: None, pause=lambda _: None
        )
        self.upkeep = Upkeep(
            self.both, TABLE, now_ms=lambda: self.now_ms, skew_s=5, pause=lambda _: None
        )

    def ask(self) -> None:
        """Make one request, or the few that one call of the ledger makes."""
        # Never the same moment twice: the index orders rows of one moment as it likes.
        self.now_ms += self.chance.randint(1, 20_000)
        calls = (self.create, *(self.move,) * 6, self.read, self.look_after, self.own_rows)
        self.chance.choice((*calls, self.raw))()

    def create(self) -> None:
        """Put a row where none is, or is."""
        event, state = self.chance.choice(list(_PUTS.items()))
        row = Row(
            guid=self.chance.choice(_GUIDS),
            state=state or State.DONE,
            channel=self.chance.choice(("atm", "app")),
            accepted_at=self.now_ms,
            updated_at=self.now_ms,
            request=self.chance.choice((b"{}", b"x" * 3_000)),
            attempt=int(state is State.SENT),
            claim_id=None if state is None else f"claim-{next(self.ids)}",
            valid_until=self.now_ms + self.chance.randint(1, 200_000),
            due_at=None if state is None else self.now_ms + 1_000,
        )
        self._keep(self.ledger.create(row, event, "relay"))

    def move(self) -> None:
        """Take a legal step from a row as it is, or as it was."""
        if not self.rows:
            return
        row = self.chance.choice(self.rows[-3:] if self.chance.random() < 0.7 else self.rows)
        events = [step.event for step in STEPS if step.source is row.state and step.target]
        event = self.chance.choice(events)
        by = self.chance.choice(("relay", "reprocessor", "resolver"))
        self._keep(self.ledger.move(row, event, by, self.now_ms, **self._changes(row, event)))

    def _changes(self, row: Row, event: Event) -> dict[str, Any]:
        ways: dict[str, tuple[Any, ...]] = {
            "due_at": (self.now_ms, self.now_ms + 60_000),
            "code": (None, "E902", "0000"),
            "hold": (None, Hold.CONTRADICTION),
            "parked": (None, "cap"),
            "cancel": (None, {"at": self.now_ms, "by": "atm"}),
            "processing_at": (None, self.now_ms),
            "not_found_at": (None, self.now_ms),
            "response": (None, b'{"code":"0000"}'),
            "doubted": (True, False),
            "expires_at": (None, self.now_ms // 1000 - 1, self.now_ms // 1000 + 1),
            "inquiries": (0, row.inquiries + 1),
        }
        names = self.chance.sample(list(ways), self.chance.randint(0, 4))
        changes = {name: self.chance.choice(ways[name]) for name in names}
        if event is Event.CLAIMED:
            claim = {"claim_id": f"claim-{next(self.ids)}", "attempt": row.attempt + 1}
            return changes | claim
        return changes

    def read(self) -> None:
        """Read a row, or none."""
        row = self.ledger.read(self.chance.choice(_GUIDS))
        if isinstance(row, Row):
            self.rows.append(row)

    def look_after(self) -> None:
        """Ask for what is due, scan, delete, set aside."""
        group = self.chance.choice((*State, "PARKED", "HELD"))
        due = self.upkeep.due(group, self.chance.randrange(_SHARDS), self.now_ms, 10)
        assert due == sorted(due, key=lambda each: each.due_at)
        chosen = self.chance.choice([*due, Due(self.now_ms, "G-1")])
        ways: Steps = [
            lambda: self.upkeep.set_aside(chosen, self.now_ms + 5_000),
            lambda: self.upkeep.scan(0, 1, None),
            lambda: self.upkeep.delete_expired(self.chance.choice(_GUIDS), self.now_ms // 1000),
        ]
        self.chance.choice(ways)()

    def own_rows(self) -> None:
        """Use the gate and the cursors."""
        was = self.chance.choice((self.upkeep.gate_opens_at() or 0, 7))
        ways: Steps = [
            lambda: self.upkeep.take_probe(was, self.now_ms),
            lambda: self.upkeep.close_gate(self.now_ms),
            self.upkeep.open_gate,
            lambda: self.upkeep.keep_cursor(0, 1, "G-2"),
            lambda: self.upkeep.cursor(0, 1),
            lambda: self.upkeep.forget_cursors(1),
        ]
        self.chance.choice(ways)()

    def raw(self) -> None:
        """Make a write of the ledger's shapes with terms that its code would not put together."""
        name = self.chance.choice(list(_NAMES))
        # Of another type than the attribute only in an equality: moto itself breaks on the rest.
        sign = self.chance.choice(("=", "<", "<=", ">", ">="))
        compared = self.chance.choice(_NAMES[name] if sign != "=" else (1, "SENT", b"b"))
        terms = [f"#{name} {sign} :v0", *self.chance.sample(_TERMS, self.chance.randint(0, 2))]
        names, values = {f"#{name}": name}, {":v0": encode(compared)}
        request: dict[str, Any] = {
            "TableName": TABLE,
            "Key": {"guid": encode(self.chance.choice(_GUIDS))},
            "ConditionExpression": " AND ".join(terms),
            "ExpressionAttributeValues": values,
            "ExpressionAttributeNames": names,
        }
        if self.chance.random() < 0.5:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        operation = self.both.delete_item
        if self.chance.random() < 0.8:
            operation = self.both.update_item
            names.update({"#updated_at": "updated_at", "#parked": "parked"})
            values[":v1"] = encode(self.now_ms)
            request["UpdateExpression"] = "SET #updated_at = :v1 REMOVE #parked"
        _answer(operation, request)

    def _keep(self, outcome: object) -> None:
        if isinstance(outcome, Stored | Found):
            self.rows.append(outcome.row)


_NAMES: Final[dict[str, tuple[Any, ...]]] = {
    "state": ("DONE", "SENT"),
    "code": ("0000", "E902"),
    "attempt": (0, 1, 2),
    "due_at": (START_MS, START_MS + 1_000_000),
    "claim_id": ("claim-1", "claim-3"),
}
_TERMS: Final = (
    "attribute_exists(guid)",
    "attribute_not_exists(guid)",
    "attribute_exists(channel)",
    "attribute_not_exists(accepted_at)",
)


@pytest.fixture
def both(aws: None) -> Both:
    """Return a client of moto's table and the explorer's, both empty."""
    del aws
    make_table()
    return Both()


@pytest.mark.parametrize("seed", range(6))
def test_the_tables_agree_on_every_request_of_the_ledger(both: Both, seed: int) -> None:
    """Answers, errors, the items that come with them, and what stands in the table afterwards."""
    caller = Caller(both, Random(seed))
    for _ in range(_CALLS):
        caller.ask()
    kinds = ("put_item made", "put_item refused", "update_item made", "update_item refused")
    assert all(both.seen[kind] > 2 for kind in kinds), both.seen


def test_the_tables_agree_where_the_history_is_full(both: Both) -> None:
    """From its twentieth line on a write names the whole history, and its length."""
    caller = Caller(both, Random(0))
    caller.create()
    row = caller.rows[-1]
    for number in range(HISTORY_MAX + 3):
        outcome = caller.ledger.move(row, Event.HELD, "operator", START_MS + number)
        assert isinstance(outcome, Stored)
        stale, row = row, outcome.row
        assert isinstance(
            caller.ledger.move(
                replace(stale, hold=Hold.OPERATOR), Event.HELD, "relay", START_MS + number
            ),
            Found,
        )
    assert row.history_dropped > 0


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("update_item", {"UpdateExpression": "ADD attempt :v0"}),
        ("update_item", {"UpdateExpression": "SET #a = :v0", "ReturnValues": "ALL_NEW"}),
        ("delete_item", {"ConditionExpression": "NOT attribute_exists(guid)"}),
        ("delete_item", {"ConditionExpression": "guid = :v0 OR guid = :v0"}),
        ("get_item", {}),
    ],
    ids=["add", "returns", "not", "or", "inconsistent"],
)
def test_the_table_refuses_what_it_does_not_know(operation: str, more: dict[str, Any]) -> None:
    """It never guesses."""
    request = {"TableName": TABLE, "Key": {"guid": encode("G-1")}, **more}
    if "Expression" in str(more):
        request["ExpressionAttributeValues"] = {":v0": encode(1)}
    with pytest.raises(UnknownRequestError):
        getattr(Table(), operation)(**request)

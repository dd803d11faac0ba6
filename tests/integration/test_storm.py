"""A thousand transactions while ledger and bucket refuse: none is executed twice, none lost."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import pytest

from relayhub.answers import AnswerStore
from relayhub.core import Answered, CoreRequest, Doubt, Finding, NotSent, SendOutcome
from relayhub.hub import Hub
from relayhub.message import Answer
from relayhub.replies import Reply
from relayhub.row import Row, from_item
from relayhub.settings import Settings
from relayhub.states import State
from tests.environment import BUCKET
from tests.explore.table import Table
from tests.maintenance import NOT_FOUND, processed
from tests.message_events import PREFER, accepted_message, deliver, sqs_event, sqs_message
from tests.plant import Bank, Plant
from tests.weather import Weather, table_answer
from tests.world import REFUSED

TRANSACTIONS: Final = 1_000
LEDGER_SHARE: Final = 0.3
BUCKET_SHARE: Final = 0.1
SEED: Final = 7
# After these no row need be there: nothing was recorded.
UNRECORDED: Final = frozenset({"E905", "E906", "E907"})
MINUTES_MAX: Final = 240
CODE: Final = b'{"code":"0000","guid":"%s"}'


@dataclass
class Market(Bank):
    """A bank of many answers: large ones, refusals, late executions, and times when it is away."""

    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    answers: dict[str, Answer] = field(default_factory=dict)

    def send(self, request: CoreRequest, *, within_s: float) -> SendOutcome:
        """Execute, refuse or leave the request, by chance."""
        assert within_s > 0
        self.sends.append((request.guid, request.attempt))
        draw = self.chance.random()
        if draw < 0.05:
            return NotSent("connect_refused")
        if draw < 0.08:
            return Doubt("no_answer", aborted=True)  # It was never executed.
        if draw < 0.13:
            self.answers[request.guid] = REFUSED
            return Answered(REFUSED)
        self.executed[request.guid] += 1
        pad = b" " * 400_000 if draw > 0.94 else b""
        body = CODE.replace(b"%s", request.guid.encode()) + pad
        answer = self.answers[request.guid] = Answer(200, "application/json", body, "0000")
        return Doubt("answer_timeout", aborted=True) if draw < 0.2 else Answered(answer)

    def ask(self, guid: str, *, inquiry_id: str, within_s: float) -> Finding:
        """Tell what became of the GUID."""
        del inquiry_id, within_s
        return processed(self.answers[guid]) if guid in self.answers else NOT_FOUND


class Storm(Plant):
    """A plant whose ledger and bucket refuse a share of all requests."""

    def __init__(self, weather: Weather) -> None:
        self.weather = weather
        self.ledger_table = Table()
        self.bucket_client = weather.client("s3")
        super().__init__(shards=1, read_shards=1, scan_segments=1, inquiries_per_s=1000)
        self.bank = self.market = Market(self.clock)
        self.told: dict[str, list[Reply]] = defaultdict(list)
        self.taken: set[str] = set()  # GUIDs of which anybody was told more than "not accepted".
        self.use(weather.client("dynamodb", table_answer(self.ledger_table)))

    def make_hub(self, settings: Settings) -> Hub:
        """Return a hub in the weather."""
        store = AnswerStore(self.bucket_client, BUCKET)
        return replace(super().make_hub(settings), store=store, core=self.bank)

    def send(self, guid: str, way: str) -> None:
        """Send a request by its way; whoever got no place at all sends it again twice."""
        for _ in range(3):
            self.clock.ms += 40
            if way == "message":
                taken = deliver(self, sqs_event(sqs_message(guid, sent_ms=self.clock()))) == []
            else:
                reply = self.post(guid, headers=PREFER if way == "later" else {})
                self.told[guid].append(reply)
                taken = reply.code not in UNRECORDED
            if taken:
                self.taken.add(guid)
                return

    def rows(self) -> dict[str, Row]:
        """Return every GUID's row."""
        return {
            guid: from_item(item)
            for guid, item in self.ledger_table.items.items()
            if guid[0] != "!"
        }

    def messages(self) -> None:
        """Hand over what was accepted for later; what is given back comes again."""
        waiting, self.inbox.accepted = self.inbox.accepted, []
        for body in waiting:
            guid = body.split('"')[3]
            if deliver(self, sqs_event(accepted_message(guid, sent_ms=self.clock()))):
                self.inbox.accepted.append(body)


def plan() -> Iterator[tuple[str, str]]:
    """Return the transactions, each with its way in."""
    chance = random.Random(SEED)
    ways = ("wait", "wait", "wait", "later", "message")
    for number in range(TRANSACTIONS):
        yield f"T-{number:04}", chance.choice(ways)


@pytest.fixture
def storm(aws: None) -> Storm:
    """Return the plant in its weather."""
    del aws
    shares = {"dynamodb": LEDGER_SHARE, "s3": BUCKET_SHARE}
    return Storm(Weather(random.Random(SEED), shares))


def settled(storm: Storm) -> dict[str, Row]:
    """Let time pass, with the jobs, until every row is done or parked; return the rows."""
    for _ in range(0, MINUTES_MAX, 5):
        rows = storm.rows()
        if all(row.state is State.DONE or row.parked for row in rows.values()):
            return rows
        storm.schedules(5)
        storm.messages()
    raise AssertionError("a row is stuck")


def contradictions(storm: Storm) -> list[str]:
    """Return the GUIDs of which somebody was told what the core's journal does not have."""
    executed = storm.bank.executed
    return [
        guid
        for guid, told in storm.told.items()
        for reply in told
        if (reply.code == "0000" and executed[guid] != 1)
        or (reply.code in {"B201", "E908"} and executed[guid] != 0)
    ]


def test_a_thousand_transactions_in_bad_weather_end_once_each(storm: Storm) -> None:
    """Each accepted GUID has its row at once, and in the end is done, or parked for a person."""
    for number, (guid, way) in enumerate(plan()):
        storm.send(guid, way)
        if number % 50 == 49:
            storm.messages()
    bank, refused = storm.market, storm.weather.refused
    assert (storm.taken | bank.executed.keys()) <= storm.rows().keys()
    assert storm.inbox.rejected == []

    rows = settled(storm)
    assert set(bank.executed.values()) == {1}
    assert {row.guid for row in rows.values() if row.code == "0000"} == bank.executed.keys()
    assert contradictions(storm) == []
    assert len(bank.sends) == len(set(bank.sends))  # No two sends bear the same attempt.
    assert (refused["dynamodb"] > TRANSACTIONS, refused["s3"] > 0) == (True, True)

    storm.weather.clear()
    for guid in sorted(bank.executed)[::10]:
        reply = storm.post(guid)
        assert reply.code == "E904" or reply.body == bank.answers[guid].body  # Or a message's.
    assert set(bank.executed.values()) == {1}

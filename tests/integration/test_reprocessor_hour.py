"""A core that is away for an hour, with a thousand requests that were not sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from moto.dynamodb.models import dynamodb_backends

from tests.emulated import client
from tests.maintenance import failed_row, items, put_rows
from tests.plant import Plant
from tests.world import START_MS, TABLE, Clock

ROWS = 1_000
MINUTES = 60
CONNECTIONS_PER_MINUTE_MAX = 4  # One probe per PROBE_S, however many hints there are.


class Mirror:
    """DynamoDB whose reads come from memory: every write goes to the emulator, which judges it.

    The emulator's queries walk the whole table, and an hour of schedules is 60,000 reads.
    """

    def __init__(self, clock: Clock) -> None:
        self._inner = client("dynamodb")
        self._backend = dynamodb_backends["123456789012"]["eu-west-1"]
        self.items = {item["guid"]["S"]: item for item in items()}
        self._clock = clock
        self.read_s = 0.4  # A slow ledger, so that a sweep gets through 125 rows in its time.
        self._shards: dict[str, list[dict[str, Any]]] = {}  # Made anew after a write.

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Return the item as it was last written."""
        self._clock.advance(self.read_s)
        found = self.items.get(request["Key"]["guid"]["S"])
        return {"Item": found} if found else {}

    def query(self, **request: Any) -> dict[str, Any]:
        """Return what one shard of the index has due, oldest first."""
        values = request["ExpressionAttributeValues"]
        now_ms = int(values[":now"]["N"])
        shard = self._index().get(values[":shard"]["S"], [])
        due = [item for item in shard if int(item["due_at"]["N"]) <= now_ms]
        return {"Items": due[: request["Limit"]]}

    def _open(self) -> list[dict[str, Any]]:
        return [item for item in self.items.values() if "open_shard" in item]

    def _index(self) -> dict[str, list[dict[str, Any]]]:
        if not self._shards:
            for item in sorted(self._open(), key=lambda item: int(item["due_at"]["N"])):
                self._shards.setdefault(item["open_shard"]["S"], []).append(item)
        return self._shards

    def update_item(self, **request: Any) -> Any:
        """Write, and look at what was written."""
        answer = self._inner.update_item(**request)
        self._look(request["Key"])
        return answer

    def put_item(self, **request: Any) -> Any:
        """Write the item whole."""
        answer = self._inner.put_item(**request)
        self._look({"guid": request["Item"]["guid"]})
        return answer

    def delete_item(self, **request: Any) -> Any:
        """Delete the item."""
        answer = self._inner.delete_item(**request)
        self.items.pop(request["Key"]["guid"]["S"], None)
        self._shards.clear()
        return answer

    def _look(self, key: dict[str, Any]) -> None:
        """Take the item from the emulator's own memory: its wire form costs it 15 ms."""
        found: Any = self._backend.get_item(TABLE, key)
        plain = {name: value.to_regular_json() for name, value in found.attrs.items()}
        self.items[key["guid"]["S"]] = plain
        self._shards.clear()


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, and a thousand FAILED rows."""
    del aws
    plant = Plant()
    put_rows(failed_row(f"G-{number}", START_MS) for number in range(ROWS))
    plant.use(Mirror(plant.clock))
    return plant


def states(plant: Plant) -> Counter[str]:
    """Return how many rows stand in each state."""
    return Counter(row["state"]["S"] for row in plant.table.items.values() if "state" in row)


def test_an_hour_without_a_core_spends_nothing_and_then_each_is_executed_once(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sweep, hints and resolver minute by minute; then the core heals."""
    plant.bank.is_away = True
    plant.schedules(MINUTES)
    rows = {guid: row for guid, row in plant.table.items.items() if guid != "!gate"}
    assert len(rows) == ROWS
    for guid, row in rows.items():
        assert (row["state"]["S"], row["attempt"]["N"]) == ("FAILED", "1")
        assert (row["claim_id"]["S"], "resends" in row) == (f"first-{guid}", False)
    per_minute = Counter((at_ms - START_MS) // 60_000 for at_ms in plant.bank.connections)
    most, total = max(per_minute.values()), len(plant.bank.connections)
    with capsys.disabled():
        print(f"\nconnections to the dead core: {total} in an hour, at most {most} a minute")  # noqa: T201
    assert 1 <= most <= CONNECTIONS_PER_MINUTE_MAX
    assert total >= MINUTES - 1
    plant.bank.is_away = False
    plant.table.read_s = 0.0
    minutes = 0
    while states(plant)["FAILED"] and minutes < 30:
        plant.schedules(1)
        minutes += 1
    assert states(plant) == {"DONE": ROWS}
    assert len(plant.bank.executed) == ROWS
    assert set(plant.bank.executed.values()) == {1}
    assert sorted(plant.bank.sends) == sorted((f"G-{number}", 2) for number in range(ROWS))

"""Everybody on the same rows at once, in threads: one send per attempt, none after an E908."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from relayhub.core import CoreRequest, NotSent, SendOutcome
from relayhub.flows import reprocess
from relayhub.flows.reprocess import Hint
from relayhub.states import Code, State
from tests.maintenance import RUN_MS, cancel, failed_row, put_rows, resolver
from tests.plant import Bank, Plant
from tests.world import START_MS

GUIDS = [f"G-{number}" for number in range(30)]
CANCELLED = GUIDS[::3]


class Fickle(Bank):
    """A bank that many connections do not reach; it notes what the row says of each send."""

    def __init__(self, plant: Plant, lost: float) -> None:
        super().__init__(plant.clock)
        self.lost = lost
        self._plant = plant
        self._chance = random.Random(7)
        self.tried: list[tuple[str, int]] = []
        self.unclaimed: list[str] = []

    def send(self, request: CoreRequest, *, within_s: float) -> SendOutcome:
        """Look at the row, then take the request or lose it."""
        row = self._plant.held(request.guid)
        with self.lock:
            self.tried.append((request.guid, request.attempt))
            if (row.state, row.attempt) != (State.SENT, request.attempt):
                self.unclaimed.append(request.guid)
            if self._chance.random() < self.lost:
                return NotSent("connect_refused")
        return super().send(request, within_s=within_s)


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with rows that were not sent, and rows in doubt about to be found absent."""
    del aws
    plant = Plant(shards=2, read_shards=2)
    plant.bank = Fickle(plant, lost=0.6)
    plant.deploy()
    rows = [failed_row(guid, START_MS, 2) for guid in GUIDS]
    doubt = {"state": State.UNKNOWN, "code": Code.E901, "why": None, "doubted": True}
    in_doubt = [
        replace(row, not_found_at=START_MS + 100_000, **doubt)  # type: ignore[arg-type]
        for row in rows[::2]
    ]
    shard = {row.guid: (row.open_shard or "").replace("FAILED", "UNKNOWN") for row in in_doubt}
    put_rows([*(replace(row, open_shard=shard[row.guid]) for row in in_doubt), *rows[1::2]])
    plant.clock.ms = START_MS + 200_000
    return plant


def together(jobs: list[Callable[[], object]]) -> None:
    """Run all of them at once; whatever one raises is raised."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], object]) -> None:
        barrier.wait()
        job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        for each in [pool.submit(run, job) for job in jobs]:
            each.result()


def test_all_at_once_on_the_same_rows_send_once_per_attempt(plant: Plant) -> None:
    """Two resolvers, two reprocessors, a channel's resends and its cancels."""
    told: dict[str, str | None] = {}

    def reprocess_all() -> None:
        for guid in GUIDS * 2:
            reprocess.handle(plant.hub, Hint(guid), plant.clock() + RUN_MS)

    def resend_all() -> None:
        for guid in reversed(GUIDS):
            plant.post(guid)

    def cancel_all() -> None:
        for guid in CANCELLED:
            told[guid] = cancel(plant, guid).code

    resolve_all = [lambda: resolver(plant)] * 2
    together([*resolve_all, reprocess_all, reprocess_all, resend_all, cancel_all])
    bank = plant.bank
    assert isinstance(bank, Fickle)
    ended = {guid for guid, code in told.items() if code == "E908"}
    executed = {guid for guid in GUIDS if bank.executed[guid]}
    tried = len(bank.tried)
    bank.lost = 0.0
    plant.clock.ms += 600_000
    plant.schedules(12)
    assert bank.unclaimed == []
    assert len(bank.tried) == len(set(bank.tried)) > tried > 0
    rows = plant.rows()
    assert {str(row.state) for row in rows.values()} == {"DONE"}
    assert all(bank.executed[guid] == (rows[guid].code == "0000") for guid in GUIDS)
    assert all(rows[guid].code == "E908" for guid in ended)
    assert not ended & set(bank.executed)
    assert executed
    assert ended

"""A reprocessor and a sweep killed at every single call end where undisturbed ones do."""

from __future__ import annotations

import pytest

from relayhub.core import Doubt, NotSent
from relayhub.flows.reprocess import Taken
from tests.maintenance import failed_row, put_rows, reprocessor, sweep
from tests.plant import Plant
from tests.world import START_MS


@pytest.fixture
def plant(aws: None) -> Plant:
    """Return a hub with a bank, in one shard, so that a run makes few calls."""
    del aws
    return Plant(shards=1, read_shards=1)


def one_failed(plant: Plant) -> None:
    """Begin anew with one row that was not sent."""
    plant.start_again()
    put_rows([failed_row("G-1", START_MS, 1)])
    plant.clock.ms = START_MS + 60_000


def end(plant: Plant) -> tuple[str, str | None, bool, int]:
    """Return how it ended, whether as the bank says, and how often the bank was sent to."""
    row = plant.held()
    is_true = plant.bank.executed["G-1"] == 1
    return str(row.state), row.code, is_true, len(plant.bank.sends)


def test_a_reprocessor_killed_at_any_call_executes_once_in_the_end(plant: Plant) -> None:
    """Before the read, the gate, the inquiry, the claim, the send, the write of the outcome."""
    at = 0
    while True:
        at += 1
        one_failed(plant)
        if not plant.killed(lambda: reprocessor(plant), at):
            break
        plant.schedules(6)
        assert (end(plant), at) == (("DONE", "0000", True, 1), at)
        attempts = [attempt for _, attempt in plant.bank.sends]
        assert attempts == sorted(set(attempts))
        assert plant.held().attempt <= 3
    assert at == 8


def test_a_reprocessor_killed_twice_executes_once_in_the_end(plant: Plant) -> None:
    """Anywhere, and anywhere in the attempt after that."""
    for first in (4, 5, 6, 7):
        one_failed(plant)
        assert plant.killed(lambda: reprocessor(plant), first)
        plant.killed(lambda: plant.schedules(4), 25 + first)
        plant.schedules(8)
        assert end(plant)[:3] == ("DONE", "0000", True)
        assert len(plant.bank.sends) == 1


def test_a_sweep_killed_at_any_call_loses_no_row(plant: Plant) -> None:
    """Before or after the row's next turn was set, before or after the hint left."""
    at = 0
    while True:
        at += 1
        plant.start_again()
        put_rows([failed_row(f"G-{number}", START_MS, 1) for number in range(2)])
        plant.clock.ms = START_MS + 60_000
        if not plant.killed(lambda: sweep(plant), at):
            break
        plant.schedules(3)
        assert (dict(plant.bank.executed), at) == ({"G-0": 1, "G-1": 1}, at)
    assert at == 10


def test_two_reprocessors_with_the_same_hint_send_once(plant: Plant) -> None:
    """The second one runs whole at any point of the first one's: the claim lets one through."""
    for name, skip in (("get_item", 0), ("get_item", 1), ("update_item", 0), ("update_item", 1)):
        one_failed(plant)
        taken: list[Taken] = []
        plant.dynamo.before[name] += [
            *[lambda: None] * skip,
            lambda seen=taken: seen.append(reprocessor(plant)),  # type: ignore[misc]
        ]
        taken.append(reprocessor(plant))
        assert (end(plant), name, skip) == (("DONE", "0000", True, 1), name, skip)
        assert taken.count(Taken.SENT) == 1


def test_two_sends_never_bear_the_same_attempt(plant: Plant) -> None:
    """Whatever came of each: not sent, in doubt and not found, not sent."""
    one_failed(plant)
    outcomes = [NotSent("connect_refused"), Doubt("no_answer", aborted=True), NotSent("x")]
    tried: list[int] = []
    real = plant.bank.send

    def send(request, *, within_s):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        tried.append(request.attempt)
        return outcomes.pop(0) if outcomes else real(request, within_s=within_s)

    plant.bank.send = send  # type: ignore[method-assign]
    plant.schedules(12)
    assert tried == [2, 3, 4, 5]
    assert end(plant) == ("DONE", "0000", True, 1)

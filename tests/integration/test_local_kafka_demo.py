"""The lesson's acts, played without a ledger: what they say is what the core's journal says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.core_client import CoreProcess
from local.demo_kafka_acts import (
    ACTS,
    KILLED,
    LOG,
    TOPIC,
    TOTAL,
    Act,
    ActError,
    Front,
    Played,
    fill,
    front_of,
    play,
)
from local.kafka_broker import Broker, running_broker
from tests.integration.kafka_kit import needs_broker

pytestmark = needs_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run a broker that holds the receipts."""
    log = tmp_path_factory.mktemp("kafka") / "broker.log"
    with running_broker({TOPIC: 1}, log=log) as running:
        fill(running)
        yield running


def test_without_a_ledger_each_reading_costs_again(broker: Broker, tmp_path: Path) -> None:
    """Every record of every act is executed, and the story counts each in its own place."""
    with CoreProcess(tmp_path / "journal.jsonl") as core:
        front = front_of("naive", "local.kafka_naive", broker, core.journal, "--core", core.url)
        story = [seen for act in ACTS for seen in play(front, act, tmp_path)]
    assert [(seen.offset, seen.became, seen.committed) for seen in story] == [
        (0, "executed", 1),
        (1, "executed again", 2),
        (2, "executed", None),
        (2, "executed again", 3),
        (0, "executed again", 1),
        (1, "executed again", 2),
        (2, "executed again", 3),
    ]
    assert [seen.outcome for seen in story].index(KILLED) == 2
    assert Played(front, story).total == 4 * 3000 + 3 * 1200
    assert broker.committed("naive", TOPIC) == {0: len(LOG)}


def test_the_receipts_are_worth_what_each_is_worth_once() -> None:
    """The total that the hub must come to, though the log holds one receipt twice."""
    assert TOTAL == 4200
    assert sum(each.paid for each in LOG) == 7200


def test_a_consumer_that_ends_by_itself_is_told_with_its_last_words(
    broker: Broker, tmp_path: Path
) -> None:
    """Nobody waits for a dead process, and the reader learns why it died."""
    front = front_of("bad", "local.kafka_naive", broker, tmp_path / "none", "--no-such-option")
    with pytest.raises(ActError, match=r"(?s)did not end.*no-such-option"):
        play(front, ACTS[1], tmp_path)


def test_one_that_was_to_be_killed_and_was_not_is_told(tmp_path: Path) -> None:
    """An act that shows a kill must have had one."""
    lie = f'print(\'{{"event": "batch", "offsets": {{"{TOPIC}-0": [0]}}}}\', flush=True)'
    front = Front("lie", [sys.executable, "-c", lie], tmp_path / "none")
    act = Act("never killed", (), lambda batches: len(batches) == 1, ends_by=9)
    with pytest.raises(ActError, match="was not killed"):
        play(front, act, tmp_path)

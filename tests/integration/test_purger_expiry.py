"""When a row may go: its expiry comes with DONE alone, and evidence is kept for longer."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from relayhub.core import Doubt, NotSent
from relayhub.states import Code, State
from tests.maintenance import (
    AWAY,
    NOT_FOUND,
    cancel,
    items,
    processed,
    purger,
    reprocessor,
    resolver,
    sweep,
)
from tests.plant import Works
from tests.world import START_MS

NOW_S = START_MS // 1000


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core; one segment makes calls count."""
    del aws
    return Works(scan_segments=1)


def left(works: Works) -> set[str]:
    """Return the GUIDs that still have a row."""
    del works
    return {item["guid"]["S"] for item in items() if not item["guid"]["S"].startswith("!")}


def test_what_was_ever_in_doubt_is_kept_as_evidence(works: Works) -> None:
    """Plain rows 30 days, doubted ones 400, from their end and rounded up."""
    works.post("PLAIN")
    works.doubt("DOUBTED")
    cancel(works, "CANCELLED")
    works.clock.advance(15)
    works.core.findings.append(processed())
    resolver(works)
    end_s = NOW_S + 15 + 400 * 86_400
    assert works.held("PLAIN").expires_at == NOW_S + 30 * 86_400
    assert works.held("CANCELLED").expires_at == NOW_S + 30 * 86_400
    assert works.held("DOUBTED").expires_at == end_s
    works.clock.ms = (end_s - 1) * 1000
    assert purger(works).deleted == 2
    assert left(works) == {"DOUBTED"}
    works.clock.ms = end_s * 1000
    assert purger(works).deleted == 1


def _random_step(works: Works, chance: random.Random) -> None:
    guid = f"G-{chance.randrange(12)}"
    works.core.outcomes[:] = chance.choice(
        [[], [NotSent("connect_refused")], [Doubt("no_answer", aborted=True)]]
    )
    works.core.findings[:] = [chance.choice([NOT_FOUND, NOT_FOUND, processed(), AWAY])] * 20
    acts: list[Callable[[], object]] = [
        lambda: works.post(guid),
        lambda: cancel(works, guid),
        lambda: reprocessor(works, guid),
        lambda: resolver(works),
        lambda: sweep(works),
        lambda: purger(works),
        lambda: works.kill(guid) if works.row(guid) is None else None,
        lambda: works.clock.advance(chance.choice([1, 40, 100, 4_000])),
    ]
    chance.choice(acts)()


@pytest.mark.parametrize("seed", range(4))
def test_only_done_rows_ever_bear_an_expiry(aws: None, seed: int) -> None:
    """After every step of a random history, over every row."""
    del aws
    works = Works(scan_segments=1, shards=1, read_shards=1)
    chance = random.Random(seed)
    for _ in range(60):
        _random_step(works, chance)
        for item in items():
            if "expires_at" in item:
                assert item["state"]["S"] == State.DONE
                assert "hold" not in item
    assert Code.E908 in {item.get("code", {}).get("S") for item in items()}

"""A bounded run of the fuzz of the event handlers; `make fuzz` goes through thousands."""

from __future__ import annotations

import pytest

from tests.emulated import make_queue
from tests.fuzz import handlers
from tests.world import World

# A run without a metric is legal; Powertools says so by a warning.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics:UserWarning")
CASES = 300


@pytest.mark.parametrize("part", handlers.PARTS)
def test_a_spoilt_event_is_answered_taken_or_clearly_refused(world: World, part: str) -> None:
    """No traceback, no message that comes again for what it holds, nothing of the inside."""
    make_queue("relayhub-rejects")
    bench = handlers.Bench(world)
    cases = round(CASES * handlers.PARTS[part][2])
    handlers.run(bench, part, cases=cases, seed_of_run=0)
    assert bench.tally.findings == {}, bench.tally.report()
    assert bench.tally.cases >= cases
    assert len(bench.tally.told) > 1, "every event met the same end"

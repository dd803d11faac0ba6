"""The jobs at the edges: no row, shard, page or late write of one harms the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from relayhub.core import Finding
from relayhub.flows import purge
from relayhub.states import Event, Hold, State, Verdict
from tests.emulated import refused, reply_lost
from tests.integration.edges_kit import COUNTS_MS
from tests.maintenance import (
    AWAY,
    PROCESSING,
    failed_row,
    processed,
    purger,
    put_rows,
    resolve_at,
    resolver,
    sweep,
)
from tests.plant import Works
from tests.world import START_MS

GUIDS = [f"G-{number}" for number in range(4)]
SWEPT: list[Any] = [
    pytest.param({"hold": "frozen"}, id="hold"),
    pytest.param({"state": "LOST"}, id="state"),
]
# The purger does not read why a row failed.
UNREADABLE = pytest.mark.parametrize("values", [*SWEPT, pytest.param({"why": "me"}, id="why")])
BEGINS = pytest.mark.parametrize("first", [2, 3, 4])  # Right before shard 3, at it, behind it.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core; one segment makes pages count."""
    del aws
    return Works(scan_segments=1)


def test_a_few_guids_whose_inquiries_hang_starve_no_other(works: Works) -> None:
    """The core answers about all but three; each minute's run asks about some of the others."""
    guids = [f"G-{number}" for number in range(8)]
    hanging = set(guids[:3])
    for guid in guids:
        works.doubt(guid)
        works.clock.advance(1)

    def answer_next() -> None:
        hangs = works.core.asked[-1] in hanging
        works.clock.advance(5 if hangs else 0.02)
        found = Finding(Verdict.UNDECIDED, None, "no_answer") if hangs else processed()
        works.core.findings[:] = [found]

    works.core.during_ask += [answer_next] * 1_000
    for minute in range(1, 61):
        works.clock.ms = START_MS + minute * 60_000
        resolver(works)
    assert {guid for guid in guids if works.held(guid).state is not State.DONE} == hanging


def test_a_row_that_nobody_asked_about_does_not_wait_longer_for_it(works: Works) -> None:
    """The core was away for others: its turn comes soon, and its back-off stays as it was."""
    for number, guid in enumerate(GUIDS):
        works.doubt(guid)
        works.edit(guid, inquiries=4, due_at=START_MS + number)
    works.clock.advance(60)
    works.core.findings[:] = [AWAY] * 3
    resolver(works)
    asked, last = works.held(GUIDS[0]), works.held(GUIDS[3])
    assert works.core.asked == GUIDS[:3]
    assert (asked.inquiries, last.inquiries) == (5, 4)
    assert last.due_at == works.clock() + 15_000


@UNREADABLE
def test_the_resolver_passes_a_row_that_cannot_be_read(
    works: Works, values: dict[str, str]
) -> None:
    """It is the first that is due; it waits, and those behind it are resolved."""
    for guid in GUIDS:
        works.doubt(guid)
    works.edit(GUIDS[0], **values, due_at=1)
    works.clock.advance(60)
    works.core.findings[:] = [processed()] * 3
    report = resolver(works)
    assert (report.steps["fault"], report.steps[Event.PROCESSED]) == (1, 3)
    assert {works.held(guid).state for guid in GUIDS[1:]} == {State.DONE}
    assert int(works.item(GUIDS[0])["due_at"]["N"]) > works.clock()


def test_a_row_that_moved_on_while_its_handling_failed_keeps_its_turn(works: Works) -> None:
    """Another has handled it meanwhile, and its next turn is not put off."""
    works.doubt()
    works.clock.advance(60)

    def move_on_and_fail() -> None:
        works.edit(due_at=works.clock() + 1_000)
        raise RuntimeError("a fault of this row alone")

    works.core.during_ask.append(move_on_and_fail)
    assert resolver(works).steps["fault"] == 1
    assert works.held().due_at == works.clock() + 1_000


def test_a_row_that_moved_on_since_the_index_was_read_is_not_asked_about(works: Works) -> None:
    """Another has asked meanwhile: its next turn is later, and the core has a budget."""
    works.doubt()
    works.clock.advance(60)
    later_ms = works.clock() + 1_000
    works.dynamo.before["get_item"].append(lambda: works.edit(due_at=later_ms))
    assert resolver(works).steps == {"skipped": 1}
    assert (works.core.asked, works.held().due_at) == ([], later_ms)


def test_a_row_that_ended_before_the_retry_of_its_abandonment_is_left_alone(works: Works) -> None:
    """The step is one's own by the history, and the row is DONE by another's inquiry since."""
    works.kill()
    works.clock.advance(31)
    works.core.findings[:] = [processed()]
    works.dynamo.faults["update_item"].append(reply_lost)
    works.dynamo.before["update_item"] += [lambda: None, lambda: resolver(works)]
    assert resolver(works).steps == {"lost": 1}
    assert (works.held().state, works.core.asked) == (State.DONE, ["G-1"])
    assert works.noted("row_fault") == 0


@UNREADABLE
def test_the_sweep_passes_a_row_that_cannot_be_read(works: Works, values: dict[str, str]) -> None:
    """It is the first that is due; it waits, and those behind it are hinted."""
    for guid in GUIDS:
        works.fail(guid)
    works.hints()
    works.edit(GUIDS[0], **values, due_at=1)
    works.clock.advance(60)
    assert sweep(works).hinted == 3
    assert {hint["guid"] for hint in works.hints()} == set(GUIDS[1:])
    assert works.noted("row_fault") == 1
    assert int(works.item(GUIDS[0])["due_at"]["N"]) > works.clock()


class Pages:
    """The table in pages of one row."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        """Return the operation; a scan takes one row at a time."""
        operation = getattr(self._inner, name)
        more = {"Limit": 1} if name == "scan" else {}
        return lambda **request: operation(**request, **more)


@pytest.mark.parametrize("values", SWEPT)
def test_the_purger_passes_a_row_that_cannot_be_read_and_counts_it(
    works: Works, values: dict[str, str]
) -> None:
    """One page a run: the cursor goes on behind it, and each row is repaired and counted once."""
    put_rows([failed_row(guid, START_MS) for guid in GUIDS])
    for guid in GUIDS:
        works.edit(guid, expires_at=1)
    works.edit(GUIDS[1], **values)
    works.use(Pages(works.table))
    total, runs = purge.Report(), 0
    while runs < 20:
        one = purger(works, left_ms=10_000, on_page=lambda _: works.clock.advance(1))
        total.add(one)
        runs += 1
        if one.complete:
            break
    assert runs in {4, 5}  # The end of a table may be a page without a row.
    assert (total.scanned, total.repaired) == (3, 3)
    assert (total.kept["UNREADABLE"], works.noted("row_fault")) == (1, 1)
    assert {guid for guid in GUIDS if "expires_at" in works.item(guid)} == {GUIDS[1]}


def test_a_done_row_on_hold_stands_in_the_purgers_report(works: Works) -> None:
    """No index has it, and its channel hears "in doubt" until a person lets it go."""
    works.post()
    works.move(Event.HELD, by="operator", hold=Hold.CONTRADICTION, expires_at=None)
    works.clock.advance(90_000)
    assert works.get().code == "E901"
    report = purger(works)
    assert (report.kept, report.oldest_ms) == ({"HELD <30d": 1}, {"HELD": 90_000_000})


def shard_3_is_throttled(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
    """Refuse to read the one shard."""
    if request["ExpressionAttributeValues"][":shard"]["S"].endswith("#3"):
        return refused("ThrottlingException")(operation, request)
    return operation(**request)


@BEGINS
def test_a_shard_that_cannot_be_read_stops_the_resolver_for_no_other(
    works: Works, first: int
) -> None:
    """Wherever the run begins: the rest is resolved, and the report says that some is left."""
    works.doubt()
    works.clock.advance(60)
    works.core.findings[:] = [processed()]
    works.dynamo.faults["query"] += [shard_3_is_throttled] * 100
    works.hub = replace(works.hub, chance=lambda: first / 16)
    report = resolver(works)
    assert (works.held().state, report.complete) == (State.DONE, False)
    assert works.noted("shard_fault") == 3


@BEGINS
def test_a_shard_that_cannot_be_read_stops_the_sweep_for_no_other(works: Works, first: int) -> None:
    """The same for rows that are to be hinted."""
    works.fail()
    works.hints()
    works.clock.advance(60)
    works.dynamo.faults["query"] += [shard_3_is_throttled] * 100
    works.hub = replace(works.hub, chance=lambda: first / 16)
    swept = sweep(works)
    assert (swept.hinted, swept.complete) == (1, False)
    assert works.noted("shard_fault") == 2


def test_a_write_that_takes_effect_late_takes_no_sighting_back(works: Works) -> None:
    """Its function is long gone, and the core was seen at it once more since."""
    works.doubt()
    late: list[Callable[[], Any]] = []

    def hangs(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
        late.append(lambda: operation(**request))
        raise ReadTimeoutError(endpoint_url="http://127.0.0.1")

    works.dynamo.faults["update_item"] += [hangs] * 2
    resolve_at(works, COUNTS_MS, PROCESSING)
    resolve_at(works, COUNTS_MS + 40_000, PROCESSING)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        late[0]()
    assert works.held().processing_at == COUNTS_MS + 40_000

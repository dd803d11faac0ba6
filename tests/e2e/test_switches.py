"""The switches in the middle of a load: the core's own list of arrivals says what came through."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.core_ledger import read_journal, read_received
from local.rounds import REPROCESSOR, RESOLVER, until_settled
from local.stack import Stack
from tests.e2e.switch_load import BODY, CLIENTS, Load, now_ms
from tests.e2e.test_cli import CommandLine, relayhub

__all__ = ["relayhub"]

pytestmark = pytest.mark.e2e

WHY = ("--operator", "alice", "--reason", "a planned stop")
CLOSED_WITHIN_MS = 5_000
FLOWS_WITHIN_MS = 10_000
SETTLED_S = 90.0
CIRCUIT_AFTER = 20  # The template's own.


@pytest.fixture(autouse=True)
def _as_before(core: CoreControl, relayhub: CommandLine) -> Iterator[None]:
    """Leave the core open and both jobs at work, whatever a test came to."""
    yield
    core.clear()
    switches = relayhub.json("core", "status")
    if switches["core"] != "open":
        relayhub.run("core", "open", *WHY)
    for job in switches["held"]:
        relayhub.run("release-job", job, *WHY)


def until(is_so: Callable[[], bool], within_s: float) -> None:
    """Wait until it is so."""
    ends = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < ends, "it did not come to pass in time"
        time.sleep(0.3)


def rows_of(stack: Stack, name: str) -> dict[str, dict[str, Any]]:
    """Return the rows whose GUIDs begin so."""
    return {row["guid"]: row for row in stack.scan_rows() if row["guid"].startswith(f"{name}-")}


def received_ms(stack: Stack, name: str) -> list[int]:
    """Return when the core received a request with such a GUID, executed or not."""
    receipts = read_received(stack.journal)
    return [each.time_ms for each in receipts if each.guid.startswith(f"{name}-")]


def executed(stack: Stack, name: str) -> Counter[str]:
    """Return how often the core executed each such GUID."""
    journal = read_journal(stack.journal)
    return Counter(each.guid for each in journal if each.guid.startswith(f"{name}-"))


def is_once_each(stack: Stack, name: str) -> bool:
    """Tell whether every such row is DONE with 0000, and was executed once."""
    rows = rows_of(stack, name)
    assert {(row["state"], row["code"]) for row in rows.values()} == {("DONE", "0000")}
    return executed(stack, name) == Counter(rows.keys())


def test_a_core_closed_and_opened_in_mid_load(
    stack: Stack, core: CoreControl, atm: Channel, app: Channel, relayhub: CommandLine
) -> None:
    """5 s after the closing it receives nothing, 10 s after the opening traffic flows again."""
    del core
    stack.warm(CLIENTS)
    assert app.post("shut-replay", BODY).code == "0000"
    load = Load(atm, "shut-load")
    with load.running():
        until(lambda: len(load.sent) >= 5 * CLIENTS, 20)
        relayhub.json("core", "close", *WHY)
        shut_ms = now_ms() + CLOSED_WITHIN_MS
        time.sleep(CLOSED_WITHIN_MS / 1000 + 2)
        interactive = app.post("shut-interactive", BODY, headers={"Delivery": "interactive"})
        replayed = app.post("shut-replay", BODY)
        opening_ms = now_ms()
        relayhub.json("core", "open", *WHY)
        opened_ms = now_ms()
        until(lambda: bool(flowing(load, opened_ms)), FLOWS_WITHIN_MS / 1000)

    arrived = received_ms(stack, "shut-load")
    assert len([each for each in arrived if each <= shut_ms]) >= 5 * CLIENTS
    assert [each for each in arrived if shut_ms < each < opening_ms] == []
    shut = [each for each in load.sent if each.sent_ms > shut_ms and each.answered_ms < opening_ms]
    assert len(shut) >= CLIENTS
    assert {(each.reply.code, each.reply.status) for each in shut} == {("E902", 202)}
    assert (interactive.code, interactive.status) == ("E902", 503)
    assert replayed.headers["idempotent-replayed"] == "true"
    assert {each.reply.code for each in load.sent} == {"0000", "E902"}
    assert flowing(load, opened_ms)[0] - opened_ms <= FLOWS_WITHIN_MS
    assert not [row for row in rows_of(stack, "shut").values() if row.get("doubted")]

    assert app.post("shut-interactive", BODY).code == "0000"
    until_settled(stack, within_s=SETTLED_S)
    assert is_once_each(stack, "shut")


def flowing(load: Load, since_ms: int) -> list[int]:
    """Return when requests that were sent after that time were executed; epoch ms."""
    return sorted(
        each.answered_ms
        for each in load.sent
        if each.sent_ms >= since_ms and each.reply.code == "0000"
    )


def test_a_held_reprocessor_sends_nothing_until_it_is_released(
    stack: Stack, core: CoreControl, atm: Channel, relayhub: CommandLine
) -> None:
    """5 s after the command neither hints nor the sweep move a row; channels go on meanwhile."""
    core.set_faults([{"kind": "refuse"}])
    guids = [f"held-{number}" for number in range(3)]
    assert {atm.post(guid, BODY).code for guid in guids} == {"E902"}
    relayhub.json("hold-job", "reprocessor", *WHY)
    time.sleep(CLOSED_WITHIN_MS / 1000)
    core.clear()
    assert stack.invoke(REPROCESSOR, {})["held"] is True
    assert relayhub.json("reprocess", *guids)["hinted"] == len(guids)
    until(lambda: stack.queue_depth() == 0, 15)
    assert atm.post("held-other", BODY).code == "0000"
    assert executed(stack, "held") == Counter(["held-other"])
    assert {rows_of(stack, "held")[guid]["attempt"] for guid in guids} == {1}

    relayhub.json("release-job", "reprocessor", *WHY)
    until_settled(stack, within_s=SETTLED_S)
    assert is_once_each(stack, "held")


def test_the_hub_closes_a_core_that_refuses_and_an_inquiry_opens_it(
    stack: Stack, core: CoreControl, atm: Channel, relayhub: CommandLine
) -> None:
    """Not a payment: those that come meanwhile are told E902, though the core would take them."""
    core.set_faults([{"kind": "refuse"}])
    with ThreadPoolExecutor(CLIENTS) as pool:
        refused = list(
            pool.map(
                lambda number: atm.post(f"trip-{number}", BODY), range(CIRCUIT_AFTER + CLIENTS)
            )
        )
    assert {each.code for each in refused} == {"E902"}
    closed = relayhub.json("core", "status")
    assert (closed["core"], closed["closed"]["by"]) == ("closed", "hub")
    assert "calls in a row without an answer" in closed["closed"]["reason"]

    # The port is open, and only the inquiry is not there.
    core.set_faults([{"kind": "inquiry_500"}])
    time.sleep(3)  # What a function knows of the switches is by then that the core is closed.
    assert {atm.post(f"trip-shut-{number}", BODY).code for number in range(3)} == {"E902"}
    stack.invoke(RESOLVER, {})
    assert relayhub.json("core", "status")["core"] == "closed"
    assert received_ms(stack, "trip") == []

    core.clear()
    until(lambda: is_reopened(stack, relayhub), 20)
    until(lambda: atm.post(f"trip-{time.time_ns()}", BODY).code == "0000", 10)
    until_settled(stack, within_s=SETTLED_S)
    assert is_once_each(stack, "trip")


def is_reopened(stack: Stack, relayhub: CommandLine) -> bool:
    """Tell whether a run of the resolver, with its one inquiry, has opened the core."""
    stack.invoke(RESOLVER, {})
    return bool(relayhub.json("core", "status")["core"] == "open")

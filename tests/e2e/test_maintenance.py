"""What the relay's failures leave, ended by the deployed maintenance functions."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.channels import Reply
from local.core_client import CoreControl
from local.core_ledger import read_journal
from local.rounds import REPROCESSOR, RESOLVER, until_settled
from local.stack import Stack

pytestmark = pytest.mark.e2e

TRANSACTIONS = 500
CLIENTS = 16
ACCOUNTS = 10

# Together 30 %: a rule is drawn for each request that no rule before it has struck.
FAULTS = [
    {"kind": kind, "rate": rate, "seed": seed, **options}
    for seed, (kind, rate, options) in enumerate(
        [
            ("execute_then_hang", 0.03, {}),
            ("execute_then_close", 0.04, {}),
            ("execute_then_reset", 0.03, {}),
            ("execute_late", 0.03, {"seconds": 2}),
            ("execute_late", 0.02, {"seconds": 2, "close_first": True, "seen": False}),
            ("hang_before", 0.02, {}),
            ("gateway_page", 0.03, {"status": 503, "executes": True}),
            ("gateway_page", 0.03, {"status": 502, "executes": False}),
            ("garbage", 0.02, {}),
            ("unknown_code", 0.02, {}),
            ("truncated", 0.02, {}),
            ("b2xx", 0.03, {}),
            ("inquiry_500", 0.1, {}),
            ("inquiry_proxy_404", 0.1, {}),
            ("inquiry_stale", 0.1, {"seconds": 1}),
            ("reset_on_connect", 0.02, {}),
        ]
    )
]


def body_of(number: int) -> bytes:
    """Return a transfer between two of the accounts; its amount is its number."""
    source, target = number % ACCOUNTS + 1, (number + 3) % ACCOUNTS + 1
    transfer = {"from": f"A{source:03d}", "to": f"A{target:03d}", "amount": number + 1}
    return json.dumps(transfer).encode()


def test_500_transactions_with_faults_all_end_and_add_up(stack: Stack, core: CoreControl) -> None:
    """Every row is DONE or parked, nothing was executed twice, and the balances say the same."""
    opening = core.accounts()
    before = len(read_journal(stack.journal))
    core.set_faults(FAULTS)

    def post(number: int) -> Reply:
        return stack.atm.post(f"load-{number}", body_of(number))

    with ThreadPoolExecutor(CLIENTS) as pool:
        replies = list(pool.map(post, range(TRANSACTIONS)))
    told = Counter(reply.code for reply in replies)
    assert told["E901"] > TRANSACTIONS * 0.1
    assert None not in told
    # The backlog takes the bytes; the core reads and executes them after the hub gave up.
    core.set_faults([{"kind": "accept_nothing"}])
    with ThreadPoolExecutor(10) as pool:
        unread = list(pool.map(lambda n: stack.atm.post(f"load-b{n}", body_of(n)), range(10)))
    assert {reply.code for reply in unread} == {"E901"}
    core.set_faults([{"kind": "refuse"}])
    away = [stack.atm.post(f"away-{number}", body_of(number)) for number in range(10)]
    assert {reply.code for reply in away} == {"E902"}
    core.clear()
    states = until_settled(stack, within_s=240)
    assert not set(states) - {"DONE", "PARKED"}, states

    adds_up(stack, core, opening, before)


def adds_up(stack: Stack, core: CoreControl, opening: dict[str, int], before: int) -> None:
    """Compare the ledger, the journal since `before` and the balances: one truth."""
    journal = read_journal(stack.journal)[before:]
    executed = Counter(each.guid for each in journal)
    assert max(executed.values()) == 1
    rows = {row["guid"]: row for row in stack.scan_rows() if row["guid"][:5] in {"load-", "away-"}}
    assert len(rows) == TRANSACTIONS + 20
    done = {guid for guid, row in rows.items() if row["code"] == "0000"}
    assert done == set(executed)
    moved: Counter[str] = Counter()
    for each in journal:
        moved[each.source] -= each.amount
        moved[each.target] += each.amount
    assert core.accounts() == {name: opening[name] + moved[name] for name in opening}


SENDS_AT_ONCE = 5  # The template's HintsConcurrency.


def test_the_hub_sends_what_waited_within_its_concurrency(stack: Stack, core: CoreControl) -> None:
    """Thirty rows waited for the core; each call takes a second, and five are at it at most."""
    guids = [f"wait-{number}" for number in range(30)]
    core.set_faults([{"kind": "refuse"}])
    with ThreadPoolExecutor(CLIENTS) as pool:
        refused = list(pool.map(lambda guid: stack.atm.post(guid, body_of(0)), guids))
    assert {reply.code for reply in refused} == {"E902"}
    core.set_faults([{"kind": "slow", "guid_prefix": "wait-", "seconds": 1}])
    states = until_settled(stack, within_s=240)
    assert not set(states) - {"DONE", "PARKED"}, states
    begun = sorted(each.time_ms for each in core.received() if each.guid in guids)
    assert len(begun) == len(guids)
    at_once = max(sum(first <= other < first + 1_000 for other in begun) for first in begun)
    assert 1 < at_once <= SENDS_AT_ONCE


ROWS = 200


def test_everybody_at_once_sends_no_attempt_twice_and_nothing_after_an_e908(
    stack: Stack, core: CoreControl
) -> None:
    """Two resolvers, reprocessors and sweeps, a resend and a cancel meet at the same rows."""
    guids = [f"race-{number}" for number in range(ROWS)]
    core.set_faults([{"kind": "refuse"}])
    with ThreadPoolExecutor(CLIENTS) as pool:
        refused = list(pool.map(lambda guid: stack.atm.post(guid, body_of(0)), guids))
    assert {reply.code for reply in refused} == {"E902"}
    core.set_faults([{"kind": "execute_then_close", "rate": 0.2, "seed": 1}])

    def resend(guid: str) -> str | None:
        return stack.atm.post(guid, body_of(0)).code

    def cancel(guid: str) -> str | None:
        return stack.atm.cancel(guid).code

    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [
            pool.submit(stack.invoke, function, {})
            for function in (RESOLVER, REPROCESSOR)
            for _ in range(2)
        ]
        resends = [pool.submit(resend, guid) for guid in guids[::2]]
        cancels = [pool.submit(cancel, guid) for guid in guids[::3]]
        for each in (*jobs, *resends, *cancels):
            each.result()
    core.clear()
    states = until_settled(stack, within_s=240)
    assert not set(states) - {"DONE", "PARKED"}, states

    sends = Counter((each.guid, each.attempt) for each in core.received() if each.guid in guids)
    assert max(sends.values()) == 1
    executed = Counter(each.guid for each in read_journal(stack.journal) if each.guid in guids)
    codes = {guid: (stack.ledger_row(guid) or {})["code"] for guid in guids}
    assert {guid for guid, code in codes.items() if code == "0000"} == set(executed)
    assert max(executed.values()) == 1
    ended = {guid for guid, code in codes.items() if code == "E908"}
    assert ended, "no cancel was in time, so the test has shown nothing"
    assert not {guid for guid, _ in sends} & ended

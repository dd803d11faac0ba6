"""What the relay's failures leave, ended by the deployed maintenance functions."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.channels import Reply
from local.core_client import CoreControl
from local.core_ledger import read_journal
from local.rounds import until_settled
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
    core.set_faults([{"kind": "refuse"}])
    away = [stack.atm.post(f"away-{number}", body_of(number)) for number in range(10)]
    assert {reply.code for reply in away} == {"E902"}
    core.clear()
    states = until_settled(stack, within_s=240)
    assert not set(states) - {"DONE", "PARKED"}, states

    journal = read_journal(stack.journal)[before:]
    executed = Counter(each.guid for each in journal)
    assert max(executed.values()) == 1
    rows = {row["guid"]: row for row in stack.scan_rows() if row["guid"][:5] in {"load-", "away-"}}
    assert len(rows) == TRANSACTIONS + 10
    done = {guid for guid, row in rows.items() if row["code"] == "0000"}
    assert done == set(executed)
    moved: Counter[str] = Counter()
    for each in journal:
        moved[each.source] -= each.amount
        moved[each.target] += each.amount
    assert core.accounts() == {name: opening[name] + moved[name] for name in opening}

"""Cases for the deployed API, made from docs/openapi.yaml by Schemathesis, alone and in chains.

Three shares: requests of one operation, good ones and bad ones; methods and paths that the page
does not have; and chains along the page's links (submit, resend, ask, cancel). A part of the
traffic meets a core that refuses, answers nonsense or is away. Afterwards every row must be
accounted for, and the core's journal must have no GUID twice.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from typing import Any, Final

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.core.transport import Response

from local.core_client import CoreControl
from local.core_ledger import read_journal
from local.stack import Stack
from tests import openapi_kit
from tests.fuzz.tally import Tally
from tests.fuzz.wire import Case, Signed, Wire, schema

SUBMIT: Final = ("/transactions", "POST")
_MODES: Final = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
_STEPS: Final = 8
_CHAINS: Final = 5
# Of all cases, by kind; chains get what is left.
_SHARES: Final = {"submit": 0.3, "away": 0.08, "bad": 0.12, "paths": 0.16, "elsewhere": 0.06}
# By GUID, so that which request meets what does not depend on the order. None of them leaves a row
# that the hub would send later: what is in doubt was executed.
_FAULTS: Final = (
    {"kind": "unknown_code", "rate": 0.06, "seed": 1},
    {"kind": "execute_then_close", "rate": 0.04, "seed": 2},
    {"kind": "two_codes", "rate": 0.04, "seed": 3},
    {"kind": "b2xx", "rate": 0.1, "seed": 4},
    {"kind": "e500", "rate": 0.06, "seed": 5},
    {"kind": "shift_jis", "rate": 0.06, "seed": 6},
)
_TRANSFER: Final = {"from": "A001", "to": "A002", "amount": 100, "currency": "JPY"}
# OPTIONS is the gateway's own to answer, for browsers.
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_PATHS: Final = ("/", "/transactions", "/transactions/G-1", "/transactions/G-1/cancel")
_REST: Final = st.text(string.ascii_letters + string.digits + "/._~%-", max_size=12).map(
    "/".__add__
)


def run(stack: Stack, core: CoreControl, tally: Tally, *, cases: int, seed_of_run: int) -> None:
    """Play so many cases, and look at the ledger and the journal afterwards."""
    known = _rows(stack)
    wire = Wire(stack, tally, set(known))
    parts = {name: max(1, round(cases * share)) for name, share in _SHARES.items()}
    core.set_faults(_FAULTS)
    _each(_submits(seed_of_run), parts["submit"], seed_of_run, wire)
    _each(schema()[SUBMIT[0]][SUBMIT[1]].as_strategy(_MODES[1]), parts["bad"], seed_of_run, wire)
    for strategy in _asking():
        _each(strategy, parts["paths"] // 4, seed_of_run, wire)
    _elsewhere(wire, parts["elsewhere"], seed_of_run)
    _chains(wire, cases - tally.cases - parts["away"], seed_of_run)
    core.set_faults([{"kind": "refuse"}])
    _each(_submits(seed_of_run + 1), parts["away"], seed_of_run, wire)
    core.clear()
    _account(wire, known)


def _plainly(cases: int) -> settings:
    """Return settings under which a run is one pass: what was found is kept, never tried again."""
    return settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        stateful_step_count=_STEPS,
    )


def _each(strategy: st.SearchStrategy[Any], cases: int, seed_of_run: int, wire: Wire) -> None:
    @seed(seed_of_run)
    @_plainly(cases)
    @given(case=strategy)
    def play(case: Case) -> None:
        wire.judge(case, case.call(**wire.kwargs()))

    play()


def _asking() -> Iterable[st.SearchStrategy[Any]]:
    """Return the good and the bad requests of the other operations."""
    for path, method, _ in openapi_kit.operations():
        if (path, method) != SUBMIT:
            yield from (schema()[path][method].as_strategy(mode) for mode in _MODES)


def _submits(seed_of_run: int) -> st.SearchStrategy[Case]:
    """Return submissions of which many are well-formed: most that are made freely are refused."""
    guids = map(f"fuzz-{seed_of_run}-{{}}".format, count())

    def eased(case: Case, way: int, body: Any) -> Case:
        if way:
            case.headers["Idempotency-Key"] = next(guids) if way > 1 else f"fuzz-{seed_of_run}-0"
            case.headers.pop("Valid-Until", None)
        if way > 1:
            case.body, case.media_type = body, "application/json"
        return case

    amounts = st.integers(1, 1_000) | st.sampled_from([0, -1, 10**7, 10**19, "1"])
    bodies = amounts.map(lambda amount: {**_TRANSFER, "amount": amount})
    plain = schema()[SUBMIT[0]][SUBMIT[1]].as_strategy()
    return st.builds(eased, plain, st.sampled_from([0, 1, 2, 2, 2]), bodies)


def _chains(wire: Wire, calls: int, seed_of_run: int) -> None:
    """Follow the page's links: a resend, a status, a cancel of what was submitted."""
    base: Any = schema().as_state_machine()
    guids = map(f"chain-{seed_of_run}-{{}}".format, count())
    ends = wire.tally.cases + calls

    class Journey(base):  # type: ignore[misc]
        def before_call(self, case: Case) -> None:
            if case.operation.label == "POST /transactions":
                case.headers.setdefault("Idempotency-Key", next(guids))
                case.headers.pop("Valid-Until", None)

        def get_call_kwargs(self, case: Case) -> dict[str, Any]:
            del case
            return wire.kwargs()

        def validate_response(self, response: Response, case: Case, **_: Any) -> None:
            wire.judge(case, response)

    for nth in count():
        if wire.tally.cases >= ends:
            return
        journey = seed(seed_of_run * 10_000 + nth)(Journey)
        # A hub that remembers answers the same request otherwise the next time, by which Hypothesis
        # knows a flaky test: that ends this round of chains, and not the run.
        with suppress(Flaky):
            run_state_machine_as_test(journey, settings=_plainly(_CHAINS))


def _elsewhere(wire: Wire, calls: int, seed_of_run: int) -> None:
    """Try methods and paths that the page does not have: 404, or 405 with what there is."""
    problem = openapi_kit.at("#/components/schemas/Problem")
    malformed = openapi_kit.at("#/components/schemas/E905")
    known = {(path, method) for path, method, _ in openapi_kit.operations()}

    @seed(seed_of_run)
    @_plainly(calls)
    @given(st.sampled_from(_METHODS), st.sampled_from(_PATHS) | _REST)
    def play(method: str, path: str) -> None:
        template = path.replace("G-1", "{guid}")
        if (template, method) in known or template.startswith("/transactions/{"):
            return
        url = wire.kwargs()["base_url"] + path
        answer = requests.request(method, url, auth=Signed(wire.stack.atm), timeout=30)
        wire.tally.cases += 1
        wire.tally.saw(f"elsewhere {answer.status_code}")
        is_named = answer.status_code != 405 or "Allow" in answer.headers
        is_told = method == "HEAD" or not openapi_kit.faults(
            {"allOf": [problem, malformed]}, answer.json()
        )
        if answer.status_code not in {404, 405} or not is_named or not is_told:
            shown = f"{method} {path} answered {answer.status_code} {answer.content[:300]!r}"
            wire.tally.found(f"elsewhere {answer.status_code}", shown)

    play()


def _rows(stack: Stack) -> dict[str, dict[str, Any]]:
    """Return the channel's rows; what comes as messages is not of this run."""
    rows = stack.scan_rows()
    return {str(row["guid"]): row for row in rows if row.get("channel") == stack.atm.name}


def _account(wire: Wire, known: Iterable[str]) -> None:
    """Compare rows and journal with what was told; leave no row that the hub would send later."""
    rows = _rows(wire.stack)
    executed = Counter(each.guid for each in read_journal(wire.stack.journal))
    for what, guids in (
        ("a row that no answer told of", rows.keys() - wire.recorded),
        ("recorded by its answer, and without a row", wire.recorded - rows.keys()),
        ("executed twice", {guid for guid in rows.keys() - known if executed[guid] > 1}),
    ):
        wire.tally.found_all((f"{what}: {guid}" for guid in sorted(guids)[:5]), "ledger, journal")
    for guid in rows.keys() - known:
        if rows[guid]["state"] != "DONE":
            wire.stack.atm.cancel(guid)

"""`/_core/...`: set faults, read the truth, start anew.

The rule it protects: what was put is in force when the answer comes; bad input changes nothing.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from local.core_answers import plain_json
from local.core_bank import Bank
from local.core_faults import FaultBook, catalogue
from local.core_http import Request, Response
from local.core_ledger import execution_record, read_journal, read_received
from local.core_rules import FaultsError, read_settings

PREFIX = "/_core/"


@dataclass(frozen=True)
class Control:
    """What the control needs: the parts, and how to put faults in force and to reset."""

    bank: Bank
    book: FaultBook
    journal: Path
    applied: Callable[[], None]
    reset: Callable[[], None]
    health: Callable[[], dict[str, object]]


def handle(control: Control, request: Request) -> Response:
    """Answer one control request: 404 lists the paths, 405 the methods, 400 the kinds."""
    name = request.path.removeprefix(PREFIX)
    methods = ROUTES.get(name)
    if methods is None:
        paths = sorted(PREFIX + known for known in ROUTES)
        return plain_json(404, {"error": f"no such path: {request.path}", "paths": paths})
    route = methods.get(request.method)
    if route is None:
        allowed = ", ".join(sorted(methods))
        return plain_json(405, {"error": f"{request.path} takes {allowed}"}, ("Allow", allowed))
    return route(control, request)


def _put_faults(control: Control, request: Request) -> Response:
    try:
        settings = read_settings(json.loads(request.body))
    except FaultsError as error:
        return _refused(error.problems)
    except ValueError:
        return _refused(["the body is not JSON"])
    control.book.replace(settings)
    control.applied()
    return _get_faults(control, request)


def _refused(problems: list[str]) -> Response:
    told = {"error": "; ".join(problems), "problems": problems, "kinds": catalogue()}
    return plain_json(400, told)


def _get_faults(control: Control, _: Request) -> Response:
    book = control.book
    rules = [
        {**rule.shown(), "applied": book.applied[index]}
        for index, rule in enumerate(book.settings.rules)
    ]
    switches = {k: v for k, v in vars(book.settings).items() if k != "rules"}
    return plain_json(200, {"rules": rules, **switches})


def _get_journal(control: Control, request: Request) -> Response:
    """Read the file itself, so that what is shown is what a check reads."""
    guid = request.query.get("guid", [""])[0]
    executions = [e for e in read_journal(control.journal) if guid in ("", e.guid)]
    executed = Counter(execution.guid for execution in executions)
    received = {g: n for g, n in control.bank.counts.items() if guid in ("", g)}
    counts = {
        g: {"received": received.get(g, 0), "executed": executed[g]} for g in received | executed
    }
    records = [execution_record(execution) for execution in executions]
    return plain_json(200, {"executions": records, "counts": counts})


def _get_received(control: Control, request: Request) -> Response:
    guid = request.query.get("guid", [""])[0]
    receipts = [asdict(r) for r in read_received(control.journal) if guid in ("", r.guid)]
    return plain_json(200, {"receipts": receipts})


def _get_accounts(control: Control, _: Request) -> Response:
    balances = control.bank.balances
    return plain_json(200, {"accounts": balances, "total": sum(balances.values())})


def _reset(control: Control, _: Request) -> Response:
    control.reset()
    return plain_json(200, {"reset": True})


def _healthz(control: Control, _: Request) -> Response:
    return plain_json(200, control.health())


ROUTES: dict[str, dict[str, Callable[[Control, Request], Response]]] = {
    "faults": {"PUT": _put_faults, "GET": _get_faults},
    "journal": {"GET": _get_journal},
    "received": {"GET": _get_received},
    "accounts": {"GET": _get_accounts},
    "reset": {"POST": _reset},
    "healthz": {"GET": _healthz},
}

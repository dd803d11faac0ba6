"""What each function can write of metrics: by calling telemetry for all that its code names."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

from relayhub import telemetry
from relayhub.flows import purge, reprocess, resolve, survey
from relayhub.row import Row
from relayhub.states import Code, Event, State
from tests.unit.template_kit import FUNCTIONS, ROOT, handler_of

SERVICES: Final = {
    str(each["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]): name
    for name, each in FUNCTIONS.items()
}
WARNINGS: Final[dict[str, str]] = dict(vars(telemetry)["_WARNINGS"])
_OF_ALL: Final = ("states", "telemetry")
ROW: Final = Row("G-1", State.SENT, "atm", 1, 1)
# What a fact may be, of those by which something is counted.
_CODES: Final = ("0000", "B201", *Code)


def _modules(path: Path) -> Iterator[Path]:
    """Yield the hub's modules that a module imports, less those that name what all of them do."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("relayhub"):
            continue
        for alias in node.names:
            for dotted in (f"{node.module}.{alias.name}", str(node.module)):
                found = ROOT / (dotted.replace(".", "/") + ".py")
                if found.exists() and found.stem not in _OF_ALL:
                    yield found


@cache
def sources_of(service: str) -> tuple[Path, ...]:
    """Return the handler of a function and all of the hub that it imports, directly or not."""
    found = [handler_of(SERVICES[service])]
    for path in found:
        found += [each for each in _modules(path) if each not in found]
    return tuple(found)


def _words(path: Path) -> Iterator[str]:
    """Yield what the module notes: the first text of each call of `note`, and each `what`."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="note"), args=[ast.Constant(value=word), *_]):
                yield str(word)
            case ast.keyword(arg="what", value=ast.Constant(value=word)):
                yield str(word)
            case ast.arguments(kwonlyargs=[ast.arg(arg="what"), *_], kw_defaults=[default, *_]):
                yield str(getattr(default, "value", ""))


@cache
def words_of(service: str) -> frozenset[str]:
    """Return all that the function can note."""
    return frozenset(word for path in sources_of(service) for word in _words(path))


def _events(service: str) -> list[Event]:
    code = "\n".join(path.read_text() for path in sources_of(service))
    return [each for each in Event if f"Event.{each.name}" in code]


def _notes(service: str) -> Iterator[Callable[[], None]]:
    words = words_of(service)
    for what in sorted({*WARNINGS, *vars(telemetry)["_COUNTED"], "in_doubt", "not_sent"} & words):
        for code in _CODES:
            facts: dict[str, Any] = {"code": code, "taken": "taken", "reason": "connect_refused"}
            yield lambda what=what, facts=facts: telemetry.note(what, **facts)  # type: ignore[misc]


def _reports(service: str) -> Iterator[Callable[[], None]]:
    code = sources_of(service)[0].read_text()
    rows = Counter(dict.fromkeys(survey.GROUPS, 1))
    found = survey.Survey(rows)
    aged = purge.Report(oldest_ms=dict.fromkeys(State, 1))
    calls: dict[str, Callable[[], None]] = {
        "wordless": lambda: telemetry.fault(ValueError(), guid=None),
        "fault": lambda: telemetry.fault(ValueError(), guid=None),
        "resolved": lambda: telemetry.resolved(resolve.Report()),
        "surveyed": lambda: telemetry.surveyed(found, core_is_closed=False),
        "swept": lambda: telemetry.swept(reprocess.Swept()),
        "purged": lambda: telemetry.purged(aged),
    }
    yield from (call for name, call in calls.items() if re.search(rf"\b{name}\(", code))


@cache
def written_by(service: str) -> dict[str, str]:
    """Return the metrics that the function can write, each with its unit."""
    telemetry.metrics.clear_metrics()
    for event in _events(service):
        telemetry.step({"by": "x", "event": event, "to": State.SENT, "at": 1}, ROW)
    for call in (*_notes(service), *_reports(service)):
        call()
    emf = telemetry.metrics.serialize_metric_set()
    telemetry.metrics.clear_metrics()
    (directive,) = emf["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["service"]]
    return {each["Name"]: each["Unit"] for each in directive["Metrics"]}


def gauges() -> set[tuple[str, tuple[str, ...]]]:
    """Return the metrics that are written straight to CloudWatch, with their dimensions' names."""
    found = survey.Survey()
    found.in_doubt.by["atm", "JPY"] = Decimal(1)
    return {(each.name, tuple(each.about)) for each in survey.gauges(found)}

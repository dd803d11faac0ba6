"""One JSON line per step, and the metrics; no payload, no account data, ever.

Powertools' Logger adds the function, the request's id and the trace id.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

if TYPE_CHECKING:
    from relayhub.flows import purge, reprocess, resolve, survey
    from relayhub.row import Entry, Row

logger: Final = Logger(log_uncaught_exceptions=False)
metrics: Final = Metrics()
_FRAMES: Final = 4  # So many of the innermost places of a fault are logged.

# What somebody should look at, each with its metric.
_WARNINGS: Final = {
    "contradiction": "Contradiction",
    "fenced": "FencedLateWriter",
    "late_answer": "LateAnswer",
    "not_stored": "OutcomeNotStored",
    "hint_lost": "HintLost",
    "unreadable_answer": "UnreadableAnswer",
    "ledger_refused": "LedgerRefused",
    "claim_without_answer": "ClaimWithoutAnswer",
    "clock_off": "ClockOff",
    "core_longest_wrong": "CoreLongestWrong",
    "circuit_closed": "CircuitClosed",
    "gate_closed": "GateClosed",
    "gauges_lost": "GaugesLost",
    "held": "Held",
    "hint_rejected": "HintRejected",
    "intake_lost": "IntakeLost",
    "message_given_back": "MessageGivenBack",
    "message_rejected": "MessageRejected",
    "not_ready": "NotReady",
    "order_at_risk": "OrderAtRisk",
    "row_fault": "RowFault",
    "shard_fault": "ShardFault",
    "switches_unread": "SwitchesUnread",
    "undecided": "Undecided",
}
# What is counted by one of its facts.
_COUNTED: Final = {
    "answered": ("Answer", "code"),
    "hint": ("Hint", "taken"),
    "message": ("Message", "taken"),
    "message_rejected": ("Rejected", "code"),
}
# Reasons for which the core let nobody in begin so; what was stopped before is no call of it.
_UNREACHED: Final = ("dns_", "connect_", "tls_")


class RunError(Exception):
    """A run ended by a fault. It names its kind alone; the log has the place."""


@contextmanager
def wordless(*known: type[Exception]) -> Iterator[None]:
    """Let a run fail by a known error, or by RunError: any other's text may quote what it had."""
    try:
        yield
    except known:
        raise
    except Exception as error:  # noqa: BLE001 - the platform would write its text into the log
        fault(error, guid=None)
        raise RunError(type(error).__name__) from None


def step(entry: Entry, row: Row) -> None:
    """Log one step that was written to the ledger."""
    logger.info(
        "step",
        guid=row.guid,
        channel=row.channel,
        by=entry["by"],
        event=entry["event"],
        from_state=entry.get("from"),
        to_state=entry["to"],
        code=row.code,
        attempt=row.attempt,
        elapsed_ms=row.updated_at - row.accepted_at,
        **({"reason": entry["reason"]} if "reason" in entry else {}),
    )
    _count(f"Step.{entry['event']}", 1)
    if entry["event"] == "answered":
        _count("CoreRefused", 0)


def note(what: str, **facts: Any) -> None:
    """Log something that is worth a line but is no step: an answer, a late writer, a fault."""
    if what in _WARNINGS:
        logger.warning(what, **facts)
        _count(_WARNINGS[what], 1)
    else:
        logger.info(what, **facts)
    if what in _COUNTED:
        name, fact = _COUNTED[what]
        _count(f"{name}.{facts[fact]}", 1)
    _note_shares(what, facts)


def _note_shares(what: str, facts: dict[str, Any]) -> None:
    """Write 0 or 1 for each call or answer: its average is a share, its count how many."""
    if what == "answered":
        _count("HubRefused", int(facts["code"] == "E906"))
    elif what == "in_doubt":
        _count("CoreRefused", 0)
    elif what == "not_sent" and str(facts["reason"]).startswith(_UNREACHED):
        _count("CoreRefused", 1)


def fault(error: Exception, *, guid: str | None) -> None:
    """Log a fault by its kind and place; its text may quote what it was about."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = [f"{frame.name}:{frame.lineno}" for frame in frames]
    logger.error("fault", guid=guid, error=type(error).__name__, places=places)
    _count("Fault", 1)


def resolved(report: resolve.Report) -> None:
    """Log what a run of the resolver did, and give the oldest ages to the alarms."""
    logger.info("resolved", **vars(report))
    _count("ResolverRuns", int(not report.held))
    _count("Inquiries", report.asked)
    for state in ("SENT", "UNKNOWN", "RECEIVED"):
        _milliseconds(f"OldestDue.{state}", report.oldest_due_ms.get(state, 0))


def surveyed(found: survey.Survey, *, core_is_closed: bool) -> None:
    """Log how many rows are open and how old they are; no sum of money."""
    facts: dict[str, Any] = {
        "rows": found.rows,
        "oldest_age_ms": found.oldest_age_ms,
        "complete": found.complete,
    }
    logger.info("surveyed", **facts, core_is_closed=core_is_closed)
    for group, rows in found.rows.items():
        _count(f"OpenRows.{group}", rows)
    for state in ("UNKNOWN", "HELD"):
        # No row was found only where all were looked for.
        if found.complete or state in found.oldest_age_ms:
            _milliseconds(f"OldestAge.{state}", found.oldest_age_ms.get(state, 0))
    _count("SurveyIncomplete", int(not found.complete))
    _count("CoreClosed", int(core_is_closed))


def swept(report: reprocess.Swept) -> None:
    """Log what a sweep did."""
    logger.info("swept", **vars(report))
    _count("SweepRuns", int(not report.held))
    _count("HintsSent", report.hinted)
    _milliseconds("OldestDue.FAILED", report.oldest_due_ms.get("FAILED", 0))


def purged(report: purge.Report) -> None:
    """Log what the purger did, and give the table's own ages to the alarms."""
    logger.info("purged", **vars(report))
    _count("PurgerRuns", 1)
    _count("Purged", report.deleted)
    _count("PurgerRepairs", report.repaired)
    for state, age_ms in report.oldest_ms.items():
        _milliseconds(f"OldestRow.{state}", age_ms)


def _count(name: str, value: int) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)


def _milliseconds(name: str, value: int) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Milliseconds, value=value)

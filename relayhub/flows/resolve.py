"""The resolver: no row stays in doubt unseen, and none is believed executed or not by time alone.

    SENT past dead_at -> UNKNOWN -> the core's inquiry -> DONE, FAILED, E908, or it stays
    RECEIVED past due -> FAILED

It never calls the core with a request. A NOT_FOUND counts only if it was asked for when nothing of
the request could still begin, judged by what the row itself carries, and was given twice, apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, assert_never

from relayhub.controls import Job
from relayhub.flows import circuit
from relayhub.flows.due import due_rows
from relayhub.flows.steps import (
    counts_from,
    end_if_over,
    end_unexecuted,
    fail,
    hint_if_hub_sends,
    settle_by_inquiry,
)
from relayhub.ledger import Found, Stored
from relayhub.row import Row
from relayhub.settings import INQUIRY_S_MAX
from relayhub.states import SCHEMA, Code, Event, Hold, State, Verdict, Why
from relayhub.upkeep import Due

if TYPE_CHECKING:
    from relayhub.core import Finding
    from relayhub.hub import Hub
    from relayhub.ledger import Outcome

BY: Final = "resolver"
_ROWS_MAX: Final = 1_000  # A run handles at most as many; the next one goes on.
_KEEP_BACK_MS: Final = 10_000  # For the row in hand: one inquiry, one answer to store, one write.
_AWAY_MAX: Final = 3  # After so many inquiries in a row that failed for all, the run asks no more.
_RETRY_MS: Final = 60_000  # A row whose handling failed waits as long.
_GROUPS: Final = (State.SENT, State.UNKNOWN, State.RECEIVED)
_GROUPS_UNASKED: Final = (State.SENT, State.RECEIVED)  # What moves on without the core's word.


@dataclass
class Report:
    """What one run saw and did."""

    due: int = 0
    asked: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    oldest_due_ms: dict[str, int] = field(default_factory=dict)  # By state: how long overdue.
    oldest_age_ms: dict[str, int] = field(default_factory=dict)  # By state, of the rows looked at.
    held: bool = False  # A person holds the resolver: it did nothing.
    complete: bool = True  # False: rows that were due are left for the next run.


class Pace:
    """Lets at most so many inquiries per second through, by waiting."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._gap_ms = 1000 / hub.settings.inquiries_per_s
        self._next_ms = 0.0
        self.away = 0

    def ask(self, row: Row) -> Finding:
        """Ask the core about the row when the budget allows."""
        now_ms = self._hub.now_ms()
        if now_ms < self._next_ms:
            self._hub.sleep((self._next_ms - now_ms) / 1000)
        self._next_ms = max(self._next_ms, now_ms) + self._gap_ms
        finding = self._hub.core.ask(
            row.guid, inquiry_id=self._hub.new_id(), within_s=INQUIRY_S_MAX
        )
        self.away = self.away + 1 if finding.core_is_away else 0
        return finding

    @property
    def core_is_away(self) -> bool:
        """Whether the core is closed, or the last inquiries failed as the next one would, too."""
        return self.away >= _AWAY_MAX or circuit.is_closed(self._hub)


def run(hub: Hub, dead_at_ms: int, *, rows_max: int = _ROWS_MAX, dry_run: bool = False) -> Report:
    """Handle the rows that are due, oldest first, within the time. Two runs at once are safe.

    A dry run asks nothing and writes nothing: it counts what is due.
    """
    report, pace = Report(), Pace(hub)
    if circuit.rests(hub, Job.RESOLVER):
        return Report(held=True, complete=False)
    may_ask = not circuit.is_closed(hub) if dry_run else circuit.opens(hub)
    # One more than wanted tells that some are left.
    found = due_rows(hub, _GROUPS if may_ask else _GROUPS_UNASKED, rows_max + 1)
    if hub.upkeep.clock_is_off():
        hub.note("clock_off")
    report.due, report.oldest_due_ms = len(found.rows), found.oldest_ms
    report.complete = found.complete and len(found.rows) <= rows_max
    for due in () if dry_run else found.rows[:rows_max]:
        if hub.now_ms() + _KEEP_BACK_MS > dead_at_ms:
            report.complete = False
            break
        try:
            event = _handle(hub, due, pace, report, dead_at_ms)
        except Exception as error:  # noqa: BLE001 - one row must never end the run
            hub.note("row_fault", guid=due.guid, error=type(error).__name__)
            event = "fault"
            hub.upkeep.set_aside(due, hub.now_ms() + _RETRY_MS)
        report.steps[event] += 1
    return report


def _handle(hub: Hub, due: Due, pace: Pace, report: Report, dead_at_ms: int) -> str:
    """Move one row on and return what happened to it."""
    row = hub.ledger.read(due.guid)
    if not isinstance(row, Row):
        return "gone" if row is None else "unreadable"
    if row.schema > SCHEMA or (row.due_at or 0) > hub.now_ms() or _waits_for_a_person(row):
        return "skipped"
    age_ms = hub.now_ms() - row.accepted_at
    report.oldest_age_ms[row.state] = max(age_ms, report.oldest_age_ms.get(row.state, 0))
    match row.state:
        case State.SENT:
            return _abandon(hub, row, pace, report, dead_at_ms)
        case State.RECEIVED:
            return _overdue(hub, row)
        case State.UNKNOWN:
            return _inquire(hub, row, pace, report, dead_at_ms)
        case State.DONE | State.FAILED:
            return "skipped"
        case _:
            assert_never(row.state)


def _waits_for_a_person(row: Row) -> bool:
    return row.hold is not None and row.hold is not Hold.RESTORED


def _abandon(hub: Hub, row: Row, pace: Pace, report: Report, dead_at_ms: int) -> str:
    """Take a SENT row whose holder is certainly gone into doubt, and ask at once."""
    now_ms = hub.now_ms()
    skew_ms = hub.settings.clock_skew_s * 1000
    if row.dead_at is None or now_ms <= row.dead_at + skew_ms:
        return "skipped"
    outcome = hub.ledger.move(
        row, Event.ABANDONED, BY, now_ms, code=Code.E901, doubted=True, due_at=now_ms
    )
    if not isinstance(outcome, Stored) or outcome.row.state is not State.UNKNOWN:
        # A write whose reply was lost is found again as the row is now: others may have ended it.
        return "lost"
    return _inquire(hub, outcome.row, pace, report, dead_at_ms)


def _overdue(hub: Hub, row: Row) -> str:
    """Say of an accepted request whose message did not come that nothing was sent."""
    ended = end_if_over(hub, row, BY)
    if ended is not None:
        return _event(ended, Event.EXPIRED)
    return _fail(hub, row, Event.OVERDUE, Why.NOT_SENT)


def _fail(hub: Hub, row: Row, event: Event, why: Why) -> str:
    outcome = fail(hub, row, event, BY, why)
    if isinstance(outcome, Stored):
        hint_if_hub_sends(hub, outcome.row)
    return _event(outcome, event)


def _inquire(hub: Hub, row: Row, pace: Pace, report: Report, dead_at_ms: int) -> str:
    """Ask the core what became of the row, and write what that proves."""
    if row.core != hub.settings.core_name:
        # Another core's word says nothing about this row.
        return _wait(hub, row, "other_core")
    if pace.core_is_away:
        return _not_asked(hub, row)
    asked_at = hub.now_ms()
    finding = pace.ask(row)
    report.asked += 1
    match finding.verdict:
        case Verdict.PROCESSED:
            return _processed(hub, row, finding, dead_at_ms)
        case Verdict.NOT_FOUND:
            return _not_found(hub, row, asked_at)
        case Verdict.PROCESSING:
            return _processing(hub, row, asked_at)
        case Verdict.UNDECIDED:
            return _wait(hub, row, finding.reason)
        case _:
            assert_never(finding.verdict)


def _processed(hub: Hub, row: Row, finding: Finding, dead_at_ms: int) -> str:
    outcome = settle_by_inquiry(hub, row, finding, BY, dead_at_ms)
    return _wait(hub, row, "not_stored") if outcome is None else _event(outcome, Event.PROCESSED)


def _processing(hub: Hub, row: Row, asked_at: int) -> str:
    if row.ask_after is not None and asked_at > row.ask_after:
        # The core is at it when it no longer could be: CORE_LONGEST_S is wrong.
        hub.note("core_longest_wrong", guid=row.guid, late_ms=asked_at - row.ask_after)
    # The time after the answer: until then the core was certainly at it.
    seen_at = hub.now_ms()
    waits = _next_inquiry(hub, row)
    outcome = hub.ledger.move(
        row, Event.PROCESSING_SEEN, BY, seen_at, processing_at=seen_at, **waits
    )
    return _event(outcome, Event.PROCESSING_SEEN)


def _not_found(hub: Hub, row: Row, asked_at: int) -> str:
    """Believe a NOT_FOUND only as the row allows; the second one, apart from the first, acts."""
    if row.ask_after is None or row.sent_at is None:
        return _hold(hub, row, "no_ask_after")
    memory_ms = (hub.settings.core_memory_s - hub.settings.clock_skew_s) * 1000
    if asked_at >= row.sent_at + memory_ms:
        return _hold(hub, row, "core_forgot")
    if asked_at <= counts_from(hub, row):
        return _wait(hub, row, "too_early")
    if hub.upkeep.clock_is_off():
        return _wait(hub, row, "clock_off")
    return _count_not_found(hub, row, asked_at)


def _count_not_found(hub: Hub, row: Row, asked_at: int) -> str:
    apart_ms = hub.settings.not_found_apart_s * 1000
    if row.not_found_at is None or row.not_found_at <= counts_from(hub, row):
        # The first that counts: one from before the core was seen at it, or failed over, does not.
        outcome = hub.ledger.move(
            row,
            Event.NOT_FOUND_COUNTED,
            BY,
            hub.now_ms(),
            not_found_at=asked_at,
            due_at=asked_at + apart_ms,
        )
        return _event(outcome, Event.NOT_FOUND_COUNTED)
    if asked_at < row.not_found_at + apart_ms:
        return _wait(hub, row, "too_soon")
    return _not_executed(hub, row)


def _not_executed(hub: Hub, row: Row) -> str:
    if row.cancel and row.hold:
        # The hold says that only a person ends it, and the cancel that nobody sends it.
        return _wait(hub, row, "held_and_cancelled")
    if row.cancel:
        outcome = end_unexecuted(hub, row, Event.CANCELLED, BY)
        return _event(outcome, Event.CANCELLED)
    return _fail(hub, row, Event.NOT_FOUND, Why.NOT_FOUND)


def _hold(hub: Hub, row: Row, reason: str) -> str:
    """Leave the row in doubt and take it out of the jobs' reach: a person decides."""
    hub.note("held", guid=row.guid, reason=reason)
    outcome = hub.ledger.move(row, Event.HELD, BY, hub.now_ms(), hold=Hold.FORGOTTEN)
    return _event(outcome, Event.HELD)


def _wait(hub: Hub, row: Row, reason: str) -> str:
    hub.note("undecided", guid=row.guid, reason=reason)
    outcome = hub.ledger.move(row, Event.BACKED_OFF, BY, hub.now_ms(), **_next_inquiry(hub, row))
    return _event(outcome, Event.BACKED_OFF)


def _not_asked(hub: Hub, row: Row) -> str:
    """Let the row have its turn soon: the core was away for others, nobody asked about this one."""
    hub.note("undecided", guid=row.guid, reason="core_away")
    due_at = hub.now_ms() + hub.settings.inquiry_backoff_min_s * 1000
    return _event(
        hub.ledger.move(row, Event.BACKED_OFF, BY, hub.now_ms(), due_at=due_at), Event.BACKED_OFF
    )


def _next_inquiry(hub: Hub, row: Row) -> dict[str, Any]:
    """Return the row's next turn: doubling, but exactly when a NOT_FOUND starts to count."""
    settings, now_ms = hub.settings, hub.now_ms()
    doubled_s = settings.inquiry_backoff_min_s * 2 ** min(row.inquiries, 16)
    due_at = now_ms + min(doubled_s, settings.inquiry_backoff_max_s) * 1000
    counts_at = counts_from(hub, row) + 1
    if now_ms < counts_at < due_at:
        due_at = counts_at
    return {"inquiries": row.inquiries + 1, "due_at": due_at}


def _event(outcome: Outcome, event: Event) -> str:
    """Return what happened: the step, or that another was faster, or that it was not written."""
    if isinstance(outcome, Stored):
        return event
    return "lost" if isinstance(outcome, Found) else "not_written"

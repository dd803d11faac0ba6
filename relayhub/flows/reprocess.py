"""The reprocessor: send again what was certainly not sent, under the same GUID.

Ask, then claim, then send. A hint from the queue only says where to look; the row decides. While
the core is away nothing is claimed and no attempt is spent: a gate lets one probe through now and
then, and the sweep hints again. It sends no hints of what it failed to send: the sweep does, since
a queue that feeds itself is stopped by the platform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, assert_never

from relayhub.controls import Job
from relayhub.credentials import CredentialsError
from relayhub.flows import attempt, circuit
from relayhub.flows.due import due_rows
from relayhub.flows.steps import (
    Ticket,
    claim_fields,
    end_if_over,
    failed_due_at,
    hint_if_hub_sends,
    hold_contradiction,
    proves_from,
    settle_by_inquiry,
)
from relayhub.ledger import Found, Stored
from relayhub.row import PARKED, Row, hub_sends
from relayhub.settings import INQUIRY_S_MAX
from relayhub.states import SCHEMA, Event, State, Verdict
from relayhub.upkeep import UpkeepError

if TYPE_CHECKING:
    from relayhub.core import Finding
    from relayhub.hub import Hub
    from relayhub.ledger import Outcome

BY: Final = "reprocessor"
PARKED_BY_CAP: Final = "cap"
_SWEEP_ROWS_MAX: Final = 2_000
_SWEEP_KEEP_BACK_MS: Final = 10_000
_RETRY_MS: Final = 60_000  # A row whose handling failed waits as long.


@dataclass(frozen=True)
class Hint:
    """Where to look: a GUID, and the attempt that failed; None takes the row's own."""

    guid: str
    attempt: int | None = None


class Taken(StrEnum):
    """What became of a hint. Only GIVEN_BACK must come again; the sweep repeats the rest."""

    SENT = "sent"  # Claimed and sent; the row says what came of it.
    ENDED = "ended"  # The row is DONE now, without a send.
    DROPPED = "dropped"  # There is nothing to do for it.
    WAITS = "waits"  # The core cannot be asked; row and attempts are as they were.
    PARKED = "parked"  # Over the cap: a person decides.
    GIVEN_BACK = "given_back"  # Not looked at: no time, or the ledger did not answer.


def handle(hub: Hub, hint: Hint, dead_at_ms: int) -> Taken:
    """Do what the hint asks for, if the row says so too."""
    needed_s = hub.settings.core_deadline_s + hub.settings.margin_s + INQUIRY_S_MAX
    if dead_at_ms - hub.now_ms() < needed_s * 1000:
        return Taken.GIVEN_BACK
    if circuit.rests(hub, Job.REPROCESSOR):
        return Taken.WAITS
    row = hub.ledger.read(hint.guid)
    if row is not None and not isinstance(row, Row):
        return Taken.GIVEN_BACK
    return _look_at(hub, row, hint, dead_at_ms)


def _look_at(hub: Hub, row: Row | None, hint: Hint, dead_at_ms: int) -> Taken:
    if row is None or not _is_meant(row, hint):
        return Taken.DROPPED
    ended = _end_if_over(hub, row)
    if ended is not None or not hub_sends(row):
        return ended or Taken.DROPPED
    if row.resends >= hub.settings.resends_max:
        return _park(hub, row)
    return _ask_claim_send(hub, row, dead_at_ms)


def _is_meant(row: Row, hint: Hint) -> bool:
    """Tell whether the hint is about the row as it is: failed, this attempt, held by nobody."""
    if row.state is not State.FAILED or row.schema > SCHEMA or row.hold:
        return False
    return hint.attempt is None or hint.attempt == row.attempt


def _end_if_over(hub: Hub, row: Row) -> Taken | None:
    outcome = end_if_over(hub, row, BY)
    if outcome is None:
        return None
    return Taken.ENDED if isinstance(outcome, Stored) else Taken.WAITS


def _park(hub: Hub, row: Row) -> Taken:
    hub.ledger.move(
        row, Event.PARKED, BY, hub.now_ms(), parked=PARKED_BY_CAP, due_at=row.valid_until
    )
    return Taken.PARKED


def _ask_claim_send(hub: Hub, row: Row, dead_at_ms: int) -> Taken:
    fault = _why_not_asked(hub, row)
    if fault:
        hub.note("undecided", guid=row.guid, reason=fault)
        return Taken.WAITS
    if not circuit.opens(hub) or not (gate := look_at_gate(hub)).may_ask:
        return Taken.WAITS
    if hub.upkeep.clock_is_off():
        # The call would be stopped after the claim, at the cost of an attempt.
        hub.note("clock_off", guid=row.guid)
        return Taken.WAITS
    asked_at = hub.now_ms()
    finding = hub.core.ask(row.guid, inquiry_id=hub.new_id(), within_s=INQUIRY_S_MAX)
    _mind_the_gate(hub, gate, finding)
    if finding.verdict is Verdict.NOT_FOUND and asked_at <= proves_from(hub, row):
        hub.note("undecided", guid=row.guid, reason="too_early")
        return Taken.WAITS
    return _act_on(hub, row, finding, dead_at_ms)


def _why_not_asked(hub: Hub, row: Row) -> str | None:
    if row.doubted and row.core not in {None, hub.settings.core_name}:
        return "other_core"
    try:
        hub.core.prepare()
    except CredentialsError as error:
        return str(error)
    return None


def _act_on(hub: Hub, row: Row, finding: Finding, dead_at_ms: int) -> Taken:
    match finding.verdict:
        case Verdict.PROCESSED:
            outcome = settle_by_inquiry(hub, row, finding, BY, dead_at_ms)
            return Taken.ENDED if isinstance(outcome, Stored) else Taken.WAITS
        case Verdict.NOT_FOUND:
            return _claim_and_send(hub, row, dead_at_ms)
        case Verdict.PROCESSING:
            if hold_contradiction(hub, row, BY, "processing"):
                hub.note("core_longest_wrong", guid=row.guid)
            return Taken.WAITS
        case Verdict.UNDECIDED:
            hub.note("undecided", guid=row.guid, reason=finding.reason)
            return Taken.WAITS
        case _:
            assert_never(finding.verdict)


@dataclass(frozen=True)
class Gate:
    """Whether the core is known to be away, and whether it may be asked all the same."""

    is_open: bool
    may_ask: bool


def look_at_gate(hub: Hub) -> Gate:
    """Look at the gate; while it is closed, one caller per `PROBE_S` may ask."""
    try:
        opens_at = hub.upkeep.gate_opens_at()
    except UpkeepError:
        return Gate(is_open=False, may_ask=False)
    if opens_at is None:
        return Gate(is_open=True, may_ask=True)
    now_ms = hub.now_ms()
    next_at = now_ms + hub.settings.probe_s * 1000
    turn = opens_at <= now_ms and hub.upkeep.take_probe(opens_at, next_at)
    return Gate(is_open=False, may_ask=turn)


def _mind_the_gate(hub: Hub, gate: Gate, finding: Finding) -> None:
    """Close the gate when the core is away; open it when it gives a verdict."""
    if gate.is_open and finding.core_is_away:
        if hub.upkeep.close_gate(hub.now_ms() + hub.settings.probe_s * 1000):
            hub.note("gate_closed")
    elif not gate.is_open and finding.verdict is not Verdict.UNDECIDED:
        try:
            hub.upkeep.open_gate()
        except UpkeepError as error:
            hub.note("gate_unknown", reason=str(error))
        else:
            hub.note("gate_opened")


def _claim_and_send(hub: Hub, row: Row, dead_at_ms: int) -> Taken:
    outcome = claim(hub, row, Ticket(hub.new_id(), hub.now_ms(), dead_at_ms))
    match outcome:
        case Stored() as claimed:
            attempt.run(hub, claimed, BY)
            return Taken.SENT
        case Found():
            return Taken.DROPPED
        case _:
            # If the claim stands, the resolver finishes the row; if not, the sweep hints again.
            return Taken.WAITS


def claim(hub: Hub, row: Row, ticket: Ticket) -> Outcome:
    """Claim a FAILED row for the hub's own resend, which the cap counts."""
    changes = claim_fields(hub, row, ticket) | {"resends": row.resends + 1}
    return hub.ledger.move(row, Event.CLAIMED, BY, ticket.sent_at, **changes)


@dataclass
class Swept:
    """What one sweep did."""

    due: int = 0
    hinted: int = 0
    ended: int = 0
    oldest_due_ms: dict[str, int] = field(default_factory=dict)  # By group: how long overdue.
    held: bool = False  # A person holds the reprocessor: it did nothing.
    complete: bool = True


def sweep(hub: Hub, dead_at_ms: int) -> Swept:
    """Hint again for FAILED rows that are due, and end those that are over (E908).

    While the gate is closed one hint is enough: it brings the probe.
    """
    swept = Swept()
    if circuit.rests(hub, Job.REPROCESSOR):
        return Swept(held=True, complete=False)
    try:
        is_open = hub.upkeep.gate_opens_at() is None
    except UpkeepError:
        is_open = False
    may_hint = circuit.opens(hub)
    per_shard = max(1, _SWEEP_ROWS_MAX // hub.settings.read_shards)
    found = due_rows(hub, (State.FAILED, PARKED), per_shard)
    swept.due, swept.complete = len(found.rows), found.complete
    swept.oldest_due_ms = found.oldest_ms
    for due in found.rows:
        if hub.now_ms() + _SWEEP_KEEP_BACK_MS > dead_at_ms:
            swept.complete = False
            break
        try:
            hints = may_hint and (is_open or swept.hinted == 0)
            _sweep_row(hub, due.guid, swept, may_hint=hints)
        except Exception as error:  # noqa: BLE001 - one row must never end the run
            hub.note("row_fault", guid=due.guid, error=type(error).__name__)
            hub.upkeep.set_aside(due, hub.now_ms() + _RETRY_MS)
    return swept


def _sweep_row(hub: Hub, guid: str, swept: Swept, *, may_hint: bool) -> None:
    row = hub.ledger.read(guid)
    if not isinstance(row, Row) or row.state is not State.FAILED or row.schema > SCHEMA or row.hold:
        return
    ended = _end_if_over(hub, row)
    if ended is not None:
        swept.ended += ended is Taken.ENDED
    elif hub_sends(row) and may_hint:
        swept.hinted += _hint(hub, row)


def _hint(hub: Hub, row: Row) -> bool:
    """Set the row's next turn, then hint; a hint that is lost comes again at that turn."""
    outcome = hub.ledger.move(
        row,
        Event.BACKED_OFF,
        BY,
        hub.now_ms(),
        due_at=failed_due_at(hub, row),
    )
    if not isinstance(outcome, Stored):
        return False
    return hint_if_hub_sends(hub, outcome.row)

"""The core closed by command, or by the hub itself after so many calls without an answer.

While it is closed nothing is sent: a new request is claimed and written FAILED, so that attempt
numbers stay unique, and the jobs rest. What the hub closed an inquiry opens again, never a payment;
what a person closed a person opens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayhub.controls import Job
from relayhub.core import Answered
from relayhub.settings import INQUIRY_S_MAX, LEDGER_WRITE_WORST_S
from relayhub.states import Verdict
from relayhub.upkeep import UpkeepError

if TYPE_CHECKING:
    from relayhub.core import SendOutcome
    from relayhub.hub import Hub


def heard(hub: Hub, outcome: SendOutcome, dead_at_ms: int) -> None:
    """Count a call that brought no answer, and close the core at the limit; forget them at one.

    It comes after the outcome was written, and only where there is time left for it.
    """
    limit, now_ms = hub.settings.circuit_after, hub.now_ms()
    if not limit or now_ms + LEDGER_WRITE_WORST_S * 1000 > dead_at_ms:
        return
    if isinstance(outcome, Answered):
        hub.controls.answered()
        return
    probe_at = now_ms + hub.settings.probe_s * 1000
    try:
        closed = hub.controls.strike(limit, probe_at, f"{limit} calls in a row without an answer")
    except UpkeepError as error:
        hub.note("circuit_unknown", reason=str(error))
        return
    if closed:
        hub.note("circuit_closed", calls=limit)


def rests(hub: Hub, job: Job) -> bool:
    """Tell whether a person holds the job, or the switches cannot be read: it does nothing then."""
    try:
        held = hub.controls.switches().held.get(job)
    except UpkeepError as error:
        hub.note("switches_unread", job=job, reason=str(error))
        return True
    if held is not None:
        hub.note("job_held", job=job)
    return held is not None


def is_closed(hub: Hub) -> bool:
    """Tell whether the core is closed, switches that cannot be read included. Asks nothing."""
    try:
        return hub.controls.switches().core is not None
    except UpkeepError:
        return True


def opens(hub: Hub) -> bool:
    """Tell whether the core is open; ask the one that the hub closed, where its turn is due."""
    if not is_closed(hub):
        return True
    switch = hub.controls.known.core
    now_ms = hub.now_ms()
    if switch is None or switch.probe_at is None or switch.probe_at > now_ms:
        return False
    if not hub.controls.take_probe(switch.probe_at, now_ms + hub.settings.probe_s * 1000):
        return False
    # About a GUID that nobody can have sent: whatever the core says of it shows that it answers.
    finding = hub.core.ask(f"probe-{hub.new_id()}", inquiry_id=hub.new_id(), within_s=INQUIRY_S_MAX)
    if finding.verdict is Verdict.UNDECIDED:
        hub.note("undecided", reason=finding.reason)
        return False
    return _reopen(hub)


def _reopen(hub: Hub) -> bool:
    try:
        reopened = hub.controls.reopen()
    except UpkeepError as error:
        hub.note("circuit_unknown", reason=str(error))
        return False
    if reopened:
        hub.note("circuit_opened")
    return reopened

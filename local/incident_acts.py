"""What the persons on call do about the prepared incident, by commands of docs/cli.md alone.

Alice is on call; Bob is the second person, whom attesting and closing need. What lies outside the
hub (the core is mended, its owner hands over an answer, the customer is asked) happens in between.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from local.core_answers import answer_of
from local.core_bank import Outcome
from local.core_client import CoreControl
from local.core_ledger import Execution
from local.incident_desk import REFUSED as NO
from local.incident_desk import Desk, IncidentError, Said
from local.incident_story import REFUSED, SILENT, Incident
from local.stack import Stack
from relayhub.times import rfc3339

ALICE: Final = "alice"
BOB: Final = "bob"
# The one of which the call centre knows the amount and the minute; the core's inquiry will not
# tell of it even when it is mended.
SOUGHT: Final = SILENT[7]
ASKED: Final = REFUSED[0]  # Its customer is asked first.
LEFT: Final = REFUSED[-1]  # Its customer has gone.
ANSWER: Final = "answer.json"
_GUID: Final = re.compile(r"(atm|app)-[0-9]{4} ")
_MINUTE_MS: Final = 60_000
_DUE_S: Final = 30.0
_DRAINED_S: Final = 90.0
_POLL_S: Final = 1.0


@dataclass(frozen=True)
class Found:
    """What the commands told on the way."""

    in_doubt: list[dict[str, Any]]  # As `stats` sums it up.
    unknown: list[str]  # GUIDs, as `list` shows them.
    sought: list[str]  # GUIDs, as `find` has found them.
    handed_over: bytes  # The core's answer, as its owner gave it.


def go_through(desk: Desk, stack: Stack, core: CoreControl, incident: Incident) -> Found:
    """Find, explain and put right; raises IncidentError where a command did not end as it must."""
    in_doubt, unknown = _look(desk)
    sought = _find(desk, incident)
    _explain(desk, stack)
    _stop(desk)
    core.set_faults([{"kind": "inquiry_500", "guid": SOUGHT.guid}])
    _start(desk, stack)
    answer = _attest(desk, core)
    _send_what_waits(desk, stack)
    _settle_the_rest(desk)
    _look_again(desk, stack)
    return Found(in_doubt, unknown, sought, answer)


def _look(desk: Desk) -> tuple[list[dict[str, Any]], list[str]]:
    desk.give(
        "How much is open, how old, and which money is in doubt? The hub has closed the core by"
        " itself; what is FAILED was certainly not executed, and waits. Of what is UNKNOWN nobody"
        " knows.",
        "stats",
    )
    told = desk.read("stats")
    listed = desk.give("Which requests are in doubt, and since when?", "list", "--state", "UNKNOWN")
    return told["in_doubt"], _guids(listed)


def _guids(said: Said) -> list[str]:
    """Return the first column of what looks like a GUID of ours."""
    return [line.split()[0] for line in said.text.splitlines() if _GUID.match(line)]


def _find(desk: Desk, incident: Incident) -> list[str]:
    """Look for a request by what its customer knows: how much, and when."""
    sent_ms, answered_ms = incident.sent_ms[SOUGHT.guid]
    first = sent_ms // _MINUTE_MS * _MINUTE_MS
    end = (answered_ms // _MINUTE_MS + 1) * _MINUTE_MS
    words = [
        *("find", "--amount", str(SOUGHT.amount), "--currency", SOUGHT.currency),
        *("--from", _minute(first), "--to", _minute(end)),
    ]
    about = "The call centre has a customer without a GUID: an amount and a minute do."
    return _guids(desk.give(about, *words))


def _minute(ms: int) -> str:
    """Return the time as a person writes it."""
    return rfc3339(ms).replace(":00.000Z", ":00Z")


def _explain(desk: Desk, stack: Stack) -> None:
    """Look at the row, and try what would be unsafe."""
    desk.give(
        "What happened to it, what would a resend get now, and from when can something be proved?",
        *("show", SOUGHT.guid),
    )
    desk.act(
        "It cannot simply be sent again: what may have been executed is refused.",
        *(ALICE, "the customer waits", "redrive", SOUGHT.guid),
        code=NO,
    )
    accepted_at = rfc3339((stack.ledger_row(SOUGHT.guid) or {})["accepted_at"])
    desk.act(
        "Nor can it be called not executed by a journal that ends too early.",
        *(ALICE, "not in the list of this morning"),
        *("attest", "not-executed", SOUGHT.guid, "--complete-through", accepted_at),
        code=NO,
    )


def _stop(desk: Desk) -> None:
    """Close the core by hand, so that it does not open while people work at it."""
    desk.act(
        "The core's owner works at it. Until he has done, nothing is to be sent or asked, whatever"
        " the core answers meanwhile.",
        *(ALICE, "the owner of the core mends its inquiry", "core", "close"),
    )
    desk.give("Who closed it, and why?", "core", "status")
    desk.act(
        "One customer wants to be asked before his transfer is sent: the hub shall not do it by"
        " itself.",
        *(ALICE, "the customer is asked first", "park", ASKED.guid),
    )


def _start(desk: Desk, stack: Stack) -> None:
    """Open the core, and have it asked about what is in doubt."""
    desk.act(
        "The core is mended. What waits goes out again, and the hub may ask.",
        *(ALICE, "its owner says that it is mended", "core", "open"),
    )
    _until(lambda: _all_due(stack), _DUE_S, "rows in doubt that are never due")
    desk.give(
        "Ask the core about all that is in doubt. What it executed ends with the answer of then.",
        "resolve",
    )
    _until(lambda: _only_sought(desk, stack), _DUE_S, "the core's word settled too few rows")
    desk.give("Of which one can it still not tell?", "list", "--state", "UNKNOWN")


def _all_due(stack: Stack) -> bool:
    """Tell whether the next turn of every row in doubt has come."""
    now_ms = time.time_ns() // 1_000_000
    rows = stack.scan_rows()
    return all(row["due_at"] <= now_ms for row in rows if row["state"] == "UNKNOWN")


def _only_sought(desk: Desk, stack: Stack) -> bool:
    unknown = {row["guid"] for row in stack.scan_rows() if row["state"] == "UNKNOWN"}
    if unknown == {SOUGHT.guid}:
        return True
    desk.read("resolve")
    return False


def _attest(desk: Desk, core: CoreControl) -> bytes:
    """Put the core's own answer into the row: one person proposes it, another approves."""
    answer = answer_of(_outcome(core.journal(SOUGHT.guid)[0])).body
    (desk.folder / ANSWER).write_bytes(answer)
    proposed = desk.act(
        "The core's owner has found it in the books, and hands over the answer that the core gave.",
        *(ALICE, "the owner of the core found it in the books"),
        *("attest", "executed", SOUGHT.guid, "--answer", ANSWER),
    )
    desk.give("With `FourEyes` that only proposes; it waits for a second person.", "proposals")
    approval = ("approve", _proposal_of(proposed))
    desk.act(
        "Whoever proposed cannot approve: that is refused.", ALICE, "in a hurry", *approval, code=NO
    )
    desk.act(
        "The second person looks at the same evidence, and approves.",
        *(BOB, "the answer bears the GUID and the reference of the books", *approval),
    )
    return answer


def _outcome(execution: Execution) -> Outcome:
    return Outcome(execution.guid, execution.code, execution.reference)


def _proposal_of(said: Said) -> str:
    """Return the id that a proposal got."""
    found = re.search(r"\bp-[0-9a-f]+", said.out)
    if found is None:
        raise IncidentError(f"nothing was proposed: {said.text}")
    return found[0]


def _send_what_waits(desk: Desk, stack: Stack) -> None:
    desk.give("Hint again at what has not been sent yet, instead of waiting.", "reprocess")
    left = {ASKED.guid, LEFT.guid}
    _until(lambda: _is_drained(desk, stack, left), _DRAINED_S, "rows that wait are not sent")
    desk.give("What is left that was not sent?", "list", "--state", "FAILED")


def _is_drained(desk: Desk, stack: Stack, left: set[str]) -> bool:
    if _open(stack) <= left:
        return True
    desk.read("reprocess")
    return False


def _open(stack: Stack) -> set[str]:
    return {row["guid"] for row in stack.scan_rows() if row["state"] != "DONE"}


def _settle_the_rest(desk: Desk) -> None:
    """Send what is still wanted, end what is not."""
    desk.act(
        "The customer still wants his: a new validity, new attempts; the function sends it.",
        *(ALICE, "the customer still wants it", "redrive", ASKED.guid),
    )
    proposed = desk.act(
        "The other one has gone, and pays elsewhere: end it, so that nobody sends it any more.",
        *(ALICE, "the customer has gone", "close", LEFT.guid),
    )
    desk.act("That, too, takes two.", BOB, "asked at the branch", "approve", _proposal_of(proposed))


def _look_again(desk: Desk, stack: Stack) -> None:
    _until(lambda: not _open(stack), _DRAINED_S, "rows are still open")
    desk.give("Is anything open, or in doubt?", "stats")
    desk.give("And who has done what to the one that was sought?", "show", SOUGHT.guid)


def _until(is_so: Callable[[], bool], within_s: float, fault: str) -> None:
    ends = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > ends:
            raise IncidentError(fault)
        time.sleep(_POLL_S)

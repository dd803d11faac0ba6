"""What is true after the prepared incident: the core's own journal against what the hub told.

The rule it protects: the truth comes from the core's files and balances, never from the hub.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local.core_client import CoreControl
from local.core_ledger import Execution, read_journal
from local.incident_acts import Found
from local.incident_story import ALL, PAYER, Incident
from local.stack import Stack

OPERATOR_LOG: Final = "OperatorLogGroup"
_CHANNELS: Final = {each.guid: each.channel for each in ALL}

Sums = dict[tuple[str, str], tuple[int, int]]  # Rows and money by channel and currency.


@dataclass(frozen=True)
class Truth:
    """Both sides of each comparison."""

    told_in_doubt: Sums
    journal_in_doubt: Sums
    ends: Mapping[str, tuple[str, str]]  # State and code by GUID.
    executed: Counter[str]
    balances: Mapping[str, int]
    balances_due: Mapping[str, int]
    leaks: tuple[str, ...]

    def faults(self) -> Iterator[str]:
        """Say what does not agree."""
        if self.told_in_doubt != self.journal_in_doubt:
            yield f"in doubt: told {self.told_in_doubt}, executed {self.journal_in_doubt}"
        if open_guids := [guid for guid, (state, _) in self.ends.items() if state != "DONE"]:
            yield f"still open: {', '.join(open_guids)}"
        if doubles := [guid for guid, count in self.executed.items() if count > 1]:
            yield f"executed more than once: {', '.join(doubles)}"
        if self.executed.keys() != {guid for guid, end in self.ends.items() if end[1] == "0000"}:
            yield "the ledger calls others executed than the core has executed"
        if self.balances != self.balances_due:
            yield "the balances are not those of the journal"
        yield from (f"in a log: {each}" for each in self.leaks)


def look(stack: Stack, core: CoreControl, incident: Incident, found: Found) -> Truth:
    """Return what is true now."""
    journal = read_journal(stack.journal)
    rows = {row["guid"]: row for row in stack.scan_rows() if row["guid"] in _CHANNELS}
    return Truth(
        told_in_doubt=_told(found.in_doubt),
        journal_in_doubt=_summed(each for each in journal if each.guid in found.unknown),
        ends={guid: (row["state"], row["code"]) for guid, row in rows.items()},
        executed=Counter(each.guid for each in journal),
        balances=core.accounts(),
        balances_due=_moved(incident.opening, journal),
        leaks=tuple(_leaks(stack)),
    )


def _told(lines: list[dict[str, Any]]) -> Sums:
    return {(each["channel"], each["currency"]): (each["rows"], int(each["sum"])) for each in lines}


def _summed(journal: Iterable[Execution]) -> Sums:
    sums: Sums = {}
    for each in journal:
        key = (_CHANNELS[each.guid], each.currency)
        rows, total = sums.get(key, (0, 0))
        sums[key] = (rows + 1, total + each.amount)
    return sums


def _moved(opening: Mapping[str, int], journal: Iterable[Execution]) -> dict[str, int]:
    balances = dict(opening)
    for each in journal:
        balances[each.source] -= each.amount
        balances[each.target] += each.amount
    return balances


def _leaks(stack: Stack) -> Iterator[str]:
    """Name each amount, reference or payer's datum that stands in a log, and the log."""
    for group in (*stack.log_groups(), stack.name_of(OPERATOR_LOG)):
        for line in stack.operator.lines_of(group):
            if found := told_in(line):
                yield f"{group.rpartition('/')[2]}: {found}"


def told_in(line: str) -> str | None:
    """Return what the line tells of a request's money or payer; None where it tells nothing."""
    found = _TOLD.search(line)
    return found[0] if found else None


_AMOUNTS: Final = "|".join(form for each in ALL for form in (str(each.amount), f"{each.amount:,}"))
_TEXTS: Final = "|".join(map(re.escape, (*PAYER.values(), *(each.reference for each in ALL))))
# An amount on its own: no part of a time, an id or a longer number.
_TOLD: Final = re.compile(rf"(?<![\w.-])(?:{_AMOUNTS})(?![\w-]|\.\d*[1-9])|{_TEXTS}")

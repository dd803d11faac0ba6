"""The table of truth: what was sent, against the ledger's rows and the core's own journal. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from local.core_ledger import EXECUTED_CODE, Execution
from tests.chaos.book import Told
from tests.chaos.plan import Transfer

# These say that nothing was accepted, or are no word of the hub's at all.
_PROMISES_NOTHING: Final = frozenset({"E904", "E905", "E906", "E907"})
_SETTLED: Final = re.compile(r"0000|B2\d\d|E500|E908")
OPEN: Final = ("RECEIVED", "SENT", "UNKNOWN")


def is_settled(code: str | None) -> bool:
    """Tell whether the code says for good what became of the request."""
    return code is not None and _SETTLED.fullmatch(code) is not None


@dataclass(frozen=True)
class Evidence:
    """What is known at the end, from four sides: the channels, the queues, the ledger, the core."""

    sent: Mapping[str, Transfer]
    told: Sequence[Told]
    messages: Collection[str]  # GUIDs of the messages that the intake queue took.
    left: int  # Messages that are in the queue still, or among its dead letters.
    aside: Collection[str]  # GUIDs of the messages that were put aside.
    rows: Sequence[Mapping[str, Any]]
    journal: Sequence[Execution]
    opening: int  # Each account's balance before the run.
    balances: Mapping[str, int]


@dataclass(frozen=True)
class Truth:
    """What the evidence comes to."""

    evidence: Evidence
    _rows: Mapping[str, Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        rows = {str(row["guid"]): row for row in self.evidence.rows}
        object.__setattr__(self, "_rows", rows)

    @cached_property
    def executed(self) -> Counter[str]:
        """How often the core executed each GUID, by its own journal."""
        return Counter(each.guid for each in self.evidence.journal)

    @cached_property
    def doubles(self) -> dict[str, int]:
        """GUIDs that were executed more than once, and how often."""
        return {guid: count for guid, count in self.executed.items() if count > 1}

    @cached_property
    def lost(self) -> tuple[str, ...]:
        """GUIDs that were answered with a code, or acknowledged, and have no row."""
        promised = {
            each.guid
            for each in self.evidence.told
            if each.code is not None and each.code not in _PROMISES_NOTHING
        }
        # With messages left in the queue nobody can say which; they count as open instead.
        taken = set() if self.evidence.left else set(self.evidence.messages)
        return tuple(sorted((promised | taken - set(self.evidence.aside)) - self._rows.keys()))

    @cached_property
    def unrecorded(self) -> tuple[str, ...]:
        """GUIDs that were sent and have no row, rightly or not."""
        return tuple(sorted(self.evidence.sent.keys() - self._rows.keys()))

    @cached_property
    def states(self) -> Counter[str]:
        """The rows by state."""
        return Counter(str(row["state"]) for row in self.evidence.rows)

    @cached_property
    def codes(self) -> Counter[str]:
        """The DONE rows by code."""
        done = (row for row in self.evidence.rows if row["state"] == "DONE")
        return Counter(str(row.get("code")) for row in done)

    @cached_property
    def waiting(self) -> Counter[str]:
        """The rows that wait for a person, by why."""
        return Counter(
            f"{flag}: {row[flag]}"
            for row in self.evidence.rows
            for flag in ("parked", "hold")
            if row.get(flag)
        )

    @cached_property
    def open(self) -> tuple[str, ...]:
        """GUIDs of rows whose outcome is open still."""
        return tuple(guid for guid, row in self._rows.items() if row["state"] in OPEN)

    @property
    def open_count(self) -> int:
        """How many outcomes are open: rows, and messages that nobody has taken."""
        return len(self.open) + self.evidence.left

    @cached_property
    def unlike(self) -> tuple[str, ...]:
        """GUIDs that are DONE(0000) and not in the journal, or the other way round."""
        done = {
            guid
            for guid, row in self._rows.items()
            if row["state"] == "DONE" and row.get("code") == EXECUTED_CODE
        }
        return tuple(sorted(done ^ set(self.executed)))

    @cached_property
    def strangers(self) -> tuple[str, ...]:
        """GUIDs in the ledger or the journal that nobody has sent."""
        return tuple(sorted((self._rows.keys() | self.executed.keys()) - self.evidence.sent.keys()))

    @cached_property
    def contradicted(self) -> tuple[str, ...]:
        """GUIDs of which a channel was told for good what is not so."""
        return tuple(
            sorted(
                {
                    each.guid
                    for each in self.evidence.told
                    if is_settled(each.code) and not self._bears_out(each)
                }
            )
        )

    def _bears_out(self, told: Told) -> bool:
        row = self._rows.get(told.guid)
        return row is not None and row["state"] == "DONE" and row.get("code") == told.code

    @cached_property
    def by_journal(self) -> dict[str, int]:
        """The balances that the journal comes to."""
        return self._balances((each.source, each.target, each.amount) for each in self.journal)

    @property
    def journal(self) -> Sequence[Execution]:
        """The core's journal."""
        return self.evidence.journal

    @cached_property
    def by_ledger(self) -> dict[str, int]:
        """The balances that the DONE rows come to, with what the channels sent."""
        moved = (
            self.evidence.sent[guid]
            for guid, row in self._rows.items()
            if row["state"] == "DONE"
            and row.get("code") == EXECUTED_CODE
            and guid in self.evidence.sent
        )
        return self._balances((each.source, each.target, each.amount) for each in moved)

    def _balances(self, moves: Any) -> dict[str, int]:
        balances = dict.fromkeys(self.evidence.balances, self.evidence.opening)
        for source, target, amount in moves:
            balances[source] -= amount
            balances[target] += amount
        return balances

    @property
    def balances_agree(self) -> bool:
        """Whether the core's accounts, its journal and the ledger say the same."""
        return self.evidence.balances == self.by_journal == self.by_ledger

    @property
    def suspects(self) -> tuple[str, ...]:
        """Every GUID of which something is wrong."""
        wrong = (self.doubles, self.lost, self.open, self.unlike, self.strangers, self.contradicted)
        return tuple(dict.fromkeys(guid for guids in wrong for guid in guids))

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.suspects and not self.evidence.left and self.balances_agree

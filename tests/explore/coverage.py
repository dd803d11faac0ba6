"""What a run has met: the calls and how they ended, the steps of the rows, the ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Coverage:
    """Counts, which add up over processes."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)  # Call, how it ended.
    steps: Counter[tuple[str, str | None]] = field(default_factory=Counter)  # Event, state before.
    ends: Counter[str] = field(default_factory=Counter)  # How the rows stood at the end.
    told: Counter[str] = field(default_factory=Counter)  # The codes.
    faults: dict[str, set[str]] = field(default_factory=dict)  # By call: how it may go wrong.

    def met(self, call: str, how: str, faults: tuple[str, ...]) -> None:
        """Count a call and how it ended, out of which."""
        self.calls[call, how] += 1
        known = self.faults.get(call)
        if known is None:
            self.faults[call] = set(faults)
        else:
            known.update(faults)

    def add(self, other: Coverage) -> None:
        """Add what another process has met."""
        self.calls += other.calls
        self.steps += other.steps
        self.ends += other.ends
        self.told += other.told
        for call, faults in other.faults.items():
            self.faults.setdefault(call, set()).update(faults)

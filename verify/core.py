"""The core as the grader sees it: its faults, and the truth about what it read and executed.

Each scenario's faults name its own GUIDs, so that those of a scenario that waits stay in force
while another one is played. A fault of the port strikes everybody, and never outlasts a wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from local.core_client import CoreControl
from local.core_ledger import Execution

Rule = Mapping[str, object]

# Kinds that strike before a GUID is read.
_FOR_ALL: Final = frozenset({"refuse", "accept_nothing", "reset_on_connect"})


class Core:
    """Sets faults by owner and counts what became of a GUID."""

    def __init__(self, control: CoreControl) -> None:
        """Talk to the core's control port, which its owner closes."""
        self._control = control
        self._rules: dict[str, list[Rule]] = {}

    def set_faults(self, owner: str, *rules: Rule) -> None:
        """Put the owner's rules in force, in the place of those that it had."""
        self._rules[owner] = list(rules)
        self.put()

    def heal(self, owner: str) -> None:
        """Take the owner's faults away; nothing is asked of the core where there are none."""
        if self._rules.pop(owner, None):
            self.put()

    def heal_port(self, owner: str) -> None:
        """Take away those of the owner's faults that strike everybody."""
        own = self._rules.get(owner, [])
        kept = [rule for rule in own if rule["kind"] not in _FOR_ALL]
        if kept != own:
            self.set_faults(owner, *kept)

    def put(self) -> None:
        """Put the faults of all owners in force; a core that was started anew has forgotten."""
        self._control.set_faults([rule for rules in self._rules.values() for rule in rules])

    def clear(self) -> None:
        """Leave the core without faults."""
        self._rules.clear()
        self._control.clear()

    def executed(self, *spellings: str) -> int:
        """Return how often a GUID was executed, over all its spellings."""
        return sum(len(self._control.journal(guid)) for guid in spellings)

    def executions(self, guid: str = "") -> list[Execution]:
        """Return the executions of a GUID, or all of them."""
        return self._control.journal(guid)

    def received(self, *spellings: str) -> int:
        """Return how often the core read a whole request with the GUID."""
        return sum(len(self._control.received(guid)) for guid in spellings)

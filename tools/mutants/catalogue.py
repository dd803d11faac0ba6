"""All mutants, in which order the tests are tried on them, and which of them nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.mutants import named, walk
from tools.mutants.patch import Mutant, MutantError, mutated

# Tests that read the source, the docs or the template, or that start other programs than the hub's
# functions: they would notice a mutant as text, or not at all.
_NO_CHECKS: Final = (
    *("test_layers", "test_docs", "test_template", "test_package", "test_runbook"),
    *("test_closing", "test_mutants", "test_cli", "test_local"),
)

# Which check killed which mutant last time: an order of trial, and nothing that counts.
_KILLERS: Final = "tools/mutants/killers.txt"
_KILLERS_HEAD: Final = (
    "# Tried first, mutant by mutant. Made by `python -m tools.mutants --remember`."
)

# What most likely misses a guard of a module, by its name; a mutant may name others.
_FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "core": ("test_core_line", "test_core_request", "test_core_unsent", "test_core_close"),
    "wire": ("test_core_faults", "test_core_close", "test_core_answers", "test_core_unsent"),
    "judgement": ("test_core_answers", "test_core_inquiry"),
    "dynamo": ("test_dynamo",),
    "ledger": (
        "test_ledger_conditions",
        "test_touched",
        "test_ledger",
        "test_ledger_history",
        "test_relay_claim",
    ),
    "expressions": ("test_ledger_history", "test_ledger"),
    "upkeep": ("test_purger_expiry", "test_reprocessor_gate", "test_resolver_run", "test_purger"),
    "row": ("test_row", "test_reprocessor", "test_relay_resends"),
    "states": ("test_states", "test_replies"),
    "replies": ("test_replies",),
    "settings": ("test_settings", "test_age_guard"),
    "guids": ("test_guids",),
    "message": ("test_message", "test_fingerprint"),
    "answers": ("test_answers",),
    "queues": ("test_queues",),
    "relay": (
        "test_relay",
        "test_circuit",
        "test_relay_resends",
        "test_relay_doubted",
        "test_relay_claim",
    ),
    "attempt": (
        "test_relay_late",
        "test_circuit",
        "test_touched",
        "test_relay_late_unsent",
        "test_relay_results",
        "test_relay",
    ),
    "steps": ("test_resolver_bounds", "test_relay_resends", "test_age_guard", "test_resolver"),
    "cancel": ("test_cancel", "test_cancel_races"),
    "accept": ("test_accept", "test_accept_messages", "test_accept_races"),
    "intake": ("test_messages", "test_messages_rejects", "test_messages_rows"),
    "message_event": ("test_message_event", "test_message_event_times", "test_messages_kafka"),
    "messages": ("test_messages_handler", "test_messages", "test_messages_kafka"),
    "handler": ("test_handler", "test_accept", "test_validity"),
    "resolve": ("test_resolver", "test_circuit", "test_resolver_bounds", "test_resolver_proof"),
    "reprocess": (
        "test_reprocessor",
        "test_circuit",
        "test_reprocessor_claim",
        "test_reprocessor_sweep",
    ),
    "controls": ("test_controls", "test_circuit", "test_circuit_hub"),
    "circuit": ("test_circuit", "test_circuit_hub"),
    "operate": ("test_operate_table", "test_operate_races", "test_touched"),
    "proposals": ("test_proposals",),
    "purge": ("test_purger", "test_purger_repairs", "test_purger_expiry"),
}

# Guards that no run can miss, since another one covers them: kept for the day when it is gone.
# They are told apart and do not count, unless a check does tell them.
EQUIVALENT: Final[Mapping[str, str]] = {
    "upkeep.set_aside.guid": "a row that is not there has no due_at, which the write compares",
    "reprocess.sweep-sends": "the hint looks again, and the turn is then the end of validity",
    "relay.same-operation": "the fingerprint covers the operation",
    "attempt.fenced-schema": "each write's own term on schema refuses, and the answer is the same",
    "core.no-connect": "a socket is there before anything is sent, and one request goes over it",
    "wire.oversized-declared": "the body that is then read is found too large as well",
    "attempt.unsent-held": "each write's own term on hold refuses, and the answer is the same",
}


def mutants(root: Path) -> list[Mutant]:
    """Return every mutant of the source, each under its own name. Raises MutantError."""
    found = [*walk.walk(root), *named.read(root)]
    names = [each.name for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MutantError(f"two mutants of one name: {', '.join(twice)}")
    if unknown := sorted(EQUIVALENT.keys() - set(names)):
        raise MutantError(f"no such mutant, so it is not equivalent: {', '.join(unknown)}")
    for each in found:
        mutated(each, (root / each.path).read_text())
    return [replace(each, first=each.first or _FIRST.get(_stem(each), ())) for each in found]


def selection(root: Path) -> list[str]:
    """Return the test files that can tell a guard, as paths from the root."""
    return [
        path.relative_to(root).as_posix()
        for folder in ("unit", "integration")
        for path in sorted((root / "tests" / folder).glob("test_*.py"))
        if not path.stem.startswith(_NO_CHECKS)
    ]


def order(mutant: Mutant, files: list[str]) -> tuple[list[str], list[str]]:
    """Return the files that are tried first, in the mutant's order, and the rest."""
    by_stem = {Path(each).stem: each for each in files}
    first = [by_stem[stem] for stem in mutant.first if stem in by_stem]
    return first, [each for each in files if each not in first]


def known_killers(root: Path) -> dict[str, str]:
    """Return the check that killed each mutant last time: it is tried first, and may be stale."""
    path = root / _KILLERS
    lines = path.read_text().splitlines() if path.is_file() else []
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def remember(root: Path, killers: Mapping[str, str]) -> None:
    """Keep the checks that killed, for the next time; those of other mutants stay."""
    names = {each.name for each in mutants(root)}
    found = known_killers(root) | {name: each.partition("[")[0] for name, each in killers.items()}
    lines = [f"{name} {found[name]}" for name in sorted(found) if name in names]
    (root / _KILLERS).write_text("\n".join((_KILLERS_HEAD, *lines, "")))


def is_there(root: Path, test: str) -> bool:
    """Tell whether the file still has a test function of that name."""
    file, _, name = test.partition("::")
    path = root / file
    return bool(name) and path.is_file() and f"def {name}(" in path.read_text()


def _stem(mutant: Mutant) -> str:
    return Path(mutant.path).stem

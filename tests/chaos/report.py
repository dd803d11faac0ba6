"""What a run prints, and the evidence that it keeps of whatever was wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from local.core_ledger import execution_record, read_received
from local.stack import Stack
from tests.chaos.logs import log_about
from tests.chaos.plan import Plan, Way

if TYPE_CHECKING:
    from tests.chaos.play import Outcome

_SHOWN_MAX: Final = 10
_KEPT_MAX: Final = 50


def opening_line(plan: Plan, clients: int) -> str:
    """Say what is about to be played, and by which seed."""
    return (
        f"seed {plan.seed}: {len(plan.acts)} acts in {len(plan.steps)} steps,"
        f" {len(plan.strikes)} strikes, {clients} clients.\n"
        "The seed gives the same GUIDs, duplicates, faults of the core and strikes again; when each"
        " of them happens is up to the machine."
    )


def show(console: Console, outcome: Outcome, kept: Path | None) -> None:
    """Print what was done, and the table of truth."""
    console.print(_done_table(outcome))
    console.print(_truth_table(outcome))
    console.print(_balances_table(outcome))
    if outcome.unsent:
        console.print(f"The time was up: {outcome.unsent} acts were not sent.")
    if kept is not None:
        console.print(f"What is known of the GUIDs in question: {kept}")
    console.print(outcome.last_line())


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    table.columns[-1].justify = "left"
    return table


def _done_table(outcome: Outcome) -> Table:
    table = _table("What was done", "what", "count", "of which")
    book, ways = outcome.book, Counter(act.way for act in outcome.plan.acts)
    table.add_row("requests", str(len(book.told)), listed(Counter(each.does for each in book.told)))
    table.add_row("answers", str(len(book.told)), listed(book.codes()))
    table.add_row("messages", str(len(book.messages)), f"{ways[Way.MESSAGE]} acts")
    table.add_row(
        "kills",
        str(outcome.kills.count),
        f"{listed(outcome.kills.by_function())}; {len(outcome.in_core)} of them while the core had"
        " the request",
    )
    dropped = outcome.proxy.dropped()
    table.add_row("replies dropped", str(dropped.total()), listed(dropped))
    others = outcome.proxy.others()
    table.add_row("other faults of AWS", str(others.total()), listed(others))
    core = outcome.core_faults
    table.add_row("faults of the core", str(core.total()), listed(core))
    table.add_row("seconds", f"{outcome.load_s + outcome.settle_s:.0f}", _seconds(outcome))
    return table


def _seconds(outcome: Outcome) -> str:
    rate = len(outcome.book.sent) / outcome.load_s
    return f"{outcome.load_s:.0f} load ({rate:.0f} acts/s), {outcome.settle_s:.0f} until settled"


def _truth_table(outcome: Outcome) -> Table:
    truth, plan = outcome.truth, outcome.plan
    table = _table("The table of truth", "GUIDs", "count", "of which")
    ways = Counter(plan.by_guid[guid].way.value for guid in outcome.book.sent)
    table.add_row("sent", str(len(outcome.book.sent)), listed(ways))
    table.add_row("executed", str(len(truth.executed)), f"{len(truth.journal)} executions")
    table.add_row("DONE", str(truth.states["DONE"]), listed(truth.codes))
    for state in ("FAILED", "UNKNOWN", "SENT", "RECEIVED"):
        table.add_row(state, str(truth.states[state]), "")
    unrecorded = len(truth.unrecorded)
    table.add_row("no row", str(unrecorded), "nothing was promised, or see below")
    table.add_row("parked, held", str(truth.waiting.total()), listed(truth.waiting))
    aside = truth.evidence.aside
    table.add_row("put aside", str(len(aside)), f"messages; {truth.evidence.left} left in a queue")
    alarms = Counter(str(each["message"]) for each in outcome.alarms)
    table.add_row("alarms that a limit is wrong", str(alarms.total()), listed(alarms))
    _add_wrong(table, "doubles", [f"{guid} x {n}" for guid, n in truth.doubles.items()])
    _add_wrong(table, "lost", truth.lost)
    _add_wrong(table, "open", truth.open)
    _add_wrong(table, "DONE(0000) or executed, not both", truth.unlike)
    _add_wrong(table, "told for good what is not so", truth.contradicted)
    _add_wrong(table, "sent by nobody", truth.strangers)
    return table


def _add_wrong(table: Table, what: str, guids: Iterable[str]) -> None:
    found = list(guids)
    shown = ", ".join(found[:_SHOWN_MAX])
    table.add_row(what, str(len(found)), shown, style="red" if found else None)


def _balances_table(outcome: Outcome) -> Table:
    truth = outcome.truth
    word = "agree" if truth.balances_agree else "DO NOT AGREE"
    table = _table(
        f"The balances {word}", "account", "the core's", "by its journal", "by the DONE rows"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    core, journal, ledger = truth.evidence.balances, truth.by_journal, truth.by_ledger
    for name, balance in core.items():
        table.add_row(name, f"{balance:,}", f"{journal[name]:,}", f"{ledger[name]:,}")
    sums = (f"{sum(each.values()):,}" for each in (core, journal, ledger))
    table.add_row("all", *sums, style="bold")
    return table


def listed(counts: Mapping[str, int]) -> str:
    """Return the counts in words, the largest first."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {name}" for name, count in ordered if count)


def keep_evidence(stack: Stack, outcome: Outcome, folder: Path) -> Path | None:
    """Write down all that is known of the GUIDs of which something is wrong; None if none is."""
    alarmed = (str(each.get("guid")) for each in outcome.alarms)
    suspects = list(dict.fromkeys([*outcome.truth.suspects, *alarmed]))[:_KEPT_MAX]
    if not suspects:
        return None
    receipts = read_received(stack.journal)
    path = folder / f"evidence-{outcome.plan.seed}.json"
    known = {guid: _known(stack, outcome, guid, receipts) for guid in suspects}
    kills = [vars(each) for each in outcome.kills.kills]
    path.write_text(json.dumps({"kills": kills, "guids": known}, default=repr, indent=1))
    return path


def _known(stack: Stack, outcome: Outcome, guid: str, receipts: Iterable[Any]) -> dict[str, Any]:
    evidence = outcome.truth.evidence
    return {
        "act": repr(outcome.plan.by_guid.get(guid)),
        "told": [vars(each) for each in evidence.told if each.guid == guid],
        "messages": list(evidence.messages).count(guid),
        "row": next((row for row in evidence.rows if row["guid"] == guid), None),
        "received": [vars(each) for each in receipts if each.guid == guid],
        "journal": [execution_record(each) for each in evidence.journal if each.guid == guid],
        "log": log_about(stack, guid),
    }

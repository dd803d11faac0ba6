"""A guard that nobody tries is one that nobody misses: the walk finds every one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from relayhub.controls import Controls, Job, Switch
from relayhub.ledger import Ledger
from relayhub.proposals import Proposal, Proposals
from relayhub.row import HISTORY_MAX
from relayhub.settings import RELATIONS
from relayhub.states import STEPS, Event
from relayhub.upkeep import Due, Upkeep
from tests.maintenance import failed_row
from tools.mutants.patch import MutantError, mutated
from tools.mutants.source import Source
from tools.mutants.walk import walk, walk_source

ROOT: Final = Path(__file__).parents[2]
WALKED: Final = [each.name for each in walk(ROOT)]
NO_HISTORY: Final = {Event.BACKED_OFF, Event.PROCESSING_SEEN}  # They leave it as it is.


def made(source: str) -> list[str]:
    """Return what the walk makes of a module: the changed lines, one text per mutant."""
    found = walk_source(Source("relayhub/new.py", source))
    return [mutated(each, source) for each in found]


class Recorder:
    """A client that keeps the conditions of the writes; nothing else happens."""

    def __init__(self) -> None:
        self.terms = 0

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        """Return the operation."""
        del name

        def call(**request: Any) -> dict[str, Any]:
            if "ConditionExpression" in request:
                self.terms += len(request["ConditionExpression"].split(" AND "))
            return {"Attributes": {"strikes": {"N": "1"}}}

        return call


def conditions_of_the_ledger() -> dict[tuple[Event, str], int]:
    """Return how many terms each step's write has, by event and who makes it."""
    counts = {}
    for by in ("relay", "resolver"):
        for step in STEPS:
            if step.source is None or step.target is None:
                continue
            client = Recorder()
            ledger = Ledger(client, "t", shards=1, on_step=lambda *_: None)
            row = replace(failed_row("G", 0), state=step.source, history=({},) * HISTORY_MAX)
            ledger.move(row, step.event, by, 0, hold=None)
            counts[step.event, by] = client.terms
    return counts


def test_every_term_that_the_ledger_sends_has_its_mutant() -> None:
    """Counted at the client: what each step's write demands is walked, and no more than that."""
    counts = conditions_of_the_ledger()
    fence = sum(name.startswith("ledger._fence.") for name in WALKED)
    history = sum(name.startswith("ledger._history_as_read.") for name in WALKED)
    own = {(Event.CLAIMED, "relay"): 1, (Event.CLAIMED, "resolver"): 2}
    own |= {(Event.EXPIRED, "relay"): 1, (Event.EXPIRED, "resolver"): 1}
    for (event, by), count in counts.items():
        stopped = sum(name.startswith(f"ledger._STOPPED_BY.{event}.") for name in WALKED)
        kept = 0 if event in NO_HISTORY else history
        assert count == fence + kept + stopped + own.get((event, by), 0), (event, by)
    assert sum(name.startswith("ledger._guards.") for name in WALKED) == 3
    assert WALKED.count("ledger.create.guid") == 1


def test_every_term_that_the_jobs_send_has_its_mutant() -> None:
    """Counted at the client, over all conditional writes of the jobs."""
    client = Recorder()
    upkeep = Upkeep(client, "t", now_ms=lambda: 0, skew_s=5)
    upkeep.set_aside(Due(0, "G"), 1)
    upkeep.delete_expired("G", 0)
    upkeep.take_probe(0, 1)
    upkeep.close_gate(1)
    assert client.terms == sum(name.startswith("upkeep.") for name in WALKED)


def test_every_term_that_switches_and_proposals_send_has_its_mutant() -> None:
    """Counted at the client, over all their conditional writes."""
    client = Recorder()
    controls, switch = Controls(client, "t", now_ms=lambda: 0), Switch("alice", "why", 0)
    controls.close_core(switch)
    controls.open_core()
    controls.hold_job(Job.RESOLVER, switch)
    controls.release_job(Job.RESOLVER)
    controls.strike(1, 0, "why")
    controls.take_probe(0, 1)
    controls.reopen()
    controls.bind_scope("global")
    proposals = Proposals(client, "t")
    proposals.take(Proposal("P", "close", (), "alice", "why", 0, 1))
    walked = ("controls.", "proposals.")
    assert client.terms == sum(name.startswith(walked) for name in WALKED)


def test_every_condition_in_the_source_is_one_of_those() -> None:
    """Counted in the text: a new one, wherever it is made, makes these numbers differ."""
    text = {path.name: path.read_text() for path in (ROOT / "relayhub").rglob("*.py")}
    written = [name for name, each in text.items() for _ in re.findall('"ConditionExp', each)]
    assert sorted(written) == [
        *["controls.py"] * 4,
        "expressions.py",
        "ledger.py",
        "proposals.py",
        *["upkeep.py"] * 3,
    ]
    makers = re.compile(r"\b(?:Condition|equals|absent)\(")
    made_of = {
        name: len(makers.findall(each)) for name, each in text.items() if makers.search(each)
    }
    # Their three makers, one made of another; and one call for all the words of a table.
    assert made_of.keys() == {"expressions.py", "ledger.py"}
    by_call = [each for each in WALKED if re.match(r"ledger\._(fence|history|guards)", each)]
    assert made_of["ledger.py"] == len(by_call) + 1


def test_every_relation_between_settings_has_its_mutant() -> None:
    """One relation each, those that are made in a loop included."""
    assert sum(name.startswith("settings.RELATIONS.") for name in WALKED) == len(RELATIONS)


@pytest.mark.parametrize(
    ("source", "without"),
    [
        pytest.param(
            'def f(row):\n    return (equals("a", 1), absent("b"))\n',
            ['(*(), absent("b"))', '(equals("a", 1), *())'],
            id="tuple",
        ),
        pytest.param('def f(x):\n    x.append(absent("é"))\n', ["    pass\n"], id="appended"),
        pytest.param(
            'T: Final = {E.A: ("a", "b")}\ndef f(e):\n    return [absent(n) for n in T.get(e)]\n',
            ['{E.A: (*(), "b")}', '{E.A: ("a", *())}'],
            id="table",
        ),
        pytest.param(
            'r = {"ConditionExpression": "a = :a AND #b < :b",'
            ' "N": {"#b": "b"}, "V": {":a": 1, ":b": 2}}\n',
            [
                '{"ConditionExpression": "#b < :b", "N": {"#b": "b"}, "V": {**{}, ":b": 2}}',
                '{"ConditionExpression": "a = :a", "N": {**{}}, "V": {":a": 1, **{}}}',
            ],
            id="written-out",
        ),
        pytest.param(
            'r = {"ConditionExpression": "a = :a", "Up": "SET b = :a", "V": {":a": 1}}\n',
            ['{**{}, "Up": "SET b = :a", "V": {":a": 1}}'],
            id="placeholder-used-elsewhere",
        ),
        pytest.param(
            'def put(c, v):\n    r = {"ConditionExpression": c, **v}\n'
            'def g():\n    put("a = :a", {":a": 1})\n',
            ['put("attribute_exists(guid) OR attribute_not_exists(guid)", {**{}})'],
            id="passed-in",
        ),
        pytest.param(
            'RELATIONS: Final = (Relation(("a",), f), *(Relation((n, "c"), f) for n in ("d",)))',
            ['(*(), *(Relation((n, "c"), f) for n in ("d",)))', "for n in (*(),)"],
            id="relations",
        ),
    ],
)
def test_a_new_guard_has_a_mutant_by_itself(source: str, without: list[str]) -> None:
    """Whatever its form, it is taken out alone."""
    found = made(source)
    assert len(found) == len(without)
    for text, expected in zip(found, without, strict=True):
        assert expected in text


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('def f():\n    return absent("a")\n', id="returned"),
        pytest.param("def f(n):\n    return (absent(n),)\n", id="attribute-not-named"),
        pytest.param('x = [absent(n) for n in ("a", "b")]\n', id="no-table"),
        pytest.param('ask(ConditionExpression="a = :a")\n', id="by-keyword"),
        pytest.param('r = {"ConditionExpression": f"a = {b}"}\n', id="made-up"),
        pytest.param(
            'def put(c):\n    r = {"ConditionExpression": c}\ndef g(d):\n    put(d)\n',
            id="handed-on",
        ),
        pytest.param('r = {"ConditionExpression": "a = :a AND b"}\n', id="placeholder-missing"),
    ],
)
def test_a_guard_that_cannot_be_taken_out_is_an_error(source: str) -> None:
    """None goes untried because of the way it is written."""
    with pytest.raises(MutantError, match=r"relayhub/new\.py:\d+: .*walk\.py"):
        made(source)

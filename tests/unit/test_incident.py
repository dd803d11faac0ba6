"""The prepared incident's judge sees what is wrong, and the runbook's transcript can be typed."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from cli.app import app
from local.incident_acts import ANSWER
from local.incident_desk import PROGRAM, Said
from local.incident_page import BEGIN, END, shortened, transcript, written
from local.incident_story import ALL, EXECUTED, REFUSED, SILENT
from local.incident_truth import Truth, told_in

RUNBOOK: Final = Path(__file__).parents[2] / "docs/runbook.md"
RIGHT: Final = Truth(
    told_in_doubt={("atm", "JPY"): (1, 500)},
    journal_in_doubt={("atm", "JPY"): (1, 500)},
    ends={"atm-1": ("DONE", "0000"), "atm-2": ("DONE", "E908")},
    executed=Counter(["atm-1"]),
    balances={"A001": 1},
    balances_due={"A001": 1},
    leaks=(),
)


def test_the_incident_is_the_size_that_it_says() -> None:
    """Twenty are silent, thirty refused, one killed; each act has an amount of its own."""
    assert (len(SILENT), len(REFUSED), len(EXECUTED), len(ALL)) == (20, 30, 21, 51)
    assert len({each.amount for each in ALL}) == len({each.guid for each in ALL}) == len(ALL)
    assert len({(each.channel, each.currency) for each in SILENT}) == 4


def test_nothing_is_wrong_where_all_agree() -> None:
    """An end that is right has no fault."""
    assert list(RIGHT.faults()) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"told_in_doubt": {("atm", "JPY"): (1, 499)}}, "in doubt: told"),
        ({"ends": {"atm-1": ("UNKNOWN", "0000")}}, "still open: atm-1"),
        ({"executed": Counter(["atm-1", "atm-1"])}, "executed more than once: atm-1"),
        ({"executed": Counter(["atm-2"])}, "the ledger calls others executed"),
        ({"balances": {"A001": 2}}, "the balances"),
        ({"leaks": ("relay: 500",)}, "in a log: relay: 500"),
    ],
    ids=["a yen", "open", "a double", "another", "a balance", "a log"],
)
def test_each_disagreement_is_told(changes: dict[str, Any], fault: str) -> None:
    """By a sentence of its own."""
    (told,) = replace(RIGHT, **changes).faults()
    assert fault in told


AMOUNT: Final = str(ALL[0].amount)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f'{{"amount": {AMOUNT}}}', AMOUNT),
        (f'{{"sum": "{AMOUNT}.00"}}', AMOUNT),
        (f"moved {AMOUNT[:3]},{AMOUNT[3:]} in all", f"{AMOUNT[:3]},{AMOUNT[3:]}"),
        ("for slip-7001", "slip-7001"),
        ("of Yamada Hanako", "Yamada Hanako"),
        (f'{{"at": 1796{AMOUNT}000}}', None),
        (f"id a{AMOUNT}b", None),
    ],
    ids=["number", "decimal", "grouped", "reference", "payer", "a time", "an id"],
)
def test_what_a_log_must_not_bear_is_seen_in_it(line: str, found: str | None) -> None:
    """However it is written; a longer number is another one."""
    assert told_in(line) == found


def test_a_long_table_is_shortened_and_says_so() -> None:
    """Its beginning and its last line stay, short ones as they are."""
    short, long = "a\nb", "\n".join(map(str, range(20)))
    first, second = shortened(f"{short}\n\n{long}").split("\n\n")
    assert first == short
    assert second.splitlines() == [*map(str, range(8)), "… 11 more lines", "19"]


def test_the_transcript_replaces_what_stood_between_the_marks_alone(tmp_path: Path) -> None:
    """A page without the marks is left as it is."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    said = Said("Why.", ("stats", "--all"), 2, "out\n", "no\n")
    written(page, transcript([said], "How it began."))
    text = page.read_text()
    assert text.startswith(
        f"before\n{BEGIN}\n\nHow it began.\n\nWhy.\n\n```text\n$ {PROGRAM} stats"
    )
    assert text.endswith(f"--all\nout\nno\n(exit code 2)\n```\n\n{END}\nafter\n")
    page.write_text("no marks")
    with pytest.raises(ValueError, match="between"):
        written(page, "x")
    assert page.read_text() == "no marks"


def typed() -> list[str]:
    """Return each command line of the runbook's transcript, without the program."""
    part = RUNBOOK.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    return re.findall(rf"^\$ {PROGRAM} (.+)$", part, re.MULTILINE)


def test_the_transcript_goes_from_the_first_look_to_an_empty_hub() -> None:
    """It begins and ends with the same question, and has every kind of act in between."""
    words = [line.split()[0] for line in typed()]
    assert len(words) > 20
    assert (words[0], words[-2]) == ("stats", "stats")
    acts = {"find", "attest", "approve", "core", "resolve", "redrive", "close", "park"}
    assert acts <= set(words)


@pytest.mark.parametrize("line", dict.fromkeys(typed()))
def test_each_command_of_the_transcript_is_one_that_the_program_parses(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its options and their values; it is not run."""
    (tmp_path / ANSWER).touch()
    monkeypatch.chdir(tmp_path)
    found: Any = get_command(app)
    words = shlex.split(line)
    while isinstance(found, TyperGroup):
        name, *words = words
        found = found.commands[name]
    assert found.make_context(found.name, words).args == []


def test_the_transcript_names_no_machine() -> None:
    """No path, no address and no port of where it was made."""
    part = RUNBOOK.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert not re.search(
        r"(?<![\w/])/(?:home|root|tmp|work|Users|dev)/|127\.0\.0\.1|localhost", part
    )

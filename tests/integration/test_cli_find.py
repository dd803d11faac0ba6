"""`find`: a transaction of which nobody has the GUID; and what all that looks has in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.emulated import refused
from tests.integration.cli_kit import MONEY, Office, open_office, paid
from tests.maintenance import items
from tests.world import World


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack and a person who looks after it."""
    return open_office(world)


@pytest.fixture
def sold(office: Office) -> Office:
    """Return the office with some transactions, a minute apart."""
    office.world.deploy(money_fields=MONEY)
    for guid, amount, currency in (
        ("T-1", "1000.00", "JPY"),
        ("T-2", "1000", "EUR"),
        ("T-3", "999.99", "JPY"),
        ("T-4", "1e3", "JPY"),
    ):
        office.world.post(guid, body=paid(amount, currency, f"ref-{guid}"))
        office.world.clock.advance(60)
    office.world.post("T-5", body=paid('"x"'), channel="app")
    return office


@pytest.mark.parametrize(
    ("words", "guids"),
    [
        (("--amount", "1000"), ["T-1", "T-2", "T-4"]),
        (("--amount", "1000.0", "--currency", "JPY"), ["T-1", "T-4"]),
        (("--amount", "999.99"), ["T-3"]),
        (("--amount", "999.990000000000000000000000001"), []),
        (("--reference", "ref-T-2"), ["T-2"]),
        (("--channel", "app"), ["T-5"]),
        (("--from", "2027-01-15T17:01:00+09:00", "--to", "2027-01-15T08:02:00Z"), ["T-2"]),
        (("--amount", "1000", "--from", "2027-01-15T08:02:00Z"), ["T-4"]),
        (("--amount", "1000", "--limit", "1"), ["T-1"]),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_transaction_is_found_by_what_is_known_of_it(
    sold: Office, words: tuple[str, ...], guids: list[str]
) -> None:
    """Amounts as exact numbers, times with their offset; it says that it saw everything."""
    told = sold.terminal.json("find", *words)
    assert [each["guid"] for each in told["rows"]] == guids
    assert told["scan"]["complete"]
    assert told["unreadable"] == []


def test_what_a_find_costs_is_bounded_and_told(sold: Office) -> None:
    """A scan that stops early says that it may have missed the one."""
    result = sold.run("find", "--amount", "1000")
    assert "3 rows found for " in result.stdout
    assert "ref-T-1" in result.stdout
    sold.world.dynamo.faults["scan"] = [_one_page] * 4
    result = sold.run("find", "--amount", "1000", "--units-max", "1")
    assert result.exit_code == 3
    assert "stopped at 1 read units (--units-max): it did not see everything" in result.stderr


def _one_page(operation: Callable[..., Any], request: dict[str, Any]) -> Any:
    """Answer a scan with one row of its segment, and say that there is more."""
    page = operation(**request)
    after = {"LastEvaluatedKey": {"guid": page["Items"][0]["guid"]}} if page["Items"] else {}
    return {**page, "Items": page["Items"][:1], **after}


def test_a_scan_of_several_pages_sees_each_row_once(sold: Office) -> None:
    """Each segment goes on where its page ended."""
    sold.world.dynamo.faults["scan"] = [_one_page] * 4
    told = sold.terminal.json("find", "--from", "2027-01-15T08:00:00Z")
    assert [each["guid"] for each in told["rows"]] == [f"T-{number}" for number in range(1, 6)]


def test_a_row_that_cannot_be_read_is_told_since_it_may_be_the_one(sold: Office) -> None:
    """The others are found; the exit code says that not everything was seen."""
    sold.world.edit("T-2", state="LATER")
    told = sold.terminal.json("find", "--amount", "1000", code=3)
    assert [each["guid"] for each in told["rows"]] == ["T-1", "T-4"]
    assert told["unreadable"] == ["T-2"]
    assert told["scan"]["complete"]
    result = sold.run("find", "--amount", "1000")
    assert result.exit_code == 3
    assert "the row of T-2 cannot be read" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what is known"),
        (("--amount", "1,000"), "'1,000' is no amount"),
        (("--amount", "NaN"), "is no amount"),
        (("--from", "yesterday"), "--from 'yesterday'"),
        (("--from", "2027-01-15T08:00:00Z", "--to", "2027-01-15T08:00:00Z"), "before --to"),
    ],
    ids=["nothing", "comma", "nan", "no time", "no span"],
)
def test_what_cannot_be_looked_for_is_refused(
    office: Office, words: tuple[str, ...], said: str
) -> None:
    """Before anything is read, and paid for."""
    result = office.run("find", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "scan" not in office.world.dynamo.calls


def test_a_table_that_gives_no_answer_is_told(office: Office) -> None:
    """With what to do about a permission that lacks."""
    for words, operation in (
        (("list",), "query"),
        (("find", "--amount", "1"), "scan"),
        (("show", "G-1"), "get_item"),
    ):
        office.world.dynamo.faults[operation] = [refused("AccessDeniedException")] * 4
        result = office.run(*words)
        assert result.exit_code == 1
        assert "AccessDeniedException" in result.stderr
        office.world.dynamo.faults.clear()


def test_nothing_that_looks_writes(office: Office) -> None:
    """Not a row, not a line of the operators' log."""
    office.world.doubt()
    before = json.dumps(items(), default=str)
    for words in (
        ("show", "G-1"),
        ("list",),
        ("stats",),
        ("find", "--amount", "1"),
        ("proposals",),
    ):
        assert office.run(*words).exit_code == 0
    assert json.dumps(items(), default=str) == before
    assert office.logs.lines == []

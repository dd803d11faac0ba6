"""The accounting can fail: what is wrong in the evidence is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from local.core_ledger import Execution
from tests.chaos.book import Told
from tests.chaos.plan import Does, Transfer
from tests.chaos.truth import Evidence, Truth

OPENING: Final = 1_000


def executed(guid: str, seq: int, amount: int = 100) -> Execution:
    """Return a line of the journal: the amount from A001 to A002."""
    return Execution(seq, seq, guid, 1, "", amount, "JPY", "A001", "A002", "0000", f"C{seq:08d}")


def told(guid: str, code: str | None) -> Told:
    """Return an answer to a channel."""
    return Told(guid, Does.POST, 0, 1, 200, code)


def row(guid: str, state: str = "DONE", code: str | None = "0000", **more: Any) -> dict[str, Any]:
    """Return a row of the ledger."""
    return {"guid": guid, "state": state, "code": code, **more}


# Two executed, one of them a message; one refused by the core; one that nobody has accepted.
RIGHT: Final = Evidence(
    sent={guid: Transfer("A001", "A002", 100) for guid in ("a", "m", "refused", "nothing")},
    told=[told("a", "E901"), told("a", "0000"), told("refused", "B201"), told("nothing", "E906")],
    messages=["m", "m"],
    left=0,
    aside=[],
    rows=[row("a"), row("m"), row("refused", code="B201")],
    journal=[executed("a", 1), executed("m", 2)],
    opening=OPENING,
    balances={"A001": OPENING - 200, "A002": OPENING + 200},
)


def without(guid: str) -> Evidence:
    """Return the evidence with a row deleted."""
    return replace(RIGHT, rows=[each for each in RIGHT.rows if each["guid"] != guid])


def with_row(changed: dict[str, Any]) -> Evidence:
    """Return the evidence with another row for the GUID."""
    return replace(without(changed["guid"]), rows=[*without(changed["guid"]).rows, changed])


def test_evidence_that_agrees_is_right() -> None:
    """Nothing is wrong, and what was only told E906 needs no row."""
    truth = Truth(RIGHT)
    assert truth.is_right
    assert truth.suspects == ()
    assert truth.unrecorded == ("nothing",)
    assert truth.codes == {"0000": 2, "B201": 1}
    assert truth.by_ledger == truth.by_journal == RIGHT.balances


def test_a_doctored_journal_is_a_double() -> None:
    """One line more for a GUID, and it is counted, also where the balances go along."""
    journal = [*RIGHT.journal, executed("a", 3)]
    balances = {"A001": OPENING - 300, "A002": OPENING + 300}
    truth = Truth(replace(RIGHT, journal=journal, balances=balances))
    assert truth.doubles == {"a": 2}
    assert truth.suspects == ("a",)
    assert not truth.balances_agree  # The DONE rows say that it moved once.
    assert not truth.is_right


def test_a_double_that_was_never_executed_once_by_the_ledger_is_found_too() -> None:
    """Twice in the journal and no row at all: both are said."""
    truth = Truth(replace(without("a"), journal=[*RIGHT.journal, executed("a", 3)]))
    assert truth.doubles == {"a": 2}
    assert truth.lost == ("a",)


@pytest.mark.parametrize("guid", ["a", "m", "refused"])
def test_a_deleted_row_is_lost(guid: str) -> None:
    """What was told with a code, or acknowledged as a message, must have its row."""
    truth = Truth(without(guid))
    assert truth.lost == (guid,)
    assert not truth.is_right


@pytest.mark.parametrize("code", ["0000", "B201", "E500", "E901", "E902", "E903", "E908"])
def test_an_answer_with_a_code_is_a_promise(code: str) -> None:
    """A GUID that got any of these and has no row is lost."""
    assert Truth(replace(RIGHT, told=[*RIGHT.told, told("nothing", code)])).lost == ("nothing",)


@pytest.mark.parametrize("code", [None, "E904", "E905", "E906", "E907"])
def test_an_answer_that_promises_nothing_needs_no_row(code: str | None) -> None:
    """Neither a dead connection nor a refusal of the hub's own is an acceptance."""
    assert Truth(replace(RIGHT, told=[*RIGHT.told, told("nothing", code)])).is_right


def test_a_message_that_was_put_aside_is_not_lost() -> None:
    """It lies where a person finds it; nothing was executed for it."""
    put_aside = replace(RIGHT, messages=["m", "nothing"], aside=["nothing"])
    assert Truth(put_aside).is_right
    assert Truth(replace(put_aside, aside=[])).lost == ("nothing",)


def test_messages_left_in_a_queue_are_open() -> None:
    """They were not acknowledged, so they are not lost; but the run is not over either."""
    truth = Truth(replace(RIGHT, messages=["m", "nothing"], left=1))
    assert truth.lost == ()
    assert truth.open_count == 1
    assert not truth.is_right


@pytest.mark.parametrize("state", ["RECEIVED", "SENT", "UNKNOWN"])
def test_an_open_row_is_counted(state: str) -> None:
    """Held or not, an outcome that is open is open."""
    truth = Truth(with_row(row("refused", state, None, hold="contradiction")))
    assert truth.open == ("refused",)
    assert truth.open_count == 1
    assert truth.waiting == {"hold: contradiction": 1}
    assert not truth.is_right


def _told_otherwise() -> Evidence:
    return replace(RIGHT, told=[*RIGHT.told, told("refused", "0000")])


def _told_while_failed() -> Evidence:
    return with_row(row("refused", "FAILED", None))


def _done_and_not_executed() -> Evidence:
    return with_row(row("refused"))


def _executed_and_refused() -> Evidence:
    return with_row(row("a", code="E908"))


def _sent_by_nobody() -> Evidence:
    return replace(RIGHT, rows=[*RIGHT.rows, row("stranger", code="E908")])


@pytest.mark.parametrize(
    ("evidence", "finding", "guid"),
    [
        (_told_otherwise, "contradicted", "refused"),
        (_told_while_failed, "contradicted", "refused"),
        (_done_and_not_executed, "unlike", "refused"),
        (_executed_and_refused, "unlike", "a"),
        (_sent_by_nobody, "strangers", "stranger"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_sides_that_do_not_agree_are_named(
    evidence: Callable[[], Evidence], finding: str, guid: str
) -> None:
    """The ledger, the journal and the channels' answers are held against each other."""
    truth = Truth(evidence())
    assert getattr(truth, finding) == (guid,)
    assert guid in truth.suspects
    assert not truth.is_right


def test_money_that_is_not_in_the_journal_is_seen() -> None:
    """The core's accounts are compared with both books, not only with their sum."""
    moved = {"A001": OPENING - 150, "A002": OPENING + 150}
    truth = Truth(replace(RIGHT, balances=moved))
    assert truth.suspects == ()
    assert not truth.is_right


def test_another_amount_than_the_one_that_was_sent_is_seen() -> None:
    """The ledger's balances come from what the channels asked for, not from the journal."""
    journal = [executed("a", 1, amount=101), executed("m", 2)]
    balances = {"A001": OPENING - 201, "A002": OPENING + 201}
    assert not Truth(replace(RIGHT, journal=journal, balances=balances)).is_right

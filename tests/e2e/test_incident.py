"""The prepared incident on a stack of its own: commands alone find it and put it right.

The truth is the core's journal and its balances; the hub's words are compared with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from rich.console import Console

from local.core_client import CoreControl
from local.incident import Night, through
from local.incident_acts import ALICE, ANSWER, BOB, LEFT, SOUGHT
from local.incident_story import (
    ALL,
    CALLED_BY,
    EXECUTED,
    KILLED,
    PARAMETERS,
    REFUSED,
    SILENT,
    Transfer,
    guids,
)
from local.incident_truth import OPERATOR_LOG
from local.stack import Stack, StackConfig
from local.stack_operator import json_lines
from local.stack_process import ending_in_order
from tests.e2e.conftest import LOGS

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def own_stack(built: None) -> Iterator[Stack]:
    """Return a stack on which nothing has happened, under the incident's parameters."""
    del built
    config = StackConfig(logs=LOGS / "incident", parameters=PARAMETERS)
    with ending_in_order(), Stack.running(config) as running:
        yield running


@pytest.fixture(scope="module")
def night(own_stack: Stack) -> Night:
    """Return the whole night, played once."""
    core = CoreControl(own_stack.control_url)
    try:
        return through(own_stack, core, Console(quiet=True))
    finally:
        core.close()


def summed(transfers: tuple[Transfer, ...]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return rows and money by channel and currency, by what the channels sent."""
    rows, sums = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in transfers:
        rows[each.channel, each.currency] += 1
        sums[each.channel, each.currency] += each.amount
    return {key: (rows[key], sums[key]) for key in rows}


def test_the_channels_were_told_what_was_known(night: Night) -> None:
    """Not confirmed where the core was silent, not executed where it refused, nothing if killed."""
    told = night.incident.told
    assert {told[each.guid] for each in SILENT} == {"E901"}
    assert {told[each.guid] for each in REFUSED} == {"E902"}
    assert told[KILLED.guid] is None


def test_an_alarm_calls_a_person(night: Night) -> None:
    """The hub closed the core by itself, money is in doubt: both are told by alarms."""
    assert night.incident.alarms == CALLED_BY
    assert "by hub since" in night.said[0].out


def test_the_money_in_doubt_is_to_the_yen_what_the_core_executed(night: Night) -> None:
    """By channel and currency, the sum of `stats` is that of the journal, and of what was sent."""
    truth = night.truth
    assert set(night.found.unknown) == guids(EXECUTED)
    assert truth.told_in_doubt == truth.journal_in_doubt == summed(EXECUTED)
    assert len(truth.told_in_doubt) == 4


def test_a_transaction_without_its_guid_is_found_by_amount_and_minute(night: Night) -> None:
    """That one, and no other."""
    assert night.found.sought == [SOUGHT.guid]


def test_in_the_end_nothing_is_open_and_nothing_was_executed_twice(night: Night) -> None:
    """Every row is DONE; the one whose customer had gone is closed, the others once executed."""
    truth = night.truth
    codes = {guid: "E908" if guid == LEFT.guid else "0000" for guid in guids(ALL)}
    assert truth.ends == {guid: ("DONE", code) for guid, code in codes.items()}
    assert truth.executed == Counter(guids(ALL) - {LEFT.guid})
    assert truth.balances == truth.balances_due
    assert truth.balances != night.incident.opening
    assert list(truth.faults()) == []
    assert next(said for said in reversed(night.said) if said.words == ("stats",)).text == (
        "no row is open"
    )


def test_the_attested_answer_is_replayed_byte_for_byte(own_stack: Stack, night: Night) -> None:
    """The channel's resend gets what the core's owner handed over."""
    reply = {"atm": own_stack.atm, "app": own_stack.app}[SOUGHT.channel].post(
        SOUGHT.guid, SOUGHT.body
    )
    assert (reply.status, reply.body) == (200, night.found.handed_over)
    assert reply.headers["idempotent-replayed"] == "true"


def test_what_was_unsafe_was_refused_with_a_sentence(night: Night) -> None:
    """A row in doubt is neither redriven nor attested too early; nobody approves his own."""
    refused = {said.words[0]: said.err for said in night.said if said.code}
    assert refused.keys() == {"redrive", "attest", "approve"}
    assert "may have been executed" in refused["redrive"]
    assert "the core may have begun with it until" in refused["attest"]
    assert f"was proposed by {ALICE}, and you are {ALICE}" in refused["approve"]


def test_every_act_is_on_record_with_who_and_why(own_stack: Stack, night: Night) -> None:
    """In the operators' log, the refused ones too; in the row's history, both persons."""
    lines = list(json_lines(own_stack.operator.lines_of(own_stack.name_of(OPERATOR_LOG))))
    intents = Counter((each["by"], each["reason"]) for each in lines if each["line"] == "intent")
    acts = [said.words for said in night.said if "--operator" in said.words]
    given = {
        (words[words.index("--operator") + 1], words[words.index("--reason") + 1])
        for words in acts
        if ANSWER in words or words[0] not in {"attest", "approve"}
    }
    assert given <= intents.keys()
    assert (BOB, "asked at the branch") in intents
    history = (own_stack.ledger_row(SOUGHT.guid) or {})["history"]
    assert history[-1]["by"] == f"operator {ALICE}, approved by {BOB}"


def test_no_log_bears_an_amount_or_an_account(own_stack: Stack, night: Night) -> None:
    """Of no function, and not the operators'; each of them has written something."""
    assert night.truth.leaks == ()
    for group in (*own_stack.log_groups(), own_stack.name_of(OPERATOR_LOG)):
        # No message came this night, and it was not the purger's hour.
        is_idle = group.endswith(("-messages", "-purger"))
        assert bool(own_stack.operator.lines_of(group)) is not is_idle, group

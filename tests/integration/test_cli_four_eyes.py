"""What needs two persons: proposed by one, approved by another, on exactly those rows, once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relayhub.states import State
from tests.emulated import never_arrives, refused, reply_lost
from tests.integration.cli_kit import Office, open_office
from tests.world import BUCKET, EXECUTED, World

NOT_EXECUTED = ("attest", "not-executed", "G-1", "--complete-through", "2027-01-15T08:05:00Z")


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack where two persons are needed; alice gives the commands."""
    made = open_office(world)
    made.set(FOUR_EYES="true")
    return made


def approve(office: Office, proposal: str, by: str = "bob", code: int = 0) -> Any:
    """Let another person approve it; return the document."""
    office.as_person(by)
    return office.act("approve", proposal, code=code)


def proposed(office: Office, *words: str, code: int = 0) -> str:
    """Let alice propose it; return the id."""
    office.as_person("alice")
    return str(office.act(*words, code=code)["proposed"]["id"])


def test_a_close_is_proposed_and_done_by_another_persons_approval(office: Office) -> None:
    """The history names both; the log has each step."""
    before = office.world.fail()
    proposal = proposed(office, "close", "G-1")
    assert office.world.row() == before
    told = approve(office, proposal)
    assert (told["done"], told["refused"]) == (["G-1"], {})
    row = office.world.held()
    assert (row.state, row.code) == (State.DONE, "E908")
    entry = row.history[-1]
    assert entry["by"] == "operator role/Admin/alice, approved by role/Admin/bob"
    assert entry["reason"] == "as agreed"
    acts = [(each["by"], each["act"]) for each in office.logs.of("intent")]
    assert acts == [
        ("role/Admin/alice", "propose close"),
        ("role/Admin/bob", "approve"),
        ("role/Admin/bob", "close"),
    ]
    assert office.terminal.json("proposals")["proposals"] == []


@pytest.mark.parametrize(
    ("name", "role"),
    [("alice", "Admin"), ("ALICE", "Admin"), ("alice", "Operator")],
    ids=["the same", "in capitals", "in another role"],
)
def test_nobody_approves_what_he_proposed_himself(office: Office, name: str, role: str) -> None:
    """Nor in another role of his."""
    before = office.world.fail()
    proposal = proposed(office, "close", "G-1")
    office.as_person(name, role)
    said = office.refused("approve", proposal)
    assert f"was proposed by role/Admin/alice, and you are role/{role}/{name}" in said
    assert office.world.row() == before
    approve(office, proposal)


def test_a_proposal_expires(office: Office) -> None:
    """After an hour, by default; it is shown no more, and may be proposed anew."""
    before = office.world.fail()
    proposal = proposed(office, "close", "G-1")
    office.world.clock.advance(3_599)
    assert len(office.terminal.json("proposals")["proposals"]) == 1
    office.world.clock.advance(1)
    office.as_person("bob")
    assert "expired at 2027-01-15T09:00:00.000Z" in office.refused("approve", proposal)
    assert office.run("proposals").stdout == "nothing is proposed\n"
    assert office.world.row() == before
    approve(office, proposed(office, "close", "G-1"))
    assert "there is no proposal" in office.refused("approve", proposal)


def test_an_approval_is_carried_out_once(office: Office) -> None:
    """Of two at once the second finds it gone."""
    office.world.fail()
    proposal = proposed(office, "close", "G-1")
    known = office.desk().proposals
    (found,) = known.all()
    office.as_person("bob")
    office.world.dynamo.before["update_item"] = [lambda: known.take(found)]
    assert f"{proposal} is gone: it was approved meanwhile" in office.refused("approve", proposal)
    assert office.world.held().state is State.FAILED
    assert "there is no proposal" in office.refused("approve", proposal)


def test_an_approval_whose_taking_has_no_answer_does_nothing(office: Office) -> None:
    """Better nothing than twice: it is proposed again."""
    office.world.fail()
    proposal = proposed(office, "close", "G-1")
    office.as_person("bob")
    office.world.dynamo.faults["update_item"] = [reply_lost]
    assert "is gone" in office.refused("approve", proposal)
    proposal = proposed(office, "close", "G-1")
    office.as_person("bob")
    office.world.dynamo.faults["update_item"] = [never_arrives, never_arrives]
    assert "no answer" in office.refused("approve", proposal, code=1)
    assert office.world.held().state is State.FAILED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"claim_id": "another", "attempt": 2}, "it was FAILED, and is FAILED now (attempt 2)"),
        ({"state": "SENT"}, "it was FAILED, and is SENT now"),
    ],
    ids=["attempt", "state"],
)
def test_a_row_that_moved_on_since_it_was_proposed_is_left_alone(
    office: Office, change: dict[str, Any], said: str
) -> None:
    """What was approved is the row that was looked at."""
    office.world.fail()
    proposal = proposed(office, "close", "G-1")
    office.world.edit(**change)
    before = office.world.row()
    assert said in approve(office, proposal, code=2)["refused"]["G-1"]
    assert said in office.logs.lines[-1]["refused"]["G-1"]
    assert office.world.row() == before


def test_what_the_hub_would_refuse_is_not_even_proposed(office: Office) -> None:
    """The sentence is that of the act."""
    office.world.doubt()
    result = office.run("close", "G-1", "--reason", "as agreed")
    assert result.exit_code == 2
    assert "G-1 is left out: it is UNKNOWN: it may have been executed" in result.stderr
    assert "nothing is proposed" in result.stderr
    assert office.terminal.json("proposals")["proposals"] == []


def test_an_attest_needs_two_and_its_answer_waits_in_the_bucket(
    office: Office, tmp_path: Path
) -> None:
    """Under a key of the proposal; whoever approves needs no file."""
    office.world.doubt()
    file = tmp_path / "answer.json"
    file.write_bytes(EXECUTED.body)
    words = ("attest", "executed", "G-1", "--answer", str(file))
    told = office.act(*words)["proposed"]
    file.unlink()
    kept = office.world.s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [each["Key"] for each in kept] == [
        f"!proposal/{told['id']}/{told['arguments']['sha256']}"
    ]
    assert office.world.held().state is State.UNKNOWN
    assert approve(office, told["id"])["done"] == ["G-1"]
    reply = office.world.post()
    assert (reply.status, reply.body) == (EXECUTED.status, EXECUTED.body)


def test_an_answer_that_was_changed_meanwhile_is_attested_by_nobody(
    office: Office, tmp_path: Path
) -> None:
    """Length and digest stand in the proposal, which is not taken."""
    office.world.doubt()
    file = tmp_path / "answer.json"
    file.write_bytes(EXECUTED.body)
    told = office.act("attest", "executed", "G-1", "--answer", str(file))["proposed"]
    key = f"!proposal/{told['id']}/{told['arguments']['sha256']}"
    office.world.s3.put_object(Bucket=BUCKET, Key=key, Body=b'{"code":"0000"}')
    office.as_person("bob")
    assert "not the bytes that were stored" in office.refused("approve", told["id"], code=1)
    assert office.world.held().state is State.UNKNOWN
    assert len(office.terminal.json("proposals")["proposals"]) == 1


def test_that_it_was_not_executed_needs_two_and_its_time(office: Office) -> None:
    """The journal's end is shown to whoever approves."""
    office.world.doubt()
    result = office.run(*NOT_EXECUTED, "--reason", "as agreed")
    assert "not executed can be said from" in result.stderr
    office.world.clock.advance(400)
    proposal = proposed(office, *NOT_EXECUTED)
    (shown,) = office.terminal.json("proposals", proposal)["proposals"]
    assert shown["arguments"] == {"complete_through": "2027-01-15T08:05:00.000Z"}
    approve(office, proposal)
    assert office.world.held().state is State.FAILED
    assert "complete through 2027-01-15T08:05:00.000Z" in office.world.held().history[-1]["reason"]


def test_one_row_is_redriven_by_one_person_and_many_by_two(office: Office) -> None:
    """Held ones are left out, and told; the validity counts from the approval."""
    for guid in ("F-1", "F-2", "F-3"):
        office.world.fail(guid)
    office.act("redrive", "F-1")
    assert office.world.held("F-1").history[-1]["event"] == "redriven"
    office.act("hold", "F-3")
    proposal = proposed(office, "redrive", "--state", "FAILED", "--valid-for", "1h", code=3)
    assert office.world.held("F-2").history[-1]["event"] != "redriven"
    office.world.clock.advance(600)
    told = approve(office, proposal)
    assert told["done"] == ["F-1", "F-2"]
    assert office.world.held("F-2").valid_until == office.world.clock() + 3_600_000


def test_a_proposal_is_shown_with_its_rows(office: Office) -> None:
    """Who, what, why, which, and how long it stands."""
    office.world.fail()
    proposal = proposed(office, "close", "G-1")
    text = office.run("proposals", proposal).stdout
    for each in (proposal, "close", "role/Admin/alice", "as agreed", "1 h", "G-1", "FAILED"):
        assert each in text
    assert office.run("proposals", "p-none").exit_code == 2


def test_too_many_rows_are_not_proposed(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that bears the proposals has its size."""
    monkeypatch.setattr("cli.proposing.GUIDS_MAX", 1)
    office.world.fail("F-1")
    office.world.fail("F-2")
    said = office.refused("redrive", "F-1", "F-2")
    assert said == "2 rows are too many for one proposal: narrow it to 1"


@pytest.mark.parametrize("by", ["alice", "bob"], ids=["himself", "another"])
def test_a_proposal_is_withdrawn_and_can_be_approved_no_more(office: Office, by: str) -> None:
    """By its proposer or by anybody, on record; the row is as it was."""
    before = office.world.fail()
    proposal = proposed(office, "close", "G-1")
    office.as_person(by)
    assert office.act("withdraw", proposal) == {"withdrawn": proposal, "act": "close"}
    intent, outcome = office.logs.lines[-2:]
    assert (intent["line"], intent["act"], intent["by"], intent["reason"], intent["proposal"]) == (
        *("intent", "withdraw", f"role/Admin/{by}", "as agreed", proposal),
    )
    assert (outcome["outcome"], outcome["act"]) == ("done", "withdraw")
    office.as_person("carol")
    assert "it was approved or withdrawn" in office.refused("approve", proposal)
    assert "it was approved or withdrawn" in office.refused("withdraw", proposal)
    assert office.world.row() == before


def test_a_proposal_that_is_approved_at_the_same_moment_is_not_withdrawn(office: Office) -> None:
    """Nobody is told that it was, while it is carried out."""
    office.world.fail()
    proposal = proposed(office, "close", "G-1")
    known = office.desk().proposals
    (found,) = known.all()
    office.world.dynamo.before["update_item"] = [lambda: known.take(found)]
    assert f"{proposal} is gone: it was approved meanwhile" in office.refused("withdraw", proposal)
    assert office.logs.of("outcome")[-1]["outcome"] == "refused"


def test_a_proposal_for_which_there_is_no_room_is_refused_in_words(office: Office) -> None:
    """How many stand, and what to do."""
    office.world.fail("F-1")
    office.world.fail("F-2")
    proposal = proposed(office, "close", "F-1")
    office.world.dynamo.faults["update_item"] = [refused("ValidationException")]
    said = office.refused("close", "F-2")
    assert said.startswith("the proposals that stand (1) leave no room for this one: wait")
    assert "`relayhub withdraw`" in said
    office.act("withdraw", proposal)
    proposed(office, "close", "F-2")


def test_a_proposal_of_nobody_is_approved_by_nobody(office: Office) -> None:
    """A command line of before may have made it; whoever it was may be who approves."""
    office.world.fail()
    proposal = proposed(office, "close", "G-1")
    known = office.desk().proposals
    (made,) = known.all()
    known.propose(replace(made, by="role/Admin/botocore-session-1800000000"), office.world.clock())
    office.as_person("bob")
    assert "which names nobody: withdraw it" in office.refused("approve", proposal)
    assert office.world.held().state is State.FAILED


def test_without_the_setting_one_person_is_enough(office: Office) -> None:
    """And what was proposed before can still be approved."""
    office.world.fail("F-1")
    office.world.fail("F-2")
    proposal = proposed(office, "close", "F-1")
    office.set(FOUR_EYES="false")
    office.act("close", "F-2")
    assert office.world.held("F-2").state is State.DONE
    assert approve(office, proposal)["done"] == ["F-1"]


def test_no_amount_and_no_byte_is_in_the_log_or_the_proposal(
    office: Office, tmp_path: Path
) -> None:
    """The answer is in the bucket alone."""
    office.world.deploy(money_fields=(("amount", "/amount"),))
    office.world.doubt(body=b'{"amount":77123}')
    file = tmp_path / "answer.json"
    file.write_bytes(b'{"code":"0000","balance":"99321"}')
    proposal = proposed(office, "attest", "executed", "G-1", "--answer", str(file))
    item = office.world.item("!proposals")
    approve(office, proposal)
    told = json.dumps([item, office.logs.lines])
    assert "G-1" in told
    assert not {each for each in ("77123", "99321") if each in told}

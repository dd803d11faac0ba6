"""`park`, `hold`, `release`, `close`: by whom, why, on record, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.stack import Output
from relayhub.states import State
from tests.emulated import never_arrives, reply_lost
from tests.integration.cli_kit import PURGER, RESOLVER, Office, make_stack, open_office
from tests.world import World, document

WHY = ("--reason", "as agreed")


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack and a person who looks after it."""
    return open_office(world)


def test_an_act_is_in_the_log_before_and_after_and_in_the_rows_history(office: Office) -> None:
    """Who, why, from where to where; the state is told."""
    before = office.world.fail()
    told = office.act("park", "G-1")
    row = office.world.held()
    assert row.parked == "operator"
    assert (told["act"], told["from"], told["row"]["parked"]) == ("park", "FAILED", "operator")
    entry = row.history[-1]
    assert (entry["by"], entry["reason"]) == ("operator role/Admin/alice", "as agreed")
    intent, outcome = office.logs.lines
    assert intent == {
        "by": "role/Admin/alice",
        "act_id": outcome["act_id"],
        "line": "intent",
        "act": "park",
        "reason": "as agreed",
        "guid": "G-1",
        "state": "FAILED",
        "claim_id": before.claim_id,
        "actor": "operator role/Admin/alice",
        "arguments": {},
    }
    assert outcome == {
        "by": "role/Admin/alice",
        "act_id": intent["act_id"],
        "line": "outcome",
        "outcome": "done",
        "act": "park",
        "guid": "G-1",
        "from": "FAILED",
        "to": "FAILED",
        "code": "E902",
        "parked": "operator",
        "attempt": 1,
    }
    assert office.logs.streams[0].startswith("2027/01/15/role/Admin/alice/")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("park", "G-1"), State.FAILED),
        (("hold", "G-1"), State.FAILED),
        (("close", "G-1"), State.DONE),
        (("redrive", "G-1"), State.FAILED),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_nothing_is_done_that_the_log_does_not_take(
    office: Office, words: tuple[str, ...], state: State
) -> None:
    """By a refusal, and by a line of a time that it does not take."""
    before = office.world.fail()
    denied = ClientError({"Error": {"Code": "AccessDeniedException"}}, "PutLogEvents")
    for fault in (denied, {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}}):
        office.logs.faults = [fault]
        result = office.run(*words, *WHY)
        assert result.exit_code == 1
        assert "nothing was done, since the operators' log took no line" in result.output
        assert office.world.row() == before
    office.act(*words)
    assert office.world.held().state is state


def test_an_outcome_that_the_log_does_not_take_is_told(office: Office) -> None:
    """The act stands, and its row has it."""
    office.world.fail()
    office.logs.faults = [None, ClientError({"Error": {"Code": "Throttling"}}, "PutLogEvents")]
    result = office.run("hold", "G-1", *WHY)
    assert result.exit_code == 0
    assert "the outcome (done) is not in the operators' log" in result.stderr
    assert office.world.held().hold == "operator"


def test_a_refusal_is_told_in_one_sentence_and_logged(office: Office) -> None:
    """With its exit code; the row is as it was."""
    row = office.world.doubt()
    said = office.refused("close", "G-1")
    assert said.startswith("it is UNKNOWN: it may have been executed: ask the core")
    assert office.world.row() == row
    (outcome,) = office.logs.of("outcome")
    assert (outcome["outcome"], outcome["sentence"]) == ("refused", said)


def test_a_write_without_an_answer_is_told_as_such(office: Office) -> None:
    """Neither done nor refused: the exit code is that of a failure."""
    office.world.fail()
    office.world.dynamo.faults["update_item"] = [never_arrives, never_arrives]
    said = office.refused("park", "G-1", code=1)
    assert said.endswith("look whether it is written")
    assert office.logs.of("outcome")[0]["outcome"] == "failed"


def test_a_lost_reply_of_ones_own_write_is_success(office: Office) -> None:
    """The second try finds the first."""
    office.world.fail()
    office.world.dynamo.faults["update_item"] = [reply_lost]
    assert office.act("park", "G-1")["row"]["parked"] == "operator"


@pytest.mark.parametrize("reason", ["", "  ", "x" * 301, "two\nlines"], ids=["0", "1", "2", "3"])
def test_an_act_without_a_proper_reason_is_refused(office: Office, reason: str) -> None:
    """It stands in the row for years."""
    office.world.fail()
    result = office.run("hold", "G-1", "--reason", reason)
    assert result.exit_code == 2
    assert "--reason: say why in 1 to 300 printable characters" in result.stderr
    assert office.logs.lines == []
    assert office.run("hold", "G-1").exit_code == 2


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:sts::1:assumed-role/Admin/alice", "role/Admin/alice"),
        (
            "arn:aws:sts::1:assumed-role/AWSReservedSSO_Ops_0/a@b.c",
            "role/AWSReservedSSO_Ops_0/a@b.c",
        ),
        ("arn:aws:iam::1:user/alice", "user/alice"),
        ("arn:aws-cn:iam::1:root", "root"),
    ],
)
def test_the_callers_identity_is_the_actor(office: Office, arn: str, name: str) -> None:
    """As a person reads it."""
    office.world.fail()
    office.sts.arn = arn
    office.act("hold", "G-1")
    assert office.world.held().history[-1]["by"] == f"operator {name}"


@pytest.mark.parametrize(
    "session",
    [
        "botocore-session-1800000000",
        "AWSCLI-Session",
        "AWS-CLI-session-1800000000",
        "aws-go-sdk-1800000000000",
        "aws-sdk-js-1800000000000",
        "aws-sdk-java-1800000000000",
        "aws-dotnet-sdk-session-638000000000000000",
    ],
)
@pytest.mark.parametrize("words", [("hold", "G-1"), ("core", "close")], ids=" ".join)
def test_a_session_that_a_tool_named_is_nobody_and_may_do_nothing(
    office: Office, words: tuple[str, ...], session: str
) -> None:
    """Each command has another such name; how to have one's own is told, and reading goes on."""
    before = office.world.fail()
    office.as_person(session)
    said = office.refused(*words)
    assert said.startswith(f"role/Admin/{session} names nobody")
    assert "set role_session_name" in said
    assert "AWS_ROLE_SESSION_NAME" in said
    assert office.logs.lines == []
    assert office.world.row() == before
    assert office.terminal.json("core", "status")["core"] == "open"
    assert office.terminal.json("show", "G-1")["row"]["state"] == "FAILED"


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sts::1:assumed-role/botocore-session-7/alice",
        "arn:aws:sts::1:assumed-role/Admin/alice-botocore-session-7",
        "arn:aws:iam::1:user/botocore-session-7",
    ],
)
def test_a_persons_own_name_is_taken_whatever_it_reminds_of(office: Office, arn: str) -> None:
    """A session's whole name must be a tool's; a user has the name that somebody gave."""
    office.world.fail()
    office.sts.arn = arn
    office.act("hold", "G-1")


def test_a_name_is_given_on_a_local_stack_alone_and_there_it_must_be(office: Office) -> None:
    """On AWS nobody may say that he is another."""
    office.world.fail()
    said = office.refused("hold", "G-1", "--operator", "bob")
    assert said.startswith("--operator is for the local stack alone")
    local = ("--endpoint-url", "http://127.0.0.1:4566")
    assert office.refused("hold", "G-1", *local).startswith("say who you are by --operator")
    assert "is no name" in office.refused("hold", "G-1", *local, "--operator", "a b")
    office.act("hold", "G-1", *local, "--operator", "bob")
    assert office.world.held().history[-1]["by"] == "operator bob"


def test_a_hold_is_closed_over_by_its_name_alone(office: Office) -> None:
    """So nobody closes what he did not look at."""
    office.world.fail()
    office.act("hold", "G-1")
    assert "name just that hold" in office.refused("close", "G-1")
    assert "name just that hold" in office.refused("close", "G-1", "--over-hold", "restored")
    assert office.act("close", "G-1", "--over-hold", "operator")["row"]["code"] == "E908"
    assert document(office.world.post())["code"] == "E908"


def test_a_hint_that_is_lost_is_told_and_nothing_else(office: Office) -> None:
    """The sweep makes up for it."""
    office.world.fail()
    office.set(DEAD_LETTER_QUEUE_URL="https://sqs.eu-west-1.amazonaws.com/123456789012/none")
    result = office.run("redrive", "G-1", *WHY)
    assert result.exit_code == 0, result.output
    assert "hint_lost: guid G-1" in result.stderr


def test_guids_that_channels_keep_apart_need_the_channel(office: Office) -> None:
    """Or the whole key, as `list` shows it."""
    office.set(GUID_SCOPE="channel")
    office.world.fail("G-1:atm")
    assert "name the channel by --channel" in office.refused("hold", "G-1")
    assert "no row of G-1:app" in office.refused("hold", "G-1", "--channel", "app")
    assert office.act("hold", "G-1", "--channel", "atm")["guid"] == "G-1:atm"
    assert office.act("release", "G-1:atm")["guid"] == "G-1:atm"


def test_a_row_of_another_channel_is_told_as_such(office: Office) -> None:
    """Where one GUID is one row, the channel is a check."""
    office.world.fail()
    assert "is of another channel: atm" in office.refused("hold", "G-1", "--channel", "app")
    office.act("hold", "G-1", "--channel", "atm")


def test_a_stack_without_the_operators_log_can_be_looked_at_and_not_acted_on(
    world: World,
) -> None:
    """It is older than this command line."""
    world.fail()
    office = open_office(world)
    make_stack(world.queue_url, name="older", without=Output.OPERATOR_LOG)
    older = ("--stack", "older")
    assert office.run("show", "G-1", *older).exit_code == 0
    said = office.refused("hold", "G-1", *older, code=1)
    assert "has no output OperatorLogGroupName" in said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"Environment": {"Error": {"ErrorCode": "x", "Message": "no key"}}}, "no key"),
        ({}, "are not those of this version"),
        ({"Environment": {"Variables": {"TABLE_NAME": "t"}}}, "DEAD_LETTER_QUEUE_URL: is not set"),
    ],
    ids=["encrypted", "none", "too few"],
)
def test_settings_that_cannot_be_read_are_told(
    office: Office, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], said: str
) -> None:
    """Nobody decides by guessed limits."""
    functions = office.terminal.functions
    monkeypatch.setattr(functions, "get_function_configuration", lambda **_: answer)
    result = office.run("show", "G-1")
    assert result.exit_code == 1
    assert f"the settings of {RESOLVER}" in result.stderr
    assert said in result.stderr


def test_the_old_commands_work_as_they_did(office: Office) -> None:
    """They need neither a name nor a reason."""
    office.terminal.functions.functions[PURGER] = [{"scanned": 3, "complete": True}]
    assert office.terminal.json("purge")["scanned"] == 3
    assert office.logs.lines == []

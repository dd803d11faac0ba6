"""What holds between the template's parts: what stays, is never replaced, outlasts another."""

from typing import Any, Final

import pytest

from tests.unit.template_kit import (
    DAY_S,
    FUNCTIONS,
    RESOURCES,
    limits,
    of_type,
    properties,
)

# What holds the only copy of something. Its logical id is part of it: another one is another
# resource, and this one would be left behind with all that it holds.
STAYS: Final = {
    "LedgerTable": "AWS::DynamoDB::Table",
    "IntakeQueue": "AWS::SQS::Queue",
    "IntakeDeadLetterQueue": "AWS::SQS::Queue",
    "IntakeRejectsQueue": "AWS::SQS::Queue",
    "AnswersBucket": "AWS::S3::Bucket",
    "OperatorLogGroup": "AWS::Logs::LogGroup",
}
# What stores something and may go with the stack.
MAY_GO: Final = {
    "DeadLetterQueue": "Hints alone: the sweep hints again.",
    "HintRejectsQueue": "What was no hint; nothing waits for it.",
}
STORES: Final = ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket")
# The ledger, as CloudFormation must find it in each release; it replaces the table if one of these
# differs, and with the fixed name that fails. A release that has to change one is a migration.
FROZEN: Final[dict[str, Any]] = {
    "TableName": {"Fn::Sub": "${AWS::StackName}-ledger"},
    "KeySchema": [{"AttributeName": "guid", "KeyType": "HASH"}],
}
REPLACING: Final = {"LocalSecondaryIndexes", "ImportSourceSpecification", "TableClass"}


def queue_of(source: str) -> str:
    """Return the queue that an event source takes from."""
    return str(properties(source)["EventSourceArn"]["Fn::GetAtt"][0])


def test_whatever_holds_the_only_copy_stays_when_the_stack_goes() -> None:
    """Deleted with the stack or replaced in it, the resource itself is kept."""
    kept = {
        name: each["Type"]
        for name, each in RESOURCES.items()
        if each.get("DeletionPolicy") == each.get("UpdateReplacePolicy") == "Retain"
    }
    assert {name: kept.get(name) for name in STAYS} == STAYS


@pytest.mark.parametrize("kind", STORES)
def test_every_store_is_known_to_stay_or_to_be_of_no_loss(kind: str) -> None:
    """A new table, queue or bucket has to be listed here, as one or the other."""
    assert set(of_type(kind)) <= {*STAYS, *MAY_GO}


def test_the_ledger_is_not_replaced_by_any_deploy() -> None:
    """Name and key are as they were, it hangs on no condition, nothing else would replace it."""
    table = RESOURCES["LedgerTable"]
    assert {name: table["Properties"][name] for name in FROZEN} == FROZEN
    assert not REPLACING & set(table["Properties"])
    assert "Condition" not in table
    assert table["Properties"]["DeletionProtectionEnabled"] is True


@pytest.mark.parametrize("name", STAYS)
def test_nothing_that_stays_comes_and_goes_with_a_parameter(name: str) -> None:
    """A condition that no longer holds would drop it from the stack, and its name with it."""
    assert "Condition" not in RESOURCES[name]


@pytest.mark.parametrize("source", ["IntakeSource", "HintsSource"])
def test_a_queue_hides_a_message_for_six_times_of_whoever_reads_it(source: str) -> None:
    """At the longest timeout and window; Lambda refuses a source that hides for less than one."""
    reader = {"IntakeSource": "MessagesTimeoutS", "HintsSource": "ReprocessorTimeoutS"}[source]
    window = limits("IntakeWindowS")[2] if source == "IntakeSource" else 0
    assert properties(queue_of(source))["VisibilityTimeout"] >= 6 * limits(reader)[2] + window


@pytest.mark.parametrize("source", ["IntakeSource", "HintsSource"])
def test_what_is_given_up_lies_longer_than_it_can_have_waited(source: str) -> None:
    """A dead letter keeps the time of its sending: where it goes must remember for longer."""
    queue = properties(queue_of(source))
    dead = properties(queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0])
    spans = [
        limits(each["Ref"]) if isinstance(each, dict) else (each, each, each)
        for each in (queue["MessageRetentionPeriod"], dead["MessageRetentionPeriod"])
    ]
    waits, lies = spans
    assert waits[1] <= lies[1]
    assert waits[2] <= lies[2]


def test_an_alarm_on_waiting_comes_long_before_a_queue_forgets() -> None:
    """Within the shortest retention that a parameter allows there is a day left to act."""
    alarm = properties("IntakeAgeAlarm")
    told_s = alarm["Threshold"] + alarm["Period"] * alarm["EvaluationPeriods"]
    assert told_s + DAY_S < limits("IntakeRetentionS")[0]


def test_rejects_lie_for_as_long_as_sqs_allows() -> None:
    """A person looks at them, and a person has a fortnight off."""
    for name in ("IntakeRejectsQueue", "HintRejectsQueue"):
        assert properties(name)["MessageRetentionPeriod"] == 14 * DAY_S


def test_backups_reach_back_as_far_as_they_can() -> None:
    """35 days, longer than a finished row lives by default."""
    recovery = properties("LedgerTable")["PointInTimeRecoverySpecification"]
    assert recovery == {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 35}
    assert recovery["RecoveryPeriodInDays"] * DAY_S > limits("RetentionS")[1]


def test_a_function_that_is_stopped_by_its_concurrency_can_be_started_again() -> None:
    """Whatever is reserved comes from a parameter, so that a deploy puts it back."""
    for each in FUNCTIONS.values():
        reserved = each.get("ReservedConcurrentExecutions")
        assert reserved is None or "Fn::If" in reserved


def test_a_burst_is_no_smaller_than_a_second_of_the_rate() -> None:
    """By default a busy second is let through, and each limit can be set for itself."""
    assert limits("ThrottleBurst")[1] >= limits("ThrottleRate")[1]

"""Messages come in by a queue that loses none, gives none up too early and floods no core."""

from typing import Any, Final

import pytest

from relayhub import settings
from relayhub.message_event import partial_answer
from tests.unit.template_kit import (
    DAY_S,
    PARAMETERS,
    RESOURCES,
    VARIABLES,
    chosen_of,
    defaults,
    limits,
    of_type,
    properties,
)

QUEUES: Final = ("IntakeQueue", "IntakeDeadLetterQueue", "IntakeRejectsQueue")
SOURCE: Final[dict[str, Any]] = properties("IntakeSource")


@pytest.mark.parametrize("name", QUEUES)
def test_a_message_is_encrypted_and_outlives_the_stack(name: str) -> None:
    """Of what nobody took there is no row: the queue holds the only copy, account data included."""
    assert chosen_of(properties(name), {})["SqsManagedSseEnabled"] is True
    assert RESOURCES[name]["DeletionPolicy"] == RESOURCES[name]["UpdateReplacePolicy"] == "Retain"


def test_messages_come_and_go_over_tls_alone() -> None:
    """Without it, nobody gets a message's contents into or out of one of the three queues."""
    policy = properties("IntakeQueuesPolicy")
    assert policy["Queues"] == [{"Ref": each} for each in QUEUES]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
    assert statement["Action"] == ["sqs:ReceiveMessage", "sqs:SendMessage"]
    assert statement["Resource"] == [{"Fn::GetAtt": [each, "Arn"]} for each in QUEUES]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_a_message_is_hidden_for_six_of_its_readers_timeouts_and_the_window() -> None:
    """As the platform advises, at the largest of both that the parameters allow."""
    visibility_s = properties("IntakeQueue")["VisibilityTimeout"]
    assert visibility_s >= 6 * limits("MessagesTimeoutS")[2] + limits("IntakeWindowS")[2]


def test_the_queues_own_count_is_no_judge_of_a_message() -> None:
    """Only after as many receives as the queue can count does it give one up, to the dead letters.

    Each may be a bad hour of the ledger; the function puts aside itself what can never be taken.
    """
    assert properties("IntakeQueue")["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["IntakeDeadLetterQueue", "Arn"]},
        "maxReceiveCount": 1000,
    }


def test_only_the_intake_queue_may_bury_there() -> None:
    """The allowance names the queue by its name, since a reference would be a circle."""
    allowed = properties("IntakeDeadLetterQueue")["RedriveAllowPolicy"]
    name = properties("IntakeQueue")["QueueName"]["Fn::Sub"]
    arn = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:" + name
    assert allowed == {"redrivePermission": "byQueue", "sourceQueueArns": [{"Fn::Sub": arn}]}


def test_the_queues_retentions_are_those_that_the_ledgers_memory_counts_with() -> None:
    """The parameters are the settings, so that no row goes before its last message can come."""
    assert properties("IntakeQueue")["MessageRetentionPeriod"] == {"Ref": "IntakeRetentionS"}
    dead = properties("IntakeDeadLetterQueue")["MessageRetentionPeriod"]
    assert dead == {"Ref": "IntakeDeadLetterRetentionS"}
    assert VARIABLES["INTAKE_RETENTION_S"] == {"Ref": "IntakeRetentionS"}
    assert VARIABLES["INTAKE_DEAD_LETTER_RETENTION_S"] == dead


def test_a_dead_letter_is_not_dead_on_arrival() -> None:
    """It keeps the time of its first sending, so its queue must keep it for longer: 14 days."""
    assert limits("IntakeDeadLetterRetentionS")[1:] == (14 * DAY_S, 14 * DAY_S)
    assert limits("IntakeRetentionS")[1] < limits("IntakeDeadLetterRetentionS")[1]


def test_rejects_are_kept_for_a_person_and_read_by_no_function() -> None:
    """For 14 days, the longest that a queue keeps; no event source takes them or dead letters."""
    assert properties("IntakeRejectsQueue")["MessageRetentionPeriod"] == 14 * DAY_S
    sources = of_type("AWS::Lambda::EventSourceMapping").values()
    read = [each["EventSourceArn"] for each in sources if "EventSourceArn" in each]
    for name in ("IntakeRejectsQueue", "IntakeDeadLetterQueue"):
        assert {"Fn::GetAtt": [name, "Arn"]} not in read


def test_messages_come_from_the_intake_queue_and_one_alone_can_fail() -> None:
    """The function's answer names the messages that come again, so the source must read it."""
    assert SOURCE["EventSourceArn"] == {"Fn::GetAtt": ["IntakeQueue", "Arn"]}
    assert chosen_of(SOURCE, {})["FunctionName"] == {"Ref": "MessagesFunction"}
    assert SOURCE["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert partial_answer([]) == {"batchItemFailures": []}
    assert "Enabled" not in SOURCE


def test_calls_of_the_core_from_the_queue_are_bounded_by_a_parameter() -> None:
    """The platform takes 2 to 1000 batches at once, and the parameter no other number."""
    assert SOURCE["ScalingConfig"] == {"MaximumConcurrency": {"Ref": "IntakeConcurrency"}}
    assert limits("IntakeConcurrency") == (2, 5, 1000)


def test_no_batch_is_larger_than_what_sqs_gives_without_a_window() -> None:
    """Above 10 it demands a window of a second, which the smallest one is not."""
    assert SOURCE["BatchSize"] == {"Ref": "IntakeBatchSize"}
    assert limits("IntakeBatchSize") == (1, 10, 10)
    assert SOURCE["MaximumBatchingWindowInSeconds"] == {"Ref": "IntakeWindowS"}
    assert limits("IntakeWindowS")[:2] == (0, 0)
    assert "Above 10 SQS demands a window" in PARAMETERS["IntakeBatchSize"]["Description"]


def test_the_queue_is_called_as_its_senders_and_the_settings_call_it() -> None:
    """Its name is known before it is there, so that a source can be given its operation."""
    name = properties("IntakeQueue")["QueueName"]["Fn::Sub"]
    source = "sqs:" + name.replace("${AWS::StackName}", "relayhub")
    assert source in PARAMETERS["SourceOperations"]["Description"]
    made = settings.load(defaults() | {"SOURCE_OPERATIONS": f'{{"{source}":"transfer"}}'})
    assert made.operation_of(source) == "transfer"

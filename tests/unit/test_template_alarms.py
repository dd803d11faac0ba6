"""An alarm hangs on a metric that is really written, and says something when it should."""

from typing import Any, Final

import pytest

from relayhub import queues
from relayhub.flows import cancel, intake, purge, relay, reprocess, resolve
from tests.unit.template_kit import (
    PARAMETERS,
    RESOURCES,
    of_type,
    properties,
)

ALARMS: Final = of_type("AWS::CloudWatch::Alarm")
MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
# What each alarm looks at, and whose it is: the hub's metrics by service, the platform's by what
# they measure.
EXPECTED: Final[dict[str, tuple[str, Any]]] = {
    "ResolverMissingAlarm": ("ResolverRuns", "resolver"),
    "RelayContradictionAlarm": ("Contradiction", "relay"),
    "MessagesContradictionAlarm": ("Contradiction", "messages"),
    "ReprocessorContradictionAlarm": ("Contradiction", "reprocessor"),
    "RelayFencedAlarm": ("FencedLateWriter", "relay"),
    "MessagesFencedAlarm": ("FencedLateWriter", "messages"),
    "ReprocessorFencedAlarm": ("FencedLateWriter", "reprocessor"),
    "RelayCanaryAlarm": ("Errors", {"Ref": "RelayFunction"}),
    "MessagesCanaryAlarm": ("Errors", {"Ref": "MessagesFunction"}),
    "ReprocessorCanaryAlarm": ("Errors", {"Ref": "ReprocessorFunction"}),
    "RelayFaultAlarm": ("Fault", "relay"),
    "MessagesFaultAlarm": ("Fault", "messages"),
    "ReprocessorFaultAlarm": ("Fault", "reprocessor"),
    "CoreLongestAlarm": ("CoreLongestWrong", "resolver"),
    "ResolverClockAlarm": ("ClockOff", "resolver"),
    "PurgerClockAlarm": ("ClockOff", "purger"),
    "UnknownOverdueAlarm": ("OldestDue.UNKNOWN", "resolver"),
    "UnknownOldAlarm": ("OldestRow.UNKNOWN", "purger"),
    "PurgerRepairsAlarm": ("PurgerRepairs", "purger"),
    "HintRejectedAlarm": ("HintRejected", "reprocessor"),
    "HintRejectsAlarm": (
        "ApproximateNumberOfMessagesVisible",
        {"Fn::GetAtt": ["HintRejectsQueue", "QueueName"]},
    ),
    "DeadLetterAgeAlarm": (
        "ApproximateAgeOfOldestMessage",
        {"Fn::GetAtt": ["DeadLetterQueue", "QueueName"]},
    ),
    "ReprocessorErrorsAlarm": ("Errors", {"Ref": "ReprocessorFunction"}),
    "MessageRejectedAlarm": ("MessageRejected", "messages"),
    "IntakeRejectsAlarm": (
        "ApproximateNumberOfMessagesVisible",
        {"Fn::GetAtt": ["IntakeRejectsQueue", "QueueName"]},
    ),
    "IntakeDeadLettersAlarm": (
        "ApproximateNumberOfMessagesVisible",
        {"Fn::GetAtt": ["IntakeDeadLetterQueue", "QueueName"]},
    ),
    "MessageGivenBackAlarm": ("MessageGivenBack", "messages"),
    "IntakeAgeAlarm": (
        "ApproximateAgeOfOldestMessage",
        {"Fn::GetAtt": ["IntakeQueue", "QueueName"]},
    ),
    "MessagesErrorsAlarm": ("Errors", {"Ref": "MessagesFunction"}),
    "KafkaLagAlarm": ("OffsetLag", {"Ref": "MessagesFunction"}),
    "PurgerErrorsAlarm": ("Errors", {"Ref": "PurgerFunction"}),
    "UnknownAgeAlarm": ("OldestAge.UNKNOWN", "resolver"),
    "MoneyInDoubtAlarm": ("MoneyInDoubt", {"Ref": "DoubtCurrency"}),
    "HeldRowsAlarm": ("OpenRows.HELD", "resolver"),
    "ResolverHeldAlarm": ("Held", "resolver"),
    "SentOverdueAlarm": ("OldestDue.SENT", "resolver"),
    "ReceivedOverdueAlarm": ("OldestDue.RECEIVED", "resolver"),
    "ResolverRowFaultAlarm": ("RowFault", "resolver"),
    "ReprocessorRowFaultAlarm": ("RowFault", "reprocessor"),
    "PurgerRowFaultAlarm": ("RowFault", "purger"),
    "ResolverShardFaultAlarm": ("ShardFault", "resolver"),
    "ReprocessorShardFaultAlarm": ("ShardFault", "reprocessor"),
    "SurveyIncompleteAlarm": ("SurveyIncomplete", "resolver"),
    "GaugesLostAlarm": ("GaugesLost", "resolver"),
    "RelayClockAlarm": ("ClockOff", "relay"),
    "MessagesClockAlarm": ("ClockOff", "messages"),
    "ReprocessorClockAlarm": ("ClockOff", "reprocessor"),
    "RelayRefusalsAlarm": ("CoreRefused", "relay"),
    "MessagesRefusalsAlarm": ("CoreRefused", "messages"),
    "ReprocessorRefusalsAlarm": ("CoreRefused", "reprocessor"),
    "RelayCircuitAlarm": ("CircuitClosed", "relay"),
    "MessagesCircuitAlarm": ("CircuitClosed", "messages"),
    "ReprocessorCircuitAlarm": ("CircuitClosed", "reprocessor"),
    "CoreClosedAlarm": ("CoreClosed", "resolver"),
    "ResolverSwitchesAlarm": ("SwitchesUnread", "resolver"),
    "ReprocessorSwitchesAlarm": ("SwitchesUnread", "reprocessor"),
    "RelayE906Alarm": ("HubRefused", "relay"),
    "RelayLedgerRefusedAlarm": ("LedgerRefused", "relay"),
    "MessagesLedgerRefusedAlarm": ("LedgerRefused", "messages"),
    "RelayNotReadyAlarm": ("NotReady", "relay"),
    "MessagesNotReadyAlarm": ("NotReady", "messages"),
    "RelayNotStoredAlarm": ("OutcomeNotStored", "relay"),
    "MessagesNotStoredAlarm": ("OutcomeNotStored", "messages"),
    "ReprocessorNotStoredAlarm": ("OutcomeNotStored", "reprocessor"),
    "ResolverNotStoredAlarm": ("OutcomeNotStored", "resolver"),
    "RelayUnreadableAnswerAlarm": ("UnreadableAnswer", "relay"),
    "RelayErrorsAlarm": ("Errors", {"Ref": "RelayFunction"}),
    "RelayThrottlesAlarm": ("Throttles", {"Ref": "RelayFunction"}),
    "FailedOverdueAlarm": ("OldestDue.FAILED", "reprocessor"),
    "ParkedRowsAlarm": ("OpenRows.PARKED", "resolver"),
    "SweepMissingAlarm": ("SweepRuns", "reprocessor"),
    "DeadLetterDepthAlarm": (
        "ApproximateNumberOfMessagesVisible",
        {"Fn::GetAtt": ["DeadLetterQueue", "QueueName"]},
    ),
    "IntakeLostAlarm": ("IntakeLost", "relay"),
    "OrderAtRiskAlarm": ("OrderAtRisk", "messages"),
    "IntakeRejectsAgeAlarm": (
        "ApproximateAgeOfOldestMessage",
        {"Fn::GetAtt": ["IntakeRejectsQueue", "QueueName"]},
    ),
    "IntakeDeadLettersAgeAlarm": (
        "ApproximateAgeOfOldestMessage",
        {"Fn::GetAtt": ["IntakeDeadLetterQueue", "QueueName"]},
    ),
    "PurgerMissingAlarm": ("PurgerRuns", "purger"),
}
# Alarms on a count: one is enough.
AT_ONE: Final = [
    *("RelayContradictionAlarm", "ReprocessorContradictionAlarm", "CoreLongestAlarm"),
    *("RelayFencedAlarm", "ReprocessorFencedAlarm", "PurgerRepairsAlarm", "HintRejectedAlarm"),
    *("HintRejectsAlarm", "PurgerErrorsAlarm", "ResolverClockAlarm", "PurgerClockAlarm"),
    *("MessagesContradictionAlarm", "MessagesFencedAlarm", "MessageRejectedAlarm"),
    *("IntakeRejectsAlarm", "IntakeDeadLettersAlarm"),
    *("RelayCanaryAlarm", "MessagesCanaryAlarm", "ReprocessorCanaryAlarm"),
    *("RelayFaultAlarm", "MessagesFaultAlarm", "ReprocessorFaultAlarm"),
    *("ResolverRowFaultAlarm", "ReprocessorRowFaultAlarm", "PurgerRowFaultAlarm"),
    *("RelayClockAlarm", "MessagesClockAlarm", "ReprocessorClockAlarm", "ResolverHeldAlarm"),
    *("RelayCircuitAlarm", "MessagesCircuitAlarm", "ReprocessorCircuitAlarm"),
    *("RelayNotStoredAlarm", "MessagesNotStoredAlarm", "ReprocessorNotStoredAlarm"),
    *("ResolverNotStoredAlarm", "RelayUnreadableAnswerAlarm", "RelayErrorsAlarm"),
    "OrderAtRiskAlarm",
]
# Alarms on what mends itself, unless it goes on: once in each of five minutes.
IN_EACH_OF_FIVE_MINUTES: Final = [
    *("ReprocessorErrorsAlarm", "MessagesErrorsAlarm", "RelayThrottlesAlarm", "IntakeLostAlarm"),
    *("ResolverShardFaultAlarm", "ReprocessorShardFaultAlarm", "SurveyIncompleteAlarm"),
    *("ResolverSwitchesAlarm", "ReprocessorSwitchesAlarm", "GaugesLostAlarm"),
    *("RelayLedgerRefusedAlarm", "MessagesLedgerRefusedAlarm"),
    *("RelayNotReadyAlarm", "MessagesNotReadyAlarm"),
]
# Alarms on a message's age, and its queue.
AGES: Final = {"DeadLetterAgeAlarm": "DeadLetterQueue", "IntakeAgeAlarm": "IntakeQueue"}


def own_alarms() -> list[str]:
    """Return the alarms on the hub's own metrics."""
    return [name for name, (_, of) in EXPECTED.items() if isinstance(of, str)]


def test_there_is_an_alarm_for_everything_that_must_be_seen() -> None:
    """Each alarm looks at one metric of one function, queue or service."""
    found = {
        name: (each["MetricName"], each["Dimensions"][0]["Value"]) for name, each in ALARMS.items()
    }
    assert found == EXPECTED


@pytest.mark.parametrize("metric", ["Contradiction", "FencedLateWriter"])
def test_every_sender_has_the_alarms_of_late_writers(metric: str) -> None:
    """Only a function whose flow makes attempts can write too late, and each of them is watched."""
    # A message goes the relay's way, under the message function's own name.
    flows = (("relay", relay), ("messages", vars(intake)["relay"]), ("reprocessor", reprocess))
    senders = {function for function, flow in flows if hasattr(flow, "attempt")}
    watched = {of for each, of in EXPECTED.values() if each == metric}
    assert watched == senders
    assert not any(hasattr(flow, "attempt") for flow in (resolve, purge, cancel))


@pytest.mark.parametrize("name", AT_ONE)
def test_one_is_enough(name: str) -> None:
    """What must never happen raises the alarm the first time, within a minute."""
    alarm = ALARMS[name]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Period"]) == (1, 1, 60)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"


@pytest.mark.parametrize("name", IN_EACH_OF_FIVE_MINUTES)
def test_what_comes_again_by_itself_is_an_alarm_when_it_goes_on(name: str) -> None:
    """Once is no alarm, five minutes on end are."""
    alarm = ALARMS[name]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Period"]) == (1, 5, 60)
    assert (alarm["Statistic"], "DatapointsToAlarm" in alarm) == ("Sum", False)


def test_even_one_message_that_is_always_given_back_is_an_alarm() -> None:
    """It comes every minute, so each period of a quarter of an hour sees it."""
    alarm = ALARMS["MessageGivenBackAlarm"]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (1, 3)
    assert alarm["Period"] > 2 * queues.AGAIN_S
    assert (alarm["Statistic"], "DatapointsToAlarm" in alarm) == ("Sum", False)


def test_what_is_given_back_is_a_dead_letter_before_its_queue_forgets_it() -> None:
    """At the default of the queue's retention, with half of it to spare."""
    receives = RESOURCES["IntakeQueue"]["Properties"]["RedrivePolicy"]["maxReceiveCount"]
    retention_s = PARAMETERS["IntakeRetentionS"]["Default"]
    assert receives * queues.AGAIN_S * 2 < retention_s


def test_a_topic_that_is_far_ahead_for_a_quarter_of_an_hour_is_an_alarm() -> None:
    """By the least of each five minutes, and only where there is a topic."""
    alarm = ALARMS["KafkaLagAlarm"]
    assert RESOURCES["KafkaLagAlarm"]["Condition"] == "HasKafka"
    assert alarm["Threshold"] == {"Ref": "KafkaLagRecords"}
    assert (alarm["Statistic"], alarm["Period"] * alarm["EvaluationPeriods"]) == ("Minimum", 900)


def test_the_alarm_on_money_is_off_unless_a_currency_is_named() -> None:
    """Its limit is a sum of one currency, over all channels; no other is switched on or off."""
    assert RESOURCES["MoneyInDoubtAlarm"]["Condition"] == "HasDoubtLimit"
    assert PARAMETERS["DoubtCurrency"]["Default"] == ""
    conditional = {name for name in ALARMS if "Condition" in RESOURCES[name]}
    assert conditional == {"KafkaLagAlarm", "MoneyInDoubtAlarm"}


def platforms_alarms() -> list[str]:
    """Return the alarms on the metrics of Lambda and SQS."""
    return [name for name in ALARMS if name not in own_alarms() and name != "MoneyInDoubtAlarm"]


@pytest.mark.parametrize("name", platforms_alarms())
def test_an_alarm_on_the_platforms_metric_names_its_namespace_and_dimension(name: str) -> None:
    """A queue's by its name, a function's by its name: another dimension has no values."""
    alarm = ALARMS[name]
    is_functions = alarm["MetricName"] in ("Errors", "OffsetLag", "Throttles")
    assert alarm["Namespace"] == ("AWS/Lambda" if is_functions else "AWS/SQS")
    assert alarm["Dimensions"][0]["Name"] == ("FunctionName" if is_functions else "QueueName")


def test_ages_are_alarmed_in_the_metrics_own_unit() -> None:
    """The hub's ages are milliseconds, the queue's are seconds."""
    assert ALARMS["UnknownOverdueAlarm"]["Threshold"] == 15 * MINUTE_MS
    assert ALARMS["UnknownOldAlarm"]["Threshold"] == DAY_MS
    for name in ("UnknownOverdueAlarm", "UnknownOldAlarm", *AGES):
        assert ALARMS[name]["Statistic"] == "Maximum"


@pytest.mark.parametrize(("name", "queue"), AGES.items(), ids=AGES)
def test_an_hour_of_waiting_in_a_queue_is_an_alarm(name: str, queue: str) -> None:
    """In seconds; what was given back is hidden for a while, which is no reason for an alarm."""
    assert ALARMS[name]["Threshold"] == 3600
    assert 2 * properties(queue)["VisibilityTimeout"] <= 3600


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_tells_the_topic_if_there_is_one(name: str) -> None:
    """Without a topic an alarm is only seen by who looks; it says in words what is wrong."""
    tells = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert ALARMS[name]["AlarmActions"] == tells
    assert ALARMS[name]["AlarmDescription"]["Fn::Sub"]
    assert PARAMETERS["AlarmTopicArn"]["Default"] == ""

"""An alarm hangs on a metric that is really written, and says something when it should."""

import ast
from pathlib import Path
from typing import Any, Final

import pytest

from relayhub import telemetry
from relayhub.flows import cancel, purge, relay, reprocess, resolve
from relayhub.states import State
from tests.unit.template_kit import FUNCTIONS, PARAMETERS, VARIABLES, limits, of_type, properties

ALARMS: Final = of_type("AWS::CloudWatch::Alarm")
MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
# What each alarm looks at, and whose it is: the hub's metrics by service, the platform's by what
# they measure.
EXPECTED: Final[dict[str, tuple[str, Any]]] = {
    "ResolverMissingAlarm": ("ResolverRuns", "resolver"),
    "RelayContradictionAlarm": ("Contradiction", "relay"),
    "ReprocessorContradictionAlarm": ("Contradiction", "reprocessor"),
    "RelayFencedAlarm": ("FencedLateWriter", "relay"),
    "ReprocessorFencedAlarm": ("FencedLateWriter", "reprocessor"),
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
    "PurgerErrorsAlarm": ("Errors", {"Ref": "PurgerFunction"}),
}
# Alarms on a count: one is enough.
AT_ONE: Final = [
    *("RelayContradictionAlarm", "ReprocessorContradictionAlarm", "CoreLongestAlarm"),
    *("RelayFencedAlarm", "ReprocessorFencedAlarm", "PurgerRepairsAlarm", "HintRejectedAlarm"),
    *("HintRejectsAlarm", "PurgerErrorsAlarm", "ResolverClockAlarm", "PurgerClockAlarm"),
]


def own_alarms() -> list[str]:
    """Return the alarms on the hub's own metrics."""
    return [name for name, (_, of) in EXPECTED.items() if isinstance(of, str)]


def written_names() -> set[str]:
    """Return every text in telemetry's source; of an f-string the part before its value."""
    tree = ast.parse(Path(telemetry.__file__).read_text())
    return {str(each.value) for each in ast.walk(tree) if isinstance(each, ast.Constant)}


def test_there_is_an_alarm_for_everything_that_must_be_seen() -> None:
    """Each alarm looks at one metric of one function, queue or service."""
    found = {
        name: (each["MetricName"], each["Dimensions"][0]["Value"]) for name, each in ALARMS.items()
    }
    assert found == EXPECTED


@pytest.mark.parametrize("name", own_alarms())
def test_an_alarm_hangs_on_a_metric_that_the_hub_writes(name: str) -> None:
    """Namespace, name and dimension are those of telemetry; else it would never say a word."""
    alarm = ALARMS[name]
    assert alarm["Namespace"] == VARIABLES["POWERTOOLS_METRICS_NAMESPACE"]
    assert alarm["Dimensions"][0]["Name"] == "service"
    services = [
        each["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] for each in FUNCTIONS.values()
    ]
    assert alarm["Dimensions"][0]["Value"] in services
    group, dot, state = alarm["MetricName"].partition(".")
    assert {group + dot, state} - {""} <= written_names() | set(State)


@pytest.mark.parametrize("metric", ["Contradiction", "FencedLateWriter"])
def test_every_sender_has_the_alarms_of_late_writers(metric: str) -> None:
    """Only a function whose flow makes attempts can write too late, and each of them is watched."""
    senders = {
        function
        for function, flow in (("relay", relay), ("reprocessor", reprocess))
        if hasattr(flow, "attempt")
    }
    watched = {of for each, of in EXPECTED.values() if each == metric}
    assert watched == senders
    assert not any(hasattr(flow, "attempt") for flow in (resolve, purge, cancel))


@pytest.mark.parametrize("name", AT_ONE)
def test_one_is_enough(name: str) -> None:
    """What must never happen raises the alarm the first time, within a minute."""
    alarm = ALARMS[name]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Period"]) == (1, 1, 60)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"


def test_five_minutes_without_a_run_of_the_resolver_are_an_alarm() -> None:
    """No word counts as no run, and no allowed timeout makes one run last as long."""
    alarm = ALARMS["ResolverMissingAlarm"]
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    silent_s = alarm["Period"] * alarm["EvaluationPeriods"]
    assert silent_s == 300
    assert limits("ResolverTimeoutS")[2] + 60 <= silent_s


@pytest.mark.parametrize("name", [each for each in ALARMS if each != "ResolverMissingAlarm"])
def test_silence_is_no_alarm_where_nothing_happened(name: str) -> None:
    """A metric that is written only when something happens is missing most of the time."""
    assert ALARMS[name]["TreatMissingData"] == "notBreaching"


def test_ages_are_alarmed_in_the_metrics_own_unit() -> None:
    """The hub's ages are milliseconds, the queue's are seconds."""
    assert ALARMS["UnknownOverdueAlarm"]["Threshold"] == 15 * MINUTE_MS
    assert ALARMS["UnknownOldAlarm"]["Threshold"] == DAY_MS
    assert ALARMS["DeadLetterAgeAlarm"]["Threshold"] == 3600
    for name in ("UnknownOverdueAlarm", "UnknownOldAlarm", "DeadLetterAgeAlarm"):
        assert ALARMS[name]["Statistic"] == "Maximum"
    # A hint that was given back is hidden for so long, which is no reason for an alarm.
    hidden_s = properties("DeadLetterQueue")["VisibilityTimeout"]
    assert ALARMS["DeadLetterAgeAlarm"]["Threshold"] >= 2 * hidden_s


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_tells_the_topic_if_there_is_one(name: str) -> None:
    """Without a topic an alarm is only seen by who looks; it says in words what is wrong."""
    tells = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert ALARMS[name]["AlarmActions"] == tells
    assert ALARMS[name]["AlarmDescription"]
    assert PARAMETERS["AlarmTopicArn"]["Default"] == ""

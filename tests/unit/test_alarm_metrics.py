"""An alarm hangs on a metric that its function writes, and a warning in the log has an alarm."""

from __future__ import annotations

from typing import Any, Final

import pytest

from relayhub import telemetry
from relayhub.core import Reason
from relayhub.states import State
from tests.unit.metrics_kit import ROW, SERVICES, WARNINGS, gauges, words_of, written_by
from tests.unit.template_kit import VARIABLES, of_type

ALARMS: Final = of_type("AWS::CloudWatch::Alarm")
OWN: Final = {"Ref": "AWS::StackName"}
# Warnings that need nobody at night, by metric; or by metric and function.
WITHOUT_ALARM: Final[dict[str | tuple[str, str], str]] = {
    "ClaimWithoutAnswer": "told as E901; the resolver finishes the row, or the message comes again",
    "GateClosed": "the core is away: the alarms on refusals and on overdue rows say so",
    "HintLost": "the sweep hints again within a minute",
    "LateAnswer": "the answer was written under the same claim; nothing is left to do",
    "Undecided": "the row is asked about again: the alarms on ages say when it takes too long",
    ("CircuitClosed", "resolver"): "it asks, and never sends: only a call counts",
    ("Contradiction", "resolver"): "only a FAILED row can contradict an inquiry, and it has none",
    ("CoreLongestWrong", "relay"): "the row is held, which is a contradiction",
    ("CoreLongestWrong", "messages"): "the row is held, which is a contradiction",
    ("CoreLongestWrong", "reprocessor"): "the row is held, which is a contradiction",
    ("IntakeLost", "messages"): "it takes what was queued, and queues nothing",
    ("SwitchesUnread", "relay"): "it answers E906 (NotReady) instead",
    ("SwitchesUnread", "messages"): "it gives the message back (NotReady) instead",
    ("UnreadableAnswer", "messages"): "nobody waits for the answer of a message",
}


def own_alarms() -> dict[str, dict[str, Any]]:
    """Return the alarms on what the functions log."""
    return {
        name: each
        for name, each in ALARMS.items()
        if each["Namespace"] == OWN and each["Dimensions"][0]["Name"] == "service"
    }


@pytest.mark.parametrize("name", own_alarms())
def test_an_alarms_function_writes_its_metric(name: str) -> None:
    """Under this name and dimension, in this namespace; else it would never say a word."""
    alarm = ALARMS[name]
    (dimension,) = alarm["Dimensions"]
    assert alarm["MetricName"] in written_by(dimension["Value"])
    assert VARIABLES["POWERTOOLS_METRICS_NAMESPACE"] == OWN


@pytest.mark.parametrize("name", own_alarms())
def test_an_age_is_alarmed_in_milliseconds_and_all_else_by_count(name: str) -> None:
    """What has a unit of time is the largest of its time; a sum of ages would say nothing."""
    alarm = ALARMS[name]
    unit = written_by(alarm["Dimensions"][0]["Value"])[alarm["MetricName"]]
    if unit == "Milliseconds":
        assert alarm["Statistic"] == "Maximum"
    else:
        assert unit == "Count"


def test_the_alarm_on_money_hangs_on_the_sum_of_a_currency() -> None:
    """It is written straight to CloudWatch, by currency alone and by channel and currency."""
    alarm = ALARMS["MoneyInDoubtAlarm"]
    names = tuple(each["Name"] for each in alarm["Dimensions"])
    assert (alarm["Namespace"], names) == (OWN, ("currency",))
    assert (alarm["MetricName"], names) in gauges()


@pytest.mark.parametrize("word", WARNINGS)
def test_every_warning_has_an_alarm_or_a_reason_for_having_none(word: str) -> None:
    """For each function that notes it."""
    metric = WARNINGS[word]
    services = [service for service in SERVICES if word in words_of(service)]
    assert services, f"nobody notes {word}"
    watched = {
        each["Dimensions"][0]["Value"]
        for each in own_alarms().values()
        if each["MetricName"] == metric
    }
    if metric in WITHOUT_ALARM:
        assert not watched
        return
    excused = {service for service in services if (metric, service) in WITHOUT_ALARM}
    assert watched | excused == set(services)
    assert not watched & excused


def test_every_reason_is_of_a_warning_that_there_is() -> None:
    """A reason that outlived its warning would excuse the next one of that name."""
    for each in WITHOUT_ALARM:
        metric, service = (each, None) if isinstance(each, str) else each
        words = [word for word, name in WARNINGS.items() if name == metric]
        assert words
        assert service is None or any(word in words_of(service) for word in words)


UNREACHED: Final = {
    *(Reason.DNS_FAILED, Reason.CONNECT_REFUSED, Reason.CONNECT_TIMEOUT, Reason.CONNECT_FAILED),
    *(Reason.TLS_CERTIFICATE, Reason.TLS_TIMEOUT, Reason.TLS_FAILED),
}
STOPPED: Final = ("core_closed", "claim_too_slow", "stopped", "clock_off")


@pytest.mark.parametrize("reason", [*Reason, *STOPPED])
def test_a_refusal_is_a_call_that_got_no_connection(reason: str) -> None:
    """What the hub itself stopped before the call is none, and counts as no call either."""
    telemetry.metrics.clear_metrics()
    telemetry.note("not_sent", reason=reason)
    found = telemetry.metrics.metric_set.get("CoreRefused", {}).get("Value")
    telemetry.metrics.clear_metrics()
    assert found == ([1] if reason in UNREACHED else None)


def test_every_answer_and_every_doubt_is_a_call_that_was_not_refused() -> None:
    """So the average is the share of the calls, and its count is their number."""
    assert {"CoreRefused", "Step.doubted"} <= written_by("relay").keys()
    telemetry.metrics.clear_metrics()
    telemetry.step({"by": "x", "event": "answered", "to": State.DONE, "at": 1}, ROW)
    telemetry.note("in_doubt", guid="G-1", attempt=1, reason="no_answer")
    telemetry.note("answered", code="E906")
    telemetry.note("answered", code="E901")
    values = {name: each["Value"] for name, each in telemetry.metrics.metric_set.items()}
    telemetry.metrics.clear_metrics()
    assert (values["CoreRefused"], values["HubRefused"]) == ([0, 0], [1, 0])

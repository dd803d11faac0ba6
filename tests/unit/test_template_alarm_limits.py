"""From when on what is told each minute is an alarm, and for how long a job may be silent."""

from typing import Any, Final

import pytest

from tests.unit.template_kit import limits, of_type

ALARMS: Final = of_type("AWS::CloudWatch::Alarm")
MINUTE_MS: Final = 60_000
# Alarms on shares: 0 or 1 for each call or answer, and the share that is too many.
SHARES: Final = {
    **dict.fromkeys(
        ("RelayRefusalsAlarm", "MessagesRefusalsAlarm", "ReprocessorRefusalsAlarm"), 0.5
    ),
    "RelayE906Alarm": 0.05,
}
# Alarms on what is told each minute: the largest value that is borne, in the metric's own unit.
GAUGES: Final[dict[str, Any]] = {
    "UnknownAgeAlarm": {"Ref": "UnknownAgeMs"},
    "MoneyInDoubtAlarm": {"Ref": "DoubtLimit"},
    "HeldRowsAlarm": 1,
    "ParkedRowsAlarm": 1,
    "SentOverdueAlarm": 5 * MINUTE_MS,
    "ReceivedOverdueAlarm": 5 * MINUTE_MS,
    "FailedOverdueAlarm": 30 * MINUTE_MS,
}
# Where silence is what the alarm is for, and how long it may last; seconds.
MISSING: Final = {
    "ResolverMissingAlarm": 300,
    "SweepMissingAlarm": 300,
    "PurgerMissingAlarm": 2 * 86_400,
}


@pytest.mark.parametrize("name", SHARES)
def test_a_share_is_an_alarm_in_three_of_five_minutes(name: str) -> None:
    """The average of zeros and ones; one call in a quiet minute is no alarm by itself."""
    alarm = ALARMS[name]
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Average", SHARES[name])
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"], alarm["Period"]) == (3, 5, 60)


@pytest.mark.parametrize("name", GAUGES)
def test_what_stands_is_an_alarm_at_the_first_look(name: str) -> None:
    """The resolver, or the sweep, looks each minute; a second look would only be later."""
    alarm = ALARMS[name]
    assert (alarm["Threshold"], alarm["Statistic"]) == (GAUGES[name], "Maximum")
    assert (alarm["EvaluationPeriods"], alarm["Period"]) == (1, 60)


def test_a_closed_core_is_an_alarm_when_it_stays_closed() -> None:
    """Half an hour without a minute in which it was open."""
    alarm = ALARMS["CoreClosedAlarm"]
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Minimum", 1)
    assert (alarm["EvaluationPeriods"], alarm["Period"]) == (30, 60)


@pytest.mark.parametrize(("name", "silent_s"), MISSING.items(), ids=MISSING)
def test_a_job_that_does_not_run_is_an_alarm(name: str, silent_s: int) -> None:
    """No word counts as no run, and so does a run of a job that is held."""
    alarm = ALARMS[name]
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert (alarm["Statistic"], alarm["Period"] * alarm["EvaluationPeriods"]) == ("Sum", silent_s)


@pytest.mark.parametrize(
    ("name", "timeout"),
    [
        ("ResolverMissingAlarm", "ResolverTimeoutS"),
        ("SweepMissingAlarm", "ReprocessorTimeoutS"),
        ("PurgerMissingAlarm", "PurgerTimeoutS"),
    ],
    ids=MISSING,
)
def test_no_run_lasts_as_long_as_a_job_may_be_silent(name: str, timeout: str) -> None:
    """No allowed timeout makes a job that works look like one that does not."""
    assert limits(timeout)[2] + 60 <= MISSING[name]


@pytest.mark.parametrize("name", [each for each in ALARMS if each not in MISSING])
def test_silence_is_no_alarm_where_nothing_happened(name: str) -> None:
    """A metric that is written only when something happens is missing most of the time."""
    assert ALARMS[name]["TreatMissingData"] == "notBreaching"

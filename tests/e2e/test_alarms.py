"""The deployed alarms see what the functions log: a doubt raises one, and its end ends it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from local.core_client import CoreControl
from local.rounds import REPROCESSOR, RESOLVER, until_settled
from local.stack import RELAY, Stack
from local.stack_deploy import STACK_NAME
from relayhub.hub import epoch_ms

pytestmark = pytest.mark.e2e

TRANSFER: Final = b'{"from":"A001","to":"A002","amount":100}'
ALARM: Final = "UnknownAgeAlarm"
FUNCTIONS: Final = (RELAY, RESOLVER, REPROCESSOR)
# What PutMetricAlarm takes of what DescribeAlarms tells.
COPIED: Final = (
    *("Namespace", "MetricName", "Dimensions", "Statistic", "EvaluationPeriods", "Threshold"),
    *("ComparisonOperator", "TreatMissingData"),
)
# The shortest period that an alarm may have; the deployed one looks at a whole minute.
PERIOD_S: Final = 10
WITHIN_S: Final = 40.0


def described(stack: Stack, name: str) -> dict[str, Any]:
    """Return the alarm as it is now."""
    client = stack.emulator.client("cloudwatch")
    (found,) = client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return dict(found)


def quick_copy(stack: Stack, alarm: dict[str, Any]) -> str:
    """Make the same alarm over a shorter time, and return its name."""
    name = f"{alarm['AlarmName']}-quick"
    same = {each: alarm[each] for each in COPIED}
    stack.emulator.client("cloudwatch").put_metric_alarm(AlarmName=name, Period=PERIOD_S, **same)
    return name


def test_a_doubt_raises_the_alarm_on_its_age_and_its_end_ends_it(
    stack: Stack, core: CoreControl
) -> None:
    """The resolver tells the age each time; its lines are forwarded as metrics."""
    until_settled(stack, within_s=60)
    forwarder = stack.forwarder(epoch_ms())
    deployed = described(stack, stack.name_of(ALARM))
    quick = quick_copy(stack, deployed)
    core.set_faults(
        [
            {"kind": "execute_then_hang", "guid": "alarmed-1"},
            {"kind": "inquiry_500", "guid": "alarmed-1"},
        ]
    )
    assert stack.atm.post("alarmed-1", TRANSFER).code == "E901"
    stack.invoke(RESOLVER, {})
    assert forwarder.forward_once() > 0
    assert described(stack, deployed["AlarmName"])["StateValue"] == "ALARM"
    assert described(stack, quick)["StateValue"] == "ALARM"

    core.clear()
    until_settled(stack, within_s=60)
    assert (stack.ledger_row("alarmed-1") or {})["code"] == "0000"
    deadline = time.monotonic() + WITHIN_S
    while described(stack, quick)["StateValue"] != "OK":
        assert time.monotonic() < deadline, "the alarm did not end"
        stack.invoke(RESOLVER, {})
        forwarder.forward_once()
        time.sleep(1)


def test_the_money_in_doubt_reaches_its_metric_and_no_log(stack: Stack, core: CoreControl) -> None:
    """The resolver writes the sum itself, under its role; no line of any function bears it."""
    core.set_faults([{"kind": "execute_then_hang", "guid": "alarmed-2"}])
    body = b'{"from":"A001","to":"A002","amount":471100,"currency":"XTS"}'
    assert stack.atm.post("alarmed-2", body).code == "E901"
    stack.invoke(RESOLVER, {})
    found = stack.emulator.client("cloudwatch").get_metric_statistics(
        Namespace=STACK_NAME,
        MetricName="MoneyInDoubt",
        Dimensions=[{"Name": "currency", "Value": "XTS"}],
        StartTime=datetime.now(UTC) - timedelta(minutes=5),
        EndTime=datetime.now(UTC) + timedelta(minutes=5),
        Period=600,
        Statistics=["Maximum"],
    )
    assert [each["Maximum"] for each in found["Datapoints"]] == [471_100]
    assert not [
        line for each in FUNCTIONS for line in stack.function_logs(each) if "471100" in line
    ]

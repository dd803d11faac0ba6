"""The dashboard shows metrics that there are, under the names of the alarms."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from tests.unit.metrics_kit import SERVICES, gauges, written_by
from tests.unit.template_kit import PARAMETERS, RESOURCES, of_type, properties

BODY: Final[str] = properties("Dashboard")["DashboardBody"]["Fn::Sub"]
# What stands in ${...} is a parameter, a resource or an attribute of one; each becomes its name.
WIDGETS: Final[list[dict[str, Any]]] = json.loads(re.sub(r"\$\{([\w:.]+)\}", r"<\1>", BODY))[
    "widgets"
]
OWN: Final = "<AWS::StackName>"
PLATFORM: Final = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "Throttles", "Duration"},
}


def charts() -> list[dict[str, Any]]:
    """Return the properties of each chart."""
    return [each["properties"] for each in WIDGETS if each["type"] == "metric"]


def metrics() -> list[tuple[str, ...]]:
    """Return namespace, name and dimensions of each metric that a chart names."""
    rows = (row for chart in charts() for row in chart["metrics"] if isinstance(row[0], str))
    return sorted({tuple(each for each in row if isinstance(each, str)) for row in rows})


def searches() -> list[str]:
    """Return the expressions of the charts that search for their metrics."""
    rows = (row for chart in charts() for row in chart["metrics"])
    return [row[0]["expression"] for row in rows if isinstance(row[0], dict)]


def test_everything_that_it_names_is_in_the_template() -> None:
    """A name that is not there would end the deploy; one under a condition, some deploys."""
    for name in re.findall(r"\$\{([\w:.]+)\}", BODY):
        logical = name.partition(".")[0]
        assert logical in {*PARAMETERS, *RESOURCES} or logical.startswith("AWS::")
        assert "Condition" not in RESOURCES.get(logical, {})


def test_it_shows_the_state_of_every_alarm_that_is_always_there() -> None:
    """One look says what is wrong; CloudWatch takes 100 of them."""
    (shown,) = [each["properties"]["alarms"] for each in WIDGETS if each["type"] == "alarm"]
    alarms = [
        name for name in of_type("AWS::CloudWatch::Alarm") if "Condition" not in RESOURCES[name]
    ]
    assert sorted(shown) == sorted(f"<{name}.Arn>" for name in alarms)
    assert len(shown) <= 100


@pytest.mark.parametrize("row", metrics(), ids="-".join)
def test_a_metric_that_it_names_is_written(row: tuple[str, ...]) -> None:
    """The hub's by its function, the platform's by its own name."""
    namespace, name, dimension, of = row
    if namespace == OWN:
        assert dimension == "service"
        assert name in written_by(of)
        return
    assert name in PLATFORM[namespace]
    kind = {"AWS/SQS": "QueueName", "AWS/Lambda": "FunctionName"}[namespace]
    assert dimension == kind
    logical = of.strip("<>").removesuffix(".QueueName")
    assert RESOURCES[logical]["Type"] in ("AWS::SQS::Queue", "AWS::Serverless::Function")


@pytest.mark.parametrize("expression", searches(), ids=range(len(searches())))
def test_a_search_finds_metrics(expression: str) -> None:
    """By the stack's namespace, dimensions that there are, and a word of a metric's name."""
    found = re.fullmatch(
        r"SEARCH\('\{\"<AWS::StackName>\",([\w,]+)\} (.*)', '(Sum|Maximum)', 60\)", expression
    )
    assert found
    dimensions = tuple(found[1].split(","))
    word = re.search(r"MetricName=\"?(\w+)", found[2])
    assert word
    if dimensions == ("service",):
        names = {name for service in SERVICES for name in written_by(service)}
        assert any(name.startswith(word[1]) for name in names)
    else:
        assert (word[1], dimensions) in gauges()


def test_the_charts_of_answers_and_steps_leave_out_what_is_neither() -> None:
    """A search goes by words, and other metrics bear the same word."""
    (answers,) = [each for each in searches() if "MetricName=Answer" in each]
    left_out = re.search(r"NOT \(([\w ]+)\)", answers)
    assert left_out
    words = left_out[1].split(" OR ")
    others = [name for name in written_by("relay") if "Answer" in name and "Answer." not in name]
    assert others
    assert all(any(word in name for word in words) for name in others)


def test_no_two_widgets_lie_on_each_other() -> None:
    """And none reaches over the 24 columns."""
    taken: set[tuple[int, int]] = set()
    for each in WIDGETS:
        cells = {
            (column, line)
            for column in range(each["x"], each["x"] + each["width"])
            for line in range(each["y"], each["y"] + each["height"])
        }
        assert not cells & taken
        assert each["x"] + each["width"] <= 24
        taken |= cells

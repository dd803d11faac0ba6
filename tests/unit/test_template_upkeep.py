"""What runs by itself runs when it should, once, no more of it at a time than is said."""

from typing import Any, Final

import pytest

from relayhub.hint_event import failures
from relayhub.settings import INQUIRY_S_MAX
from tests.unit.template_kit import (
    CONDITIONS,
    DAY_S,
    FUNCTIONS,
    GLOBALS,
    PARAMETERS,
    RESOURCES,
    chosen_of,
    limits,
    of_type,
    properties,
    statements,
)

SCHEDULES: Final = of_type("AWS::Scheduler::Schedule")
SOURCE: Final = "AWS::Lambda::EventSourceMapping"
# Which function runs when: what is in doubt or overdue waits a minute, what is over waits a day.
RHYTHMS: Final = {
    "ResolverSchedule": ("ResolverFunction", "rate(1 minute)"),
    "SweepSchedule": ("ReprocessorFunction", "rate(1 minute)"),
    "PurgerSchedule": ("PurgerFunction", "cron(17 3 * * ? *)"),
}
# A stack's parameter that says how many calls of a function there may be at once.
RESERVED: Final = {
    "RelayFunction": "RelayConcurrency",
    "MessagesFunction": "MessagesConcurrency",
    "ResolverFunction": "ResolverConcurrency",
    "ReprocessorFunction": "ReprocessorConcurrency",
}


def test_every_job_has_its_schedule_and_nothing_else_has() -> None:
    """The resolver and the sweep run every minute, the purger once a day; the relay never."""
    found = {
        name: (chosen_of(each["Target"]["Arn"], {})["Fn::GetAtt"][0], each["ScheduleExpression"])
        for name, each in SCHEDULES.items()
    }
    assert found == RHYTHMS


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_on_time_and_never_repeats_a_run(name: str) -> None:
    """A run that cannot start within a minute is dropped: the next one finds the same rows."""
    schedule = SCHEDULES[name]
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert schedule["Target"]["RetryPolicy"] == {
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
    }
    assert "State" not in schedule


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedules_event_brings_nothing(name: str) -> None:
    """Records would make a hint of it, dry_run would delete nothing: an empty object is neither."""
    assert SCHEDULES[name]["Target"]["Input"] == "{}"


def test_the_platform_repeats_no_asynchronous_call_of_any_function() -> None:
    """Lambda's own two retries would come on top of the schedule's, of a sender above all."""
    assert GLOBALS["EventInvokeConfig"] == {
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
    }
    assert not [name for name, each in FUNCTIONS.items() if "EventInvokeConfig" in each]


def test_the_scheduler_may_only_invoke_the_jobs_of_this_account() -> None:
    """Its role is for schedules of this account, and names the three functions, not the relay."""
    (trust,) = properties("SchedulerRole")["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    bound = trust["Condition"]["StringEquals"]
    assert bound["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    group = "scheduler:${AWS::Region}:${AWS::AccountId}:schedule-group/default"
    assert bound["aws:SourceArn"] == {"Fn::Sub": "arn:${AWS::Partition}:" + group}
    (invoke,) = statements("SchedulerRole")
    assert invoke["Action"] == "lambda:InvokeFunction"
    jobs = [{"Fn::GetAtt": [function, "Arn"]} for function, _ in RHYTHMS.values()]
    by_alias = {"Ref": "ReprocessorFunctionAliaslive"}
    assert [each for each in invoke["Resource"] if each != by_alias] == jobs


@pytest.mark.parametrize("function", FUNCTIONS)
def test_how_often_a_function_may_run_at_once_is_a_parameter_that_can_be_left_out(
    function: str,
) -> None:
    """An account with little to reserve sets it to -1; by default one resolver runs."""
    reserved = FUNCTIONS[function].get("ReservedConcurrentExecutions")
    if function not in RESERVED:
        assert reserved is None
        return
    name = RESERVED[function]
    assert reserved == {"Fn::If": [f"Has{name}", {"Ref": name}, {"Ref": "AWS::NoValue"}]}
    assert limits(name)[:2] == (-1, 1 if function == "ResolverFunction" else -1)


def test_hints_come_from_the_dead_letter_queue_and_one_alone_can_fail() -> None:
    """The reprocessor's answer names the messages that come again, so the source must read it."""
    source = chosen_of(properties("HintsSource"), {})
    assert source["EventSourceArn"] == {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
    assert source["FunctionName"] == {"Ref": "ReprocessorFunction"}
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert failures(["m"]) == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    assert "Enabled" not in source


def test_the_hubs_own_resends_at_once_are_bounded_by_a_parameter() -> None:
    """The platform takes 2 to 1000, and the parameter no other number."""
    maximum = properties("HintsSource")["ScalingConfig"]["MaximumConcurrency"]
    assert maximum == {"Ref": "HintsConcurrency"}
    least, default, most = limits("HintsConcurrency")
    assert (least, most) == (2, 1000)
    assert least <= default <= 10


def test_every_hint_of_a_batch_can_be_handled_before_the_reprocessor_ends() -> None:
    """Each may take an inquiry, the core's whole deadline and the margin, one after the other."""
    hint_s = sum(limits(name)[1] for name in ("CoreDeadlineS", "MarginS")) + INQUIRY_S_MAX
    batch = properties("HintsSource")["BatchSize"]
    assert batch * hint_s <= limits("ReprocessorTimeoutS")[1]
    # At the largest deadline and margin it still fits into the largest timeout.
    longest_s = sum(limits(name)[2] for name in ("CoreDeadlineS", "MarginS")) + INQUIRY_S_MAX
    assert batch * longest_s <= limits("ReprocessorTimeoutS")[2]


def test_a_hint_is_hidden_for_six_of_its_readers_timeouts() -> None:
    """As the platform advises; a hint that is seen while it is handled would be handled twice."""
    visibility_s = properties("DeadLetterQueue")["VisibilityTimeout"]
    assert visibility_s >= 6 * limits("ReprocessorTimeoutS")[2]


def test_the_queues_own_count_is_no_judge_of_a_hint() -> None:
    """Only after as many receives as the queue can count does it give a hint up, to the rejects."""
    redrive = properties("DeadLetterQueue")["RedrivePolicy"]
    assert redrive == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["HintRejectsQueue", "Arn"]},
        "maxReceiveCount": 1000,
    }


def test_rejects_are_kept_for_a_person_and_read_by_no_function() -> None:
    """Encrypted, for 14 days, and no event source takes them away."""
    queue: dict[str, Any] = properties("HintRejectsQueue")
    assert queue["MessageRetentionPeriod"] == 14 * DAY_S
    assert chosen_of(queue, {})["SqsManagedSseEnabled"] is True
    read = [each.get("EventSourceArn") for each in of_type(SOURCE).values()]
    assert {"Fn::GetAtt": ["HintRejectsQueue", "Arn"]} not in read


def test_a_job_has_time_left_to_do_anything() -> None:
    """They keep 10 s back for the row in hand; within a shorter timeout a run would do nothing."""
    for name in ("ResolverTimeoutS", "ReprocessorTimeoutS", "PurgerTimeoutS"):
        assert limits(name)[0] > 10
    assert limits("PurgerTimeoutS")[2] == 900


def test_each_job_says_who_it_is() -> None:
    """The name is the metrics' dimension, on which the alarms hang."""
    names = {
        function: each["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        for function, each in FUNCTIONS.items()
    }
    assert names == {each: each.removesuffix("Function").lower() for each in FUNCTIONS}


def test_every_parameter_is_used() -> None:
    """A parameter that nothing refers to would be set in vain."""
    used = repr([RESOURCES, GLOBALS, CONDITIONS])
    written = {name: (f"'Ref': '{name}'", f"${{{name}}}") for name in PARAMETERS}
    assert [name for name, ways in written.items() if not any(way in used for way in ways)] == []

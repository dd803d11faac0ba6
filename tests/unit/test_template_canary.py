"""With a canary every caller of what sends goes by the alias, which an alarm takes back."""

from typing import Any, Final

import pytest

from tests.unit.template_kit import (
    CONDITIONS,
    FUNCTIONS,
    GLOBALS,
    PARAMETERS,
    RESOURCES,
    TEMPLATE,
    actions,
    chosen_of,
    holds,
    of_type,
    properties,
    resources,
    statements,
)

SENDERS: Final = ("RelayFunction", "MessagesFunction", "ReprocessorFunction")
SHIFTS: Final[dict[str, dict[str, str]]] = TEMPLATE["Mappings"]["CodeDeploy"]
ON: Final = {"Canary": "Canary10Percent5Minutes"}
AT_ONCE: Final = {"Canary": "AllAtOnce"}
# Who calls a function that sends: the resource, where it says so, and which function.
CALLERS: Final = {
    "RelayIntegration": ("IntegrationUri", "RelayFunction"),
    "IntakeSource": ("FunctionName", "MessagesFunction"),
    "KafkaMskSource": ("FunctionName", "MessagesFunction"),
    "KafkaServersSource": ("FunctionName", "MessagesFunction"),
    "HintsSource": ("FunctionName", "ReprocessorFunction"),
    "SweepSchedule": ("Target", "ReprocessorFunction"),
}


def called(caller: str, chosen: dict[str, str]) -> Any:
    """Return what the caller calls under these parameters."""
    found = chosen_of(properties(caller)[CALLERS[caller][0]], chosen)
    return found["Arn"] if isinstance(found, dict) and "Arn" in found else found


def alias(function: str) -> dict[str, str]:
    """Return a reference to the alias that SAM makes."""
    return {"Ref": f"{function}Alias{FUNCTIONS[function]['AutoPublishAlias']}"}


def test_it_is_off_unless_somebody_asks_for_it() -> None:
    """Every way to shift is one that CodeDeploy has, and the parameter takes no other."""
    parameter = PARAMETERS["Canary"]
    assert parameter["Default"] == "off"
    assert parameter["AllowedValues"] == list(SHIFTS)
    still = [name for name, each in SHIFTS.items() if each["Moves"] == "false"]
    assert still == ["off", "AllAtOnce"]


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_condition_and_what_sam_reads_are_of_one_mind(shift: str) -> None:
    """SAM knows the mapping and no condition; the role is there exactly when it is named."""
    moves = SHIFTS[shift]["Moves"] == "true"
    assert holds(CONDITIONS["HasCodeDeploy"], {"Canary": shift}) is moves
    assert holds(CONDITIONS["HasCanary"], {"Canary": shift}) is (shift != "off")
    assert RESOURCES["CodeDeployRole"]["Condition"] == "HasCodeDeploy"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_what_sends_has_an_alias(function: str) -> None:
    """Resolver and purger run by one version or the other; a part of a run does not shift."""
    if function not in SENDERS:
        assert not {"AutoPublishAlias", "DeploymentPreference"} & set(FUNCTIONS[function])
        return
    preference = FUNCTIONS[function]["DeploymentPreference"]
    moves = {"Fn::FindInMap": ["CodeDeploy", {"Ref": "Canary"}, "Moves"]}
    assert (preference["Enabled"], preference["Type"]) == (moves, {"Ref": "Canary"})
    assert chosen_of(preference["Role"], ON) == {"Fn::GetAtt": ["CodeDeployRole", "Arn"]}


@pytest.mark.parametrize("caller", CALLERS)
def test_every_caller_goes_by_the_alias_when_it_is_on(caller: str) -> None:
    """One that does not would call the newest code while the alias still tries it."""
    function = CALLERS[caller][1]
    for chosen in (ON, AT_ONCE):
        assert called(caller, chosen) == alias(function)
    assert called(caller, {}) in ({"Ref": function}, {"Fn::GetAtt": [function, "Arn"]})


def test_no_other_resource_calls_a_function_that_sends() -> None:
    """A new source or schedule has to be listed here, and go by the alias."""
    kinds = (
        "AWS::Lambda::EventSourceMapping",
        "AWS::ApiGatewayV2::Integration",
        "AWS::Scheduler::Schedule",
        "AWS::Events::Rule",
    )
    sending = {
        name
        for kind in kinds
        for name, each in of_type(kind).items()
        if any(function in repr(each) for function in SENDERS)
    }
    assert sending == set(CALLERS)


def test_whoever_calls_may_call_by_either_way_at_any_time() -> None:
    """The gateway and the scheduler are allowed both, so that no call is refused in between."""
    api, by_alias = properties("RelayPermission"), properties("RelayAliasPermission")
    assert by_alias == api | {"FunctionName": alias("RelayFunction")}
    (invoke,) = statements("SchedulerRole")
    assert alias("ReprocessorFunction") in invoke["Resource"]
    assert "Condition" not in RESOURCES["RelayAliasPermission"]


@pytest.mark.parametrize("function", SENDERS)
def test_new_settings_make_a_new_version_by_the_release(function: str) -> None:
    """An alias keeps the settings of its version, and SAM looks at the code alone for a new one.

    The description makes the version, the variable lets Lambda publish it.
    """
    name = {"Fn::Sub": "${Release}.${Canary}"}
    assert FUNCTIONS[function]["VersionDescription"] == name
    assert FUNCTIONS[function]["Environment"]["Variables"]["RELEASE"] == name
    assert PARAMETERS["Release"]["MaxLength"] + len(max(SHIFTS, key=len)) <= 128 - 40


@pytest.mark.parametrize("function", SENDERS)
def test_an_alarm_takes_a_version_back(function: str) -> None:
    """A failed call of the alias, a fault inside, or two truths about one request."""
    name = function.removesuffix("Function")
    alarms = [f"{name}CanaryAlarm", f"{name}FaultAlarm", f"{name}ContradictionAlarm"]
    refs = [{"Ref": each} for each in alarms]
    assert FUNCTIONS[function]["DeploymentPreference"]["Alarms"] == refs
    dimensions = {each["Name"]: each["Value"] for each in properties(alarms[0])["Dimensions"]}
    assert dimensions == {
        "FunctionName": {"Ref": function},
        "Resource": {"Fn::Sub": f"${{{function}}}:{FUNCTIONS[function]['AutoPublishAlias']}"},
    }


@pytest.mark.parametrize("function", SENDERS)
def test_a_sender_is_repeated_by_nobody_by_its_name_or_by_its_alias(function: str) -> None:
    """SAM writes what the globals say for the alias alone, so the function has its own."""
    own = properties(function.removesuffix("Function") + "LatestInvokeConfig")
    assert own == {
        "FunctionName": {"Ref": function},
        "Qualifier": "$LATEST",
        **GLOBALS["EventInvokeConfig"],
    }


def test_codedeploy_may_move_the_three_aliases_and_look_at_alarms() -> None:
    """Of this account, and nothing else; it neither reads nor changes a function."""
    (trust,) = properties("CodeDeployRole")["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "codedeploy.amazonaws.com"}
    account = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert trust["Condition"] == account
    move, look = statements("CodeDeployRole")
    assert actions(move) == {
        "lambda:GetAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "lambda:UpdateAlias",
    }
    assert resources(move) == [
        each
        for function in SENDERS
        for each in (
            {"Fn::GetAtt": [function, "Arn"]},
            {"Fn::Sub": f"${{{function}.Arn}}:*"},
        )
    ]
    assert (actions(look), resources(look)) == ({"cloudwatch:DescribeAlarms"}, ["*"])

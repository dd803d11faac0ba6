"""The API lets in only authenticated callers; functions are built, end and log as they should."""

import json
import re
from typing import Final

import pytest

from relayhub import http_event
from tests.unit.template_kit import (
    FUNCTIONS,
    GLOBALS,
    MAKEFILE,
    PARAMETERS,
    RESOURCES,
    handler_of,
    log_group_of,
    of_type,
    properties,
)

ROUTES: Final = of_type("AWS::ApiGatewayV2::Route")
LOG_GROUPS: Final = of_type("AWS::Logs::LogGroup")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_built_by_a_target_of_its_name(function: str) -> None:
    """The Makefile has the target that SAM calls, for a handler that is there."""
    assert RESOURCES[function]["Metadata"]["BuildMethod"] == "makefile"
    name = FUNCTIONS[function].get("Handler", GLOBALS["Handler"]).rpartition(".")[2]
    source = handler_of(function).read_text()
    assert re.search(rf"^def {name}\(event: .*, context: ", source, re.MULTILINE)


def test_a_zip_holds_every_handler_of_its_folder() -> None:
    """The message function and the relay are two handlers of one folder, built the same way."""
    assert "\tcp -R $(RUNTIME)/* relayhub functions/$(FUNCTION)/*.py " in MAKEFILE
    folders = re.findall(r"^build-(\w+Function): FUNCTION = (\w+)$", MAKEFILE, re.MULTILINE)
    assert [name for name, folder in folders if folder == "relay"] == [
        "RelayFunction",
        "MessagesFunction",
    ]


def test_functions_run_on_the_chosen_platform() -> None:
    """Python 3.13 on arm64, traced by the service itself, never through a layer."""
    assert GLOBALS["Runtime"] == "python3.13"
    assert GLOBALS["Architectures"] == ["arm64"]
    assert GLOBALS["Handler"] == "handler.handler"
    others = {name: each["Handler"] for name, each in FUNCTIONS.items() if "Handler" in each}
    assert others == {"MessagesFunction": "messages.handler"}
    assert GLOBALS["Tracing"] == "Active"
    assert "Layers" not in GLOBALS
    assert not any("Layers" in each for each in FUNCTIONS.values())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_ends_when_the_settings_say(function: str) -> None:
    """The timeout that the platform keeps is the setting that every function knows."""
    setting = function.removesuffix("Function") + "TimeoutS"
    assert FUNCTIONS[function]["Timeout"] == {"Ref": setting}


@pytest.mark.parametrize("name", LOG_GROUPS)
def test_no_log_is_kept_for_ever(name: str) -> None:
    """Each log group has a fixed name and the stack's retention; the operators' is evidence."""
    kept = 400 if name == "OperatorLogGroup" else {"Ref": "LogRetentionDays"}
    assert LOG_GROUPS[name]["RetentionInDays"] == kept
    assert "LogGroupName" in LOG_GROUPS[name]


def test_what_operators_did_outlives_the_stack() -> None:
    """A deletion of the stack deletes no evidence."""
    group = RESOURCES["OperatorLogGroup"]
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_log_group_bears_its_functions_name(function: str) -> None:
    """The group is where the platform would write, so that no second one appears."""
    name = FUNCTIONS[function]["FunctionName"]["Fn::Sub"]
    assert LOG_GROUPS[log_group_of(function)]["LogGroupName"] == {"Fn::Sub": f"/aws/lambda/{name}"}


def test_the_api_has_the_hubs_routes_and_no_other() -> None:
    """The hub itself answers what is none of its paths."""
    keys = {each["RouteKey"] for each in ROUTES.values()}
    assert keys == {http_event.SUBMIT, http_event.STATUS, http_event.CANCEL, "$default"}
    assert http_event.CANCEL == "POST /transactions/{guid}/cancel"


@pytest.mark.parametrize("name", ROUTES)
def test_no_route_lets_a_stranger_in(name: str) -> None:
    """Every route, the default one too, asks for a signature or a token."""
    route = ROUTES[name]
    assert route["AuthorizationType"] == {"Fn::If": ["HasJwt", "JWT", "AWS_IAM"]}
    assert route["AuthorizerId"]["Fn::If"][:2] == ["HasJwt", {"Ref": "JwtAuthorizer"}]
    assert route["Target"] == {"Fn::Sub": "integrations/${RelayIntegration}"}


def test_the_gateway_gives_up_after_the_relay() -> None:
    """At the longest timeout that the relay may have, the relay still answers first."""
    integration = properties("RelayIntegration")
    relay_ms_max = PARAMETERS["RelayTimeoutS"]["MaxValue"] * 1000
    assert relay_ms_max < integration["TimeoutInMillis"] <= 30_000
    assert integration["PayloadFormatVersion"] == "2.0"


def test_the_longest_core_deadline_fits_into_the_relay() -> None:
    """The two ranges meet: the longest deadline, the least margin and a second are possible."""
    core_s_max = PARAMETERS["CoreDeadlineS"]["MaxValue"]
    margin_s_min = PARAMETERS["MarginS"]["MinValue"]
    assert core_s_max + margin_s_min + 1 == PARAMETERS["RelayTimeoutS"]["MaxValue"]


def test_the_stage_is_throttled_and_its_log_holds_no_payload() -> None:
    """The access log is JSON of what the gateway itself knows: no path, query, header or caller."""
    stage = properties("ApiStage")
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == {"Ref": "ThrottleRate"}
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] == {"Ref": "ThrottleBurst"}
    logged = json.loads(stage["AccessLogSettings"]["Format"]).values()
    known = r"\$context\.(requestId|requestTimeEpoch|routeKey|status|response\w+|integration\w+)"
    errors = r"\$context\.(authorizer\.error|error\.message)"
    assert all(re.fullmatch(f"{known}|{errors}", each) for each in logged)


def test_only_this_api_may_call_the_relay() -> None:
    """The permission names the API's own ARN."""
    permission = properties("RelayPermission")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert ":${Api}/" in permission["SourceArn"]["Fn::Sub"]

"""The template names each caller by the gateway's own word, and lets nobody have all the room."""

from typing import Any, Final

import pytest

from tests.unit.template_kit import PARAMETERS, of_type, properties

STAGE: Final = properties("ApiStage")


def test_a_token_is_read_from_the_authorization_header_and_checked_for_issuer_and_audience() -> (
    None
):
    """No other header, query or cookie bears one."""
    authorizer = properties("JwtAuthorizer")
    assert authorizer["AuthorizerType"] == "JWT"
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    assert authorizer["JwtConfiguration"] == {
        "Issuer": {"Ref": "JwtIssuer"},
        "Audience": {"Ref": "JwtAudience"},
    }
    assert PARAMETERS["JwtIssuer"]["AllowedPattern"].startswith("^(https://")


def test_nothing_between_the_gateway_and_the_relay_writes_into_a_request() -> None:
    """A mapping of parameters could put a caller's header in the place of another's word."""
    (integration,) = of_type("AWS::ApiGatewayV2::Integration").values()
    assert "RequestParameters" not in integration
    assert integration["IntegrationType"] == "AWS_PROXY"


@pytest.mark.parametrize("limit", ["ThrottlingRateLimit", "ThrottlingBurstLimit"])
def test_every_route_has_both_limits_and_none_is_without(limit: str) -> None:
    """The stage's defaults count for each route by itself; a route of its own could lift them."""
    settings: list[dict[str, Any]] = [
        STAGE["DefaultRouteSettings"],
        *STAGE.get("RouteSettings", {}).values(),
    ]
    for each in settings:
        parameter = PARAMETERS[each[limit]["Ref"]]
        assert parameter["MinValue"] >= 1
        assert parameter["MaxValue"] <= 10_000


def test_the_scope_of_guids_is_one_of_two_words_and_global_unless_it_is_chosen() -> None:
    """Another default would change the key of every row of a table in use."""
    scope = PARAMETERS["GuidScope"]
    assert (scope["Default"], scope["AllowedValues"]) == ("global", ["global", "channel"])

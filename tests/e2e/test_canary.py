"""With Canary on, the whole hub works by the alias: what calls the functions, and is let in."""

from collections.abc import Iterator

import pytest

from local.core_client import CoreControl
from local.stack import SHORT_LIMITS, Stack, StackConfig
from tests.e2e.conftest import LOGS
from tests.e2e.kafka_crowd import until

pytestmark = pytest.mark.e2e

TRANSFER = b'{"from":"A001","to":"A002","amount":100}'


@pytest.fixture(scope="module")
def by_alias(built: None) -> Iterator[Stack]:
    """Return a stack of its own; CodeDeploy, which the emulator lacks, is not in this choice."""
    del built
    parameters = {**SHORT_LIMITS, "Canary": "AllAtOnce"}
    with Stack.running(StackConfig(logs=LOGS / "canary", parameters=parameters)) as running:
        yield running


def test_requests_and_messages_are_executed_by_the_alias(by_alias: Stack) -> None:
    """By HTTP at once, and one that was accepted for later by the intake queue's source."""
    control = CoreControl(by_alias.control_url)
    assert by_alias.atm.post("alias-1", TRANSFER).code == "0000"
    later = by_alias.atm.post("alias-2", TRANSFER, headers={"Prefer": "respond-async"})
    assert later.status == 202
    until(lambda: (by_alias.ledger_row("alias-2") or {}).get("state") == "DONE")
    counts = control.counts()
    assert [counts[guid].executed for guid in ("alias-1", "alias-2")] == [1, 1]
    control.close()


def test_whatever_calls_a_sender_calls_its_alias(by_alias: Stack) -> None:
    """The gateway and both queues' sources, as they are deployed."""
    client = by_alias.emulator.client("lambda")
    sources = client.list_event_source_mappings()["EventSourceMappings"]
    gateway = by_alias.emulator.client("apigatewayv2")
    (api,) = gateway.get_apis()["Items"]
    (integration,) = gateway.get_integrations(ApiId=api["ApiId"])["Items"]
    called = [*(each["FunctionArn"] for each in sources), integration["IntegrationUri"]]
    assert len(called) == 3
    assert all(each.endswith(":live") for each in called)

"""The grader's other half of the proof: a relay that does everything right passes everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.verify_kit import BLACK_BOX, SPOILT, named, play
from tests.integration.verify_server import HubServer, hub_server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """Run one hub for the module."""
    with hub_server(tmp_path_factory.mktemp("hub")) as running:
        yield running


def test_the_hub_passes_every_scenario_that_needs_no_process_control(served: HubServer) -> None:
    """All of them in one run, as the command plays them; the core is left without faults."""
    outcomes = play(served, *BLACK_BOX)
    assert {each.scenario.id: each.reason for each in outcomes if not each.passed} == {}
    assert len(outcomes) == len(BLACK_BOX)
    assert served.core.control.faults()["rules"] == []


def test_the_hub_passes_what_spoils_its_ledger(served: HubServer) -> None:
    """Lost and refused replies of DynamoDB."""
    outcomes = play(served, *map(named, SPOILT))
    assert {each.scenario.id: each.reason for each in outcomes if not each.passed} == {}

"""The deployed API under cases that Schemathesis makes from docs/openapi.yaml, a bounded number."""

from __future__ import annotations

import pytest

from local.core_client import CoreControl
from local.stack import Stack
from tests.fuzz import openapi
from tests.fuzz.tally import Tally

pytestmark = pytest.mark.e2e
CASES = 400


def test_every_answer_is_written_down_and_no_malformed_request_has_a_row(
    stack: Stack, core: CoreControl
) -> None:
    """Good ones, bad ones and chains of them: the page is true, and nothing is executed twice."""
    tally = Tally()
    openapi.run(stack, core, tally, cases=CASES, seed_of_run=0)
    assert tally.findings == {}, tally.report()
    assert tally.cases >= CASES
    told = {each.rpartition(" ")[2] for each in tally.told}
    # What a run meets depends on nothing but the seed: it must not become one of refusals alone.
    assert {"0000", "B201", "E500", "E901", "E902", "E903", "E904", "E905", "E908"} <= told

"""What `make check` asks of the template, and that nothing is left out without a reason."""

import re
from typing import Any, Final

import pytest
import yaml

from tests.unit.template_kit import MAKEFILE, RESOURCES, ROOT

CONFIG: Final = (ROOT / ".checkov.yaml").read_text()
SETTINGS: Final[dict[str, Any]] = yaml.safe_load(CONFIG)
SKIPS: Final = [
    (name, skip)
    for name, each in RESOURCES.items()
    for skip in each.get("Metadata", {}).get("checkov", {}).get("skip", [])
]
# What cfn-lint need not say of a transformed template: SAM's own policies, and a mapping that SAM
# has used already.
NOT_LINTED: Final = ["W3037", "W7001"]


def check() -> str:
    """Return what `make check` runs."""
    found = re.search(r"^check: (?P<recipe>.*(?:\n\t.*)*)", MAKEFILE, re.MULTILINE)
    assert found
    return found["recipe"].replace("\\\n\t", " ")


@pytest.mark.parametrize(
    "gate",
    [
        "$(SAM) validate --lint",
        "tools.transform template.yaml $(REPORTS)/transformed.json",
        "tools.transform template.yaml $(REPORTS)/canary.json",
        "cfn-lint --ignore-checks",
        "$(CHECKOV) --file $(REPORTS)/transformed.json $(REPORTS)/canary.json",
    ],
    ids=lambda gate: re.sub(r"\W+", "_", gate),
)
def test_a_gate_is_part_of_the_check(gate: str) -> None:
    """As it is, as SAM makes it, and as it is with a canary."""
    assert gate in check()


def test_cfn_lint_leaves_out_nothing_else() -> None:
    """Each that it leaves out is known here."""
    (left_out,) = re.findall(r"--ignore-checks ([\w ]+?) --", check())
    assert left_out.split() == NOT_LINTED


def test_checkov_asks_nobody_and_fails_on_any_finding() -> None:
    """It sends nothing, downloads nothing, and no finding is soft."""
    assert SETTINGS["skip-download"] is True
    assert SETTINGS["framework"] == ["cloudformation"]
    assert not {"soft-fail", "soft-fail-on", "baseline", "bc-api-key"} & set(SETTINGS)


@pytest.mark.parametrize("check_id", SETTINGS["skip-check"])
def test_a_check_that_is_asked_of_no_resource_has_its_reason_above_it(check_id: str) -> None:
    """A comment of at least a line, right before it."""
    before = CONFIG[: CONFIG.index(f"- {check_id}")].rstrip(" ").splitlines()
    assert before[-1].strip().startswith("# ")


@pytest.mark.parametrize(
    ("name", "skip"), SKIPS, ids=[f"{name}_{skip['id']}" for name, skip in SKIPS]
)
def test_a_check_that_a_resource_is_spared_has_its_reason_beside_it(
    name: str, skip: dict[str, str]
) -> None:
    """A sentence, not a word; and it is spared once."""
    assert len(skip["comment"].split()) > 5
    assert [each["id"] for of, each in SKIPS if of == name].count(skip["id"]) == 1
    assert skip["id"] not in SETTINGS["skip-check"]

"""Two versions work on one table while a deploy, or its roll-back, goes on.

What the release before made of its own rows is kept in tests/fixtures/releases, with its code: so
nothing here needs the history of the tree. `rollback_rows.py` makes a release's files.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from relayhub.states import SCHEMA
from tests.integration.rollback_rows import KINDS, RELEASES, ROOT, make_all, meet, outcomes

# One release back is the rule; older ones are deleted when a new one is kept.
(BEFORE,) = RELEASES.glob("*.json")
KEPT: Final[dict[str, Any]] = json.loads(BEFORE.read_text())
# What this version does otherwise than the release before, by kind and deed, with the reason.
DIFFERENT: Final[dict[tuple[str, str], str]] = {}
LATER: Final = {"M": {"by": {"S": "a later version"}, "bytes": {"B": "\u00e9\u0000"}}}
NEWER: Final = ("done", "done, over", "sent", "unknown", "failed, not sent", "received")
MAY_BE_SENT: Final = ("failed, not sent", "failed, not sent twice", "failed, not found")

Met = dict[str, dict[str, Any]]


def with_attribute(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the row with attributes of a later version."""
    return row | {"item": row["item"] | {"of_a_later_version": LATER} | more}


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """Return this version's rows, with what a later one may add, and some of a newer schema."""
    made = make_all()
    newer = {"schema": {"N": str(SCHEMA + 1)}}
    return {
        **{f"this: {kind}": with_attribute(row) for kind, row in made.items()},
        **{f"newer: {kind}": with_attribute(made[kind], **newer) for kind in NEWER},
    }


@pytest.fixture(scope="module")
def mine(rows: dict[str, Any]) -> Met:
    """Return what this version makes of its own rows, and of the release before's."""
    before = {f"before: {kind}": row for kind, row in KEPT["rows"].items()}
    return meet(rows | before, ROOT)


@pytest.fixture(scope="module")
def theirs(rows: dict[str, Any]) -> Met:
    """Return what the release before makes of this version's rows, after a roll-back."""
    return meet(rows, BEFORE.with_suffix(".zip"))


@pytest.mark.parametrize("kind", KEPT["rows"])
def test_a_row_of_the_release_before_is_told_and_handled_as_it_was(kind: str, mine: Met) -> None:
    """By its channel and by every job; also how often it is sent, and the state that is left."""
    found = outcomes(mine[f"before: {kind}"])
    expected = KEPT["met"][kind]
    assert {deed: found[deed] for deed in expected if (kind, deed) not in DIFFERENT} == {
        deed: each for deed, each in expected.items() if (kind, deed) not in DIFFERENT
    }


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_roll_back_the_release_before_says_the_same_of_this_versions_row(
    kind: str, mine: Met, theirs: Met
) -> None:
    """Nobody is told of a payment that it was not made because a deploy was taken back."""
    now, then = outcomes(mine[f"this: {kind}"]), outcomes(theirs[f"this: {kind}"])
    assert [deed for deed in now if now[deed] != then[deed] and (kind, deed) not in DIFFERENT] == []


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_was_certainly_not_executed_is_sent_by_either(
    kind: str, mine: Met, theirs: Met
) -> None:
    """Once, by a resend or a hint; whoever wrote the row, and whoever meets it."""
    for met in (mine, theirs):
        sent = {deed: each["sent"] for deed, each in met[f"this: {kind}"].items()}
        acts = {deed for deed, times in sent.items() if times}
        assert acts == ({"resend", "hint"} if kind in MAY_BE_SENT else set())
        assert set(sent.values()) <= {0, 1}


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_of_a_later_version_is_ignored_and_kept(
    kind: str, mine: Met, theirs: Met
) -> None:
    """No write of this version or the one before takes it away, or stumbles over it."""
    for met in (mine, theirs):
        found = met[f"this: {kind}"]
        left = [each["item"] for each in found.values() if each["item"]]
        assert all(each["of_a_later_version"] == LATER for each in left)
        assert len(left) == len(found) - (kind == "done, over")


@pytest.mark.parametrize("kind", NEWER)
def test_a_row_of_a_newer_schema_is_in_progress_and_stays_as_it_is(
    kind: str, rows: dict[str, Any], mine: Met, theirs: Met
) -> None:
    """E903 to its channel; no job sends, moves or deletes it, in this version or the one before."""
    name = f"newer: {kind}"
    as_it_was = rows[name]["item"]
    for met in (mine, theirs):
        assert [deed for deed, each in met[name].items() if each["item"] != as_it_was] == []
        assert [each["sent"] for each in met[name].values()] == [0] * len(met[name])
        assert met[name]["resend"]["told"][1] in ("E903", "E904")


def test_a_release_is_kept_with_all_that_it_wrote() -> None:
    """Its code and its rows are of one version, and no kind of row is forgotten."""
    assert BEFORE.with_suffix(".zip").exists()
    assert set(KEPT["rows"]) == set(KEPT["met"]) <= set(KINDS)
    assert all(kind in KEPT["rows"] and deed in KEPT["met"][kind] for kind, deed in DIFFERENT)

"""Events of the functions that run by themselves: an empty one runs, an unreadable one does not."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.message_event import UnknownEventError
from relayhub.run_event import Run, read_run


@pytest.mark.parametrize(
    ("event", "run"),
    [
        ({}, Run(is_dry=False, min_age_s=None)),
        ({"source": "aws.scheduler", "detail": {}}, Run(is_dry=False, min_age_s=None)),
        ({"dry_run": True}, Run(is_dry=True, min_age_s=None)),
        ({"dry_run": False}, Run(is_dry=False, min_age_s=None)),
        ({"min_age_s": 90}, Run(is_dry=False, min_age_s=90)),
        ({"min_age_s": 0, "dry_run": True}, Run(is_dry=True, min_age_s=0)),
    ],
    ids=["empty", "scheduled", "dry", "not dry", "age", "both"],
)
def test_a_run_is_what_its_event_asks_for(event: dict[str, Any], run: Run) -> None:
    """Without a word it is no dry run; an age that is too small is the settings' to refuse."""
    assert read_run(event) == run


@pytest.mark.parametrize("event", [None, [], "{}", 7, True], ids=repr)
def test_what_is_no_object_is_refused(event: object) -> None:
    """It says what to send."""
    with pytest.raises(UnknownEventError, match="invoke the function with a JSON object"):
        read_run(event)


@pytest.mark.parametrize("word", ["true", "false", 1, 0, None, [], {}], ids=repr)
def test_a_dry_run_that_is_no_boolean_is_refused(word: object) -> None:
    """Whoever meant a dry run gets no real one, by whatever he wrote for true."""
    with pytest.raises(UnknownEventError, match="dry_run is neither true nor false"):
        read_run({"dry_run": word})


@pytest.mark.parametrize(
    "age", [None, "90", 90.0, True, [90], {}, float("nan"), float("inf")], ids=repr
)
def test_an_age_that_is_no_whole_number_is_refused(age: object) -> None:
    """By its name, and without the value."""
    with pytest.raises(UnknownEventError, match="min_age_s is not a whole number"):
        read_run({"min_age_s": age})

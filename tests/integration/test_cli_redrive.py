"""`redrive`: new attempts and a new validity, for one row or all that match, and nothing else."""

from __future__ import annotations

import pytest

from relayhub.states import Event, State
from tests.emulated import never_arrives, refused
from tests.integration.cli_kit import Office, open_office
from tests.world import START_MS, World

DAY_MS = 86_400_000


@pytest.fixture
def office(world: World) -> Office:
    """Return a stack with failed rows of two channels, one of them parked over the cap."""
    for guid, channel in (("F-1", "atm"), ("F-2", "app"), ("F-3", "atm")):
        world.fail(guid, channel=channel)
        world.clock.advance(60)
    world.edit("F-3", resends=20)
    row = world.held("F-3")
    world.move(Event.PARKED, "F-3", by="reprocessor", parked="cap", due_at=row.valid_until)
    world.hints()
    return open_office(world)


def redriven(office: Office) -> set[str]:
    """Return the rows that were redriven, by their history."""
    guids = ("F-1", "F-2", "F-3")
    return {each for each in guids if office.world.held(each).history[-1]["event"] == "redriven"}


def test_a_parked_row_gets_new_attempts_a_new_validity_and_a_hint(office: Office) -> None:
    """It shows how often it has failed already; the command itself sends nothing."""
    told = office.act("redrive", "F-3", "--valid-for", "2h")
    assert told["done"] == ["F-3"]
    assert told["had_failed"] == {"F-3": {"attempt": 1, "resends": 20}}
    row = office.world.held("F-3")
    assert (row.parked, row.resends) == (None, 0)
    assert row.valid_until == office.world.clock() + 7_200_000
    assert office.world.hints() == [{"guid": "F-3", "attempt": 1}]
    assert len(office.world.core.sent) == 3


@pytest.mark.parametrize(
    ("words", "guids"),
    [
        (("--state", "FAILED"), {"F-1", "F-2", "F-3"}),
        (("--state", "PARKED"), {"F-3"}),
        (("--state", "FAILED", "--channel", "atm"), {"F-1", "F-3"}),
        (("--state", "FAILED", "--older-than", "2m"), {"F-1", "F-2"}),
        (("--state", "FAILED", "--limit", "1"), {"F-1"}),
        (("F-2", "F-1", "F-2"), {"F-1", "F-2"}),
    ],
    ids=lambda each: " ".join(sorted(each)),
)
def test_all_that_match_are_redriven_and_no_other(
    office: Office, words: tuple[str, ...], guids: set[str]
) -> None:
    """By state, channel, age, number, or by name."""
    assert set(office.act("redrive", *words)["done"]) == guids
    assert redriven(office) == guids


def test_many_are_redriven_at_a_pace(office: Office) -> None:
    """The core has to bear them."""
    before = office.world.clock()
    office.act("redrive", "--state", "FAILED", "--rate", "2")
    assert office.world.clock() - before == 1_000


def test_a_dry_run_says_what_would_be_done_and_what_refused(office: Office) -> None:
    """It changes nothing."""
    office.act("hold", "F-1")
    rows = [office.world.row(each) for each in ("F-1", "F-2", "F-3")]
    told = office.act("redrive", "--state", "FAILED", "--dry-run")
    assert [each["guid"] for each in told["would_redrive"]] == ["F-2", "F-3"]
    assert told["refused"] == {"F-1": "it is held (operator): look why, and release it first"}
    assert [office.world.row(each) for each in ("F-1", "F-2", "F-3")] == rows
    result = office.run("redrive", "--state", "FAILED", "--dry-run", "--reason", "x")
    assert "2 rows would be redriven" in result.stdout
    assert "F-1 would be refused: it is held" in result.stdout
    assert "not_sent" in result.stdout
    assert office.world.hints() == []


def test_some_done_and_some_refused_is_done_in_part(office: Office) -> None:
    """Each refusal with its sentence."""
    office.act("hold", "F-1")
    result = office.run("redrive", "--state", "FAILED", "--reason", "as agreed")
    assert result.exit_code == 3
    assert "redrive: 2 rows done" in result.stdout
    assert "F-1 refused: it is held (operator)" in result.stdout
    assert redriven(office) == {"F-2", "F-3"}


def test_a_single_row_that_is_refused_is_told_once(office: Office) -> None:
    """Its sentence is the command's own."""
    office.act("hold", "F-1")
    result = office.run("redrive", "F-1", "--reason", "as agreed")
    assert (result.exit_code, result.output.count("look why, and release it first")) == (2, 1)


def test_a_row_that_moves_on_after_it_was_shown_is_refused(office: Office) -> None:
    """As by the reprocessor meanwhile."""
    office.world.dynamo.before["update_item"] = [
        lambda: office.world.edit("F-2", claim_id="another", attempt=2)
    ]
    told = office.act("redrive", "F-1", "F-2", code=3)
    assert "it has moved on since it was looked at" in told["refused"]["F-2"]


def test_what_fails_three_times_in_a_row_is_given_up(office: Office) -> None:
    """What was not tried is told."""
    office.world.fail("F-4")
    office.world.dynamo.faults["update_item"] = [refused("AccessDeniedException")] * 3
    told = office.act("redrive", "--state", "FAILED", code=1)
    assert len(told["failed"]) == 3
    assert told["not_tried"] == ["F-4"]
    office.world.dynamo.faults["update_item"] = [refused("AccessDeniedException")] * 3
    result = office.run("redrive", "--state", "FAILED", "--reason", "x")
    assert "three in a row failed: 1 row not tried" in result.stderr


def test_one_failure_among_many_does_not_end_the_run(office: Office) -> None:
    """The others are done."""
    office.world.dynamo.faults["update_item"] = [never_arrives, never_arrives]
    told = office.act("redrive", "--state", "FAILED", code=3)
    assert list(told["failed"]) == ["F-1"]
    assert told["done"] == ["F-2", "F-3"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name the GUIDs, or all by --state"),
        (("F-1", "--state", "FAILED"), "not both"),
        (("--state", "UNKNOWN"), "only rows that were certainly not executed"),
        (("--state", "SENT"), "only rows that were certainly not executed"),
        (("--state", "HELD"), "only rows that were certainly not executed"),
        (("F-1", "--valid-for", "soon"), "'soon' is no duration"),
        (("F-1", "--valid-for", "31d"), "at most 30d"),
        (("F-1", "absent"), "no row of absent"),
        (("--state", "FAILED", "--channel", "none"), "no row is to be redriven"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_cannot_be_redriven_is_refused(
    office: Office, words: tuple[str, ...], said: str
) -> None:
    """Before any row is touched."""
    assert said in office.refused("redrive", *words)
    assert redriven(office) == set()


def test_a_row_in_doubt_is_never_redriven(office: Office) -> None:
    """The sentence says what to do instead."""
    office.world.doubt("D-1")
    said = office.refused("redrive", "D-1")
    assert said.startswith("it is UNKNOWN: it may have been executed: ask the core")
    assert office.world.held("D-1").state is State.UNKNOWN


def test_a_new_validity_is_by_default_that_of_a_new_request(office: Office) -> None:
    """A day, unless the hub is set otherwise."""
    office.act("redrive", "F-1")
    assert office.world.held("F-1").valid_until == START_MS + 180_000 + DAY_MS

"""Proposals in their row: kept until they expire, taken once; and who is the same person."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Final

import pytest

from relayhub.proposals import GUIDS_MAX, NoRoomError, Proposal, Proposals, Target, same_person
from relayhub.row import encode
from relayhub.upkeep import UpkeepError
from tests.emulated import never_arrives, refused, reply_lost
from tests.world import START_MS, TABLE, World

ONE: Final = Proposal(
    id="p-1",
    act="close",
    targets=(Target("G-1", "FAILED", "claim-1"), Target("G-2", "RECEIVED")),
    by="role/Admin/alice",
    reason="as agreed",
    at=START_MS,
    expires_at=START_MS + 3_600_000,
    arguments={"over": "operator", "object": {"key": "k", "bytes": 3, "sha256": "s"}},
)


@pytest.fixture
def proposals(world: World) -> Proposals:
    """Return the proposals of the world's table."""
    return Proposals(world.dynamo, TABLE, pause=lambda _: None)


def test_a_proposal_is_read_as_it_was_made(proposals: Proposals) -> None:
    """Rows and arguments too; the oldest first."""
    assert proposals.all() == []
    later = replace(ONE, id="p-0", at=START_MS + 1)
    proposals.propose(later, START_MS)
    proposals.propose(ONE, START_MS)
    assert proposals.all() == [ONE, later]


def test_a_proposal_is_taken_once(proposals: Proposals) -> None:
    """By whoever comes first; the others stay."""
    other = replace(ONE, id="p-2")
    proposals.propose(ONE, START_MS)
    proposals.propose(other, START_MS)
    assert proposals.take(ONE)
    assert not proposals.take(ONE)
    assert proposals.all() == [other]


def test_one_that_was_never_proposed_is_not_taken(proposals: Proposals) -> None:
    """In a table that has no proposals at all, either."""
    assert not proposals.take(ONE)
    assert proposals.all() == []


def test_a_taking_whose_reply_is_lost_counts_as_not_had(proposals: Proposals, world: World) -> None:
    """Nobody carries it out: never twice, if need be not at all."""
    proposals.propose(ONE, START_MS)
    world.dynamo.faults["update_item"] = [reply_lost]
    assert not proposals.take(ONE)
    assert proposals.all() == []


def test_what_has_expired_is_forgotten_with_the_next(proposals: Proposals) -> None:
    """So that their row does not grow for ever."""
    proposals.propose(ONE, START_MS)
    later = replace(ONE, id="p-2", at=ONE.expires_at)
    proposals.propose(later, ONE.expires_at)
    assert proposals.all() == [later]


def test_a_proposing_whose_reply_is_lost_is_made_once(proposals: Proposals, world: World) -> None:
    """The second try writes the same."""
    world.dynamo.faults["update_item"] = [reply_lost]
    proposals.propose(ONE, START_MS)
    assert proposals.all() == [ONE]


def test_what_a_newer_version_keeps_beside_is_passed_over(
    proposals: Proposals, world: World
) -> None:
    """A proposal of it can be read, and approved, by the version before."""
    plain = asdict(ONE) | {"ticket": "4711"}
    plain["targets"] = [each | {"attempt": 2} for each in plain["targets"]]
    key = {"guid": {"S": "!proposals"}}
    world.dynamo.put_item(TableName=TABLE, Item={**key, ONE.id: encode(plain)})
    assert proposals.all() == [ONE]
    assert proposals.take(ONE)


def large(proposal_id: str) -> Proposal:
    """Return a proposal for as many rows as one may have, under the longest GUIDs."""
    targets = tuple(
        Target(f"{place:0128}", "FAILED", "0f8fad5b-d9cb-469f-a165-70867728950e")
        for place in range(GUIDS_MAX)
    )
    return replace(ONE, id=proposal_id, targets=targets)


def test_a_proposal_that_finds_no_room_is_refused_with_how_many_stand(
    proposals: Proposals,
) -> None:
    """Those that stand are as they were; what has expired takes no room."""
    proposals.propose(large("p-1"), START_MS)
    proposals.propose(large("p-2"), START_MS)
    with pytest.raises(NoRoomError) as told:
        proposals.propose(large("p-3"), START_MS)
    assert told.value.standing == 2
    assert [each.id for each in proposals.all()] == ["p-1", "p-2"]
    later = replace(large("p-9"), at=ONE.expires_at, expires_at=ONE.expires_at + 1)
    proposals.propose(later, ONE.expires_at)
    assert [each.id for each in proposals.all()] == ["p-9"]


def test_another_fault_of_a_request_is_not_taken_for_a_lack_of_room(
    proposals: Proposals, world: World
) -> None:
    """Where nothing stands, there is nothing to wait for or to withdraw."""
    world.dynamo.faults["update_item"] = [refused("ValidationException")]
    with pytest.raises(UpkeepError, match="ValidationException"):
        proposals.propose(ONE, START_MS)
    proposals.propose(ONE, START_MS)
    world.dynamo.faults["update_item"] = [refused("AccessDeniedException")]
    with pytest.raises(UpkeepError, match="AccessDenied"):
        proposals.propose(replace(ONE, id="p-2"), START_MS)


def test_a_table_that_gives_no_answer_is_told(proposals: Proposals, world: World) -> None:
    """Whether it stands nobody knows."""
    world.dynamo.faults["update_item"] = [never_arrives, never_arrives]
    with pytest.raises(UpkeepError, match="ReadTimeoutError"):
        proposals.propose(ONE, START_MS)
    world.dynamo.faults["get_item"] = [refused("AccessDeniedException")]
    with pytest.raises(UpkeepError, match="AccessDenied"):
        proposals.all()


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ("role/Admin/alice", True),
        ("role/admin/ALICE", True),
        ("role/Operator/alice", True),
        ("user/alice", True),
        ("alice", True),
        ("role/Admin/bob", False),
        ("user/alice2", False),
    ],
)
def test_a_name_is_the_same_persons_in_any_role(other: str, *, is_same: bool) -> None:
    """In capitals too, and whichever way round it is asked."""
    assert same_person("role/Admin/alice", other) is is_same
    assert same_person(other, "role/Admin/alice") is is_same

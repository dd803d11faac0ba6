"""Acts that need a second person: proposed by one, approved by another, before they expire.

With `dynamo.py`, `ledger.py`, `upkeep.py`, `controls.py` and `surveys.py`, the only code that uses
DynamoDB. All proposals stand in one row of the project's own, each an attribute of its map; whoever
approves one takes it out first, so that it is carried out once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeVar

from relayhub import dynamo
from relayhub.dynamo import Applied, Conflict, NoAnswer, Refused
from relayhub.row import decode, encode
from relayhub.upkeep import UpkeepError

GUIDS_MAX: Final = 1_000  # The row that bears the proposals has its size.
_KEY: Final = {"guid": encode("!proposals")}
# DynamoDB's word for an item over 400 KB, as for every other request that it cannot take.
_TOO_LARGE: Final = "ValidationException"

T = TypeVar("T")


class NoRoomError(Exception):
    """The row that bears the proposals has no room for one more; so many stand."""

    def __init__(self, standing: int) -> None:
        super().__init__(f"{standing} stand")
        self.standing = standing


@dataclass(frozen=True)
class Target:
    """A row as its proposer saw it: what was approved is this, and no later attempt."""

    guid: str
    state: str
    claim_id: str = ""


@dataclass(frozen=True)
class Proposal:
    """Who wants to do what to which rows, why, and until when it may be approved (epoch ms)."""

    id: str
    act: str
    targets: tuple[Target, ...]
    by: str
    reason: str
    at: int
    expires_at: int
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Proposals:
    """The proposals of one table."""

    def __init__(
        self, client: Any, table: str, *, pause: Callable[[int], None] = dynamo.back_off
    ) -> None:
        self._client = client
        self._table = table
        self._pause = pause

    def all(self) -> list[Proposal]:
        """Return what is proposed, the oldest first, expired ones too. Raises UpkeepError."""
        request = {"TableName": self._table, "Key": _KEY, "ConsistentRead": True}
        match dynamo.call(self._client.get_item, request, self._pause):
            case Applied(response):
                item = response.get("Item", {})
                found = [_proposal(decode(item[name])) for name in item if name != "guid"]
                return sorted(found, key=lambda each: (each.at, each.id))
            case Conflict():
                raise UpkeepError("a read has no condition")
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)

    def propose(self, proposal: Proposal, now_ms: int) -> None:
        """Keep the proposal, and forget those that expired. Raises UpkeepError, NoRoomError."""
        there = self.all()
        expired = [each.id for each in there if each.expires_at <= now_ms]
        if expired:
            self._forget(expired)  # By itself, and first: so the new one finds the room.
        try:
            self._update(
                {
                    "UpdateExpression": "SET #new = :new",
                    "ExpressionAttributeNames": {"#new": proposal.id},
                    "ExpressionAttributeValues": {":new": encode(asdict(proposal))},
                }
            )
        except UpkeepError as error:
            standing = len(there) - len(expired)
            if str(error) == _TOO_LARGE and standing:
                raise NoRoomError(standing) from error
            raise

    def take(self, proposal: Proposal) -> bool:
        """Take the proposal out, for one person; False if it is gone. Raises UpkeepError."""
        return self._update(
            {
                "UpdateExpression": "REMOVE #it",
                "ConditionExpression": "attribute_exists(#it)",
                "ExpressionAttributeNames": {"#it": proposal.id},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        )

    def _forget(self, expired: list[str]) -> None:
        names = {f"#old{place}": each for place, each in enumerate(expired)}
        removal = f"REMOVE {', '.join(names)}"
        self._update({"UpdateExpression": removal, "ExpressionAttributeNames": names})

    def _update(self, request: Mapping[str, Any]) -> bool:
        whole = {"TableName": self._table, "Key": _KEY, **request}
        match dynamo.call(self._client.update_item, whole, self._pause):
            case Applied():
                return True
            case Conflict() | NoAnswer("conflict without an item"):
                return False
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)


def same_person(one: str, other: str) -> bool:
    """Tell whether two identities are one person's: the same, or the same name in two roles."""
    return one.casefold() == other.casefold() or _last(one) == _last(other)


def _last(identity: str) -> str:
    return identity.replace(":", "/").rsplit("/", 1)[-1].casefold()


def _proposal(plain: dict[str, Any]) -> Proposal:
    targets = tuple(_known(Target, each) for each in plain["targets"])
    return _known(Proposal, {**plain, "targets": targets})


def _known(kind: type[T], plain: Mapping[str, Any]) -> T:
    """Return what was kept; what a newer version adds to it is left out."""
    names: Any = kind
    return kind(**{each.name: plain[each.name] for each in fields(names) if each.name in plain})

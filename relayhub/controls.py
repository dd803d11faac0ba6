"""The control row: switches that a person, or the hub itself, sets for all functions at once.

With `dynamo.py`, `ledger.py` and `upkeep.py`, the only code that uses DynamoDB. Each function keeps
what it read for `CACHE_MS`, so that a switch works within seconds, without a deploy and without a
read on the hot path. Each switch is an attribute of its own, set and taken back by its own
conditional update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from relayhub import dynamo
from relayhub.dynamo import Applied, Conflict, NoAnswer, Refused
from relayhub.row import decode, encode
from relayhub.upkeep import UpkeepError

CACHE_MS: Final = 2_000  # A claim may take as long again before its call: 5 s in all.
HUB: Final = "hub"  # Who closed the core, when no person did.
_KEY: Final = {"guid": encode("!control")}
_CORE: Final = "core_closed"
_STRIKES: Final = "strikes"
_SCOPE: Final = "guid_scope"


class Job(StrEnum):
    """What a person may hold, so that it does nothing until it is released."""

    RESOLVER = "resolver"
    REPROCESSOR = "reprocessor"


@dataclass(frozen=True)
class Switch:
    """Who set a switch, why and when (epoch ms); `probe_at` where an inquiry may take it back."""

    by: str
    reason: str
    at: int
    probe_at: int | None = None


@dataclass(frozen=True)
class Switches:
    """The control row as it was read; `strikes` are the doubts and refusals in a row.

    `guid_scope` is the scope of GUIDs that the table's keys are of; None before anybody said it.
    """

    core: Switch | None = None
    held: Mapping[Job, Switch] = field(default_factory=dict)
    strikes: int = 0
    guid_scope: str | None = None


class Controls:
    """The switches of one table; the clock is epoch milliseconds."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        now_ms: Callable[[], int],
        pause: Callable[[int], None] = dynamo.back_off,
    ) -> None:
        self._client = client
        self._table = table
        self._now_ms = now_ms
        self._pause = pause
        self._known = Switches()
        self._read_at: int | None = None

    def switches(self) -> Switches:
        """Return the switches, read anew when they are older than CACHE_MS. Raises UpkeepError.

        What cannot be read any more is not taken for open: nothing may be sent on an old word.
        """
        now_ms = self._now_ms()
        if self._read_at is None or not 0 <= now_ms - self._read_at <= CACHE_MS:
            self._read_at, self._known = now_ms, self.read()
        return self._known

    @property
    def known(self) -> Switches:
        """The switches as this function saw them last, without a read."""
        return self._known

    def read(self) -> Switches:
        """Return the switches, read consistently. Raises UpkeepError."""
        found = self._ask(self._client.get_item, Key=_KEY, ConsistentRead=True).get("Item", {})
        plain = {name: decode(value) for name, value in found.items()}
        held = {job: _switch(plain[name]) for job in Job if (name := _held(job)) in plain}
        core = plain.get(_CORE)
        switch = None if core is None else _switch(core)
        return Switches(switch, held, plain.get(_STRIKES, 0), plain.get(_SCOPE))

    # --- By a person ---

    def close_core(self, switch: Switch) -> bool:
        """Let nothing be sent; over the hub's own closing too. False: a person has closed it.

        Raises UpkeepError, like each of these, where nobody knows whether it was written.
        """
        return self._change(
            _CORE,
            "SET #switch = :switch",
            "attribute_not_exists(#switch) OR attribute_exists(#switch.probe_at)",
            switch,
        )

    def open_core(self) -> bool:
        """Let requests be sent again, whoever closed the core; False if it was open."""
        return self._change(_CORE, "REMOVE #switch, strikes", "attribute_exists(#switch)")

    def hold_job(self, job: Job, switch: Switch) -> bool:
        """Let the job do nothing; False if it is held."""
        return self._change(
            _held(job), "SET #switch = :switch", "attribute_not_exists(#switch)", switch
        )

    def release_job(self, job: Job) -> bool:
        """Let the job go on; False if it was not held."""
        return self._change(_held(job), "REMOVE #switch", "attribute_exists(#switch)")

    # --- By the hub itself ---

    def strike(self, limit: int, probe_at: int, reason: str) -> bool:
        """Count a call that brought no answer; close the core at the limit. True: it did so now.

        A count that cannot be written is no fault of the call: the next one counts again. Raises
        UpkeepError where the closing may not be written.
        """
        try:
            # Once: sent again after a lost reply, one call would count twice.
            counted = self._client.update_item(
                TableName=self._table,
                Key=_KEY,
                UpdateExpression=f"ADD {_STRIKES} :one",
                ExpressionAttributeValues={":one": encode(1)},
                ReturnValues="UPDATED_NEW",
            )
        except (BotoCoreError, ClientError, HTTPClientError):
            return False
        strikes = int(decode(counted["Attributes"][_STRIKES]))
        self._known = replace(self._known, strikes=strikes)
        if strikes < limit:
            return False
        switch = Switch(HUB, reason, self._now_ms(), probe_at)
        return self._change(_CORE, "SET #switch = :switch", "attribute_not_exists(#switch)", switch)

    def answered(self) -> None:
        """Forget the strikes: the core has answered. Costs nothing where there are none."""
        if self._known.strikes:
            self._known = replace(self._known, strikes=0)
            self._update({"UpdateExpression": f"REMOVE {_STRIKES}"})

    def take_probe(self, was: int, next_at: int) -> bool:
        """Take the turn to ask the core that the hub closed, for one caller alone."""
        request = {
            "UpdateExpression": "SET core_closed.probe_at = :next",
            "ConditionExpression": "core_closed.probe_at = :was",
            "ExpressionAttributeValues": {":next": encode(next_at), ":was": encode(was)},
        }
        # Without an answer the turn counts as not had: one probe less, never one more.
        return isinstance(self._update(request), Applied)

    def reopen(self) -> bool:
        """Open the core that the hub itself had closed; never one that a person closed."""
        return self._change(_CORE, "REMOVE #switch, strikes", "attribute_exists(#switch.probe_at)")

    def bind_scope(self, scope: str) -> None:
        """Say of what scope the table's keys are, once and for all: the first word stands.

        A word that cannot be written is no fault: the next run says it.
        """
        if self._known.guid_scope is None:
            self._update(
                {
                    "UpdateExpression": "SET guid_scope = :scope",
                    "ConditionExpression": "attribute_not_exists(guid_scope)",
                    "ExpressionAttributeValues": {":scope": encode(scope)},
                }
            )

    # --- Requests ---

    def _change(
        self, name: str, expression: str, condition: str, switch: Switch | None = None
    ) -> bool:
        value = None if switch is None else encode(_plain(switch))
        request = {
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#switch": name},
            **({} if value is None else {"ExpressionAttributeValues": {":switch": value}}),
        }
        result = self._update(request)
        if isinstance(result, Conflict) and value and result.item.get(name) == value:
            result = Applied({})  # By our own first try, whose reply was lost.
        return self._is_made(result)

    def _is_made(self, result: dynamo.Result) -> bool:
        match result:
            case Applied():
                self._read_at = None
                return True
            case Conflict() | NoAnswer("conflict without an item"):
                return False
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)

    def _update(self, request: Mapping[str, Any]) -> dynamo.Result:
        whole = {"TableName": self._table, "Key": _KEY, **request}
        if "ConditionExpression" in request:
            whole["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return dynamo.call(self._client.update_item, whole, self._pause)

    def _ask(self, operation: Callable[..., Mapping[str, Any]], **request: Any) -> Any:
        match dynamo.call(operation, {"TableName": self._table, **request}, self._pause):
            case Applied(response):
                return response
            case Conflict():
                raise UpkeepError("a read has no condition")
            case Refused(reason) | NoAnswer(reason):
                raise UpkeepError(reason)


def _switch(plain: Mapping[str, Any]) -> Switch:
    """Return the switch; what a newer version adds to it is left out."""
    return Switch(**{each.name: plain[each.name] for each in fields(Switch) if each.name in plain})


def _plain(switch: Switch) -> dict[str, Any]:
    return {name: value for name, value in vars(switch).items() if value is not None}


def _held(job: Job) -> str:
    return f"{job}_held"

"""A DynamoDB table in memory that knows just the requests that the hub makes, and no other.

Whatever else a request holds raises: a double that guesses proves nothing. A differential test
drives it and moto with the same requests and compares every answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn

from botocore.exceptions import ClientError

Item = dict[str, dict[str, Any]]
Values = Mapping[str, dict[str, Any]]
Test = Callable[[Mapping[str, Any], Values], bool]
Change = Callable[[Item, Values], None]

_PUT: Final = {"TableName", "Item"}
_KEYED: Final = {"TableName", "Key"}
_CONDITIONAL: Final = {
    *("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"),
    "ReturnValuesOnConditionCheckFailure",
}
_UPDATE: Final = re.compile(r"SET (.+?)(?: REMOVE (.+))?", re.DOTALL)
_COMMA: Final = re.compile(r", (?![^(]*\))")  # Not one within a function's parentheses.
_NAME: Final = r"#?([a-z_]+)"
_VALUE: Final = r"(:[a-z0-9]+)"
_EXISTS: Final = re.compile(rf"attribute_(exists|not_exists)\({_NAME}\)")
_COMPARED: Final = re.compile(rf"{_NAME} (=|<=|>=|<|>) {_VALUE}")
_SIZED: Final = re.compile(rf"size\({_NAME}\) = {_VALUE}")
_ASSIGNED: Final = re.compile(rf"{_NAME} = {_VALUE}")
_APPENDED: Final = re.compile(
    rf"{_NAME} = list_append\(if_not_exists\({_NAME}, {_VALUE}\), {_VALUE}\)"
)
_QUERIED: Final = "open_shard = :shard AND due_at <= :now"


class UnknownRequestError(AssertionError):
    """The hub made a request that this table does not know."""


class Table:
    """Items by GUID, in DynamoDB's typed form."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Read one item, consistently."""
        _expect(request, _KEYED | {"ConsistentRead"})
        if request.get("ConsistentRead") is not True:
            raise UnknownRequestError("a read that is not consistent")
        found = self.items.get(_key(request))
        return {} if found is None else {"Item": dict(found)}

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Put an item, if its condition holds."""
        _expect(request, _PUT | _CONDITIONAL)
        item = request["Item"]
        self._check(item["guid"]["S"], request)
        self.items[item["guid"]["S"]] = dict(item)
        return {}

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Change an item, if its condition holds; one that is not there is made, as AWS does."""
        _expect(request, _KEYED | _CONDITIONAL | {"UpdateExpression"})
        guid = _key(request)
        found = self._check(guid, request)
        new = {"guid": {"S": guid}} if found is None else dict(found)
        changes = _changes(request["UpdateExpression"])
        values = request.get("ExpressionAttributeValues", {})
        _expect_names(request)
        for change in changes:
            change(new, values)
        self.items[guid] = new
        return {}

    def delete_item(self, **request: Any) -> dict[str, Any]:
        """Delete an item, if its condition holds; one that is not there is no fault."""
        _expect(request, _KEYED | _CONDITIONAL)
        guid = _key(request)
        self._check(guid, request)
        self.items.pop(guid, None)
        return {}

    def query(self, **request: Any) -> dict[str, Any]:
        """Return what is due of one shard of the index `open`, oldest first; keys only."""
        _expect(
            request,
            {
                *("TableName", "IndexName", "KeyConditionExpression"),
                *("ExpressionAttributeValues", "Limit"),
            },
        )
        if request["IndexName"] != "open" or request["KeyConditionExpression"] != _QUERIED:
            raise UnknownRequestError(f"a query of another kind: {request}")
        shard = request["ExpressionAttributeValues"][":shard"]
        now = int(request["ExpressionAttributeValues"][":now"]["N"])
        due = sorted(
            (int(item["due_at"]["N"]), guid)
            for guid, item in self.items.items()
            if item.get("open_shard") == shard and "due_at" in item
        )
        keys = ("guid", "open_shard", "due_at")
        found = [
            {name: self.items[guid][name] for name in keys} for due_at, guid in due if due_at <= now
        ]
        return {"Items": found[: request["Limit"]]}

    def scan(self, **request: Any) -> dict[str, Any]:
        """Return the attributes that are asked for of every item; one segment, one page."""
        _expect(
            request,
            {
                *("TableName", "ConsistentRead", "Segment", "TotalSegments"),
                *("ProjectionExpression", "ExpressionAttributeNames"),
            },
        )
        if request["TotalSegments"] != 1 or request["ConsistentRead"] is not True:
            raise UnknownRequestError(f"a scan of another kind: {request}")
        names = set(request["ExpressionAttributeNames"].values())
        return {
            "Items": [
                {name: value for name, value in item.items() if name in names}
                for item in self.items.values()
            ]
        }

    def _check(self, guid: str, request: Mapping[str, Any]) -> Item | None:
        found = self.items.get(guid)
        expression = request.get("ConditionExpression")
        if expression is None:
            return found
        _expect_names(request)
        values = request.get("ExpressionAttributeValues", {})
        there = found or {}
        if not all(test(there, values) for test in _tests(expression)):
            _conflict(found if request.get("ReturnValuesOnConditionCheckFailure") else None)
        return found


def _conflict(found: Item | None) -> NoReturn:
    response: dict[str, Any] = {
        "Error": {"Code": "ConditionalCheckFailedException", "Message": "the condition failed"},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    if found is not None:
        response["Item"] = dict(found)
    raise ClientError(response, "operation")  # type: ignore[arg-type]


def _expect(request: Mapping[str, Any], known: set[str]) -> None:
    if not request.keys() <= known:
        raise UnknownRequestError(f"unknown parts: {sorted(request.keys() - known)}")


def _expect_names(request: Mapping[str, Any]) -> None:
    for alias, name in request.get("ExpressionAttributeNames", {}).items():
        if alias != f"#{name}":
            raise UnknownRequestError(f"the alias {alias} of {name}")


def _key(request: Mapping[str, Any]) -> str:
    return str(request["Key"]["guid"]["S"])


@cache
def _tests(expression: str) -> tuple[Test, ...]:
    return tuple(map(_test, expression.split(" AND ")))


def _test(term: str) -> Test:
    if found := _EXISTS.fullmatch(term):
        wanted, name = found[1] == "exists", found[2]
        return lambda item, _: (name in item) is wanted
    if found := _SIZED.fullmatch(term):
        name, value = found.groups()
        return lambda item, values: name in item and len(item[name]["L"]) == int(values[value]["N"])
    if found := _COMPARED.fullmatch(term):
        return _comparison(*found.groups())
    raise UnknownRequestError(f"the condition {term}")


def _comparison(name: str, sign: str, value: str) -> Test:
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda left, right: left == right,
        "<": lambda left, right: left < right,
        "<=": lambda left, right: left <= right,
        ">": lambda left, right: left > right,
        ">=": lambda left, right: left >= right,
    }
    test = compare[sign]

    def holds(item: Mapping[str, Any], values: Values) -> bool:
        if name not in item:
            return False
        ((kind, content),), ((other, wanted),) = item[name].items(), values[value].items()
        if kind != other:
            return False
        return test(int(content), int(wanted)) if kind == "N" else test(content, wanted)

    return holds


@cache
def _changes(expression: str) -> tuple[Change, ...]:
    found = _UPDATE.fullmatch(expression)
    if found is None:
        raise UnknownRequestError(f"the update {expression}")
    sets = [_set(each) for each in _COMMA.split(found[1])]
    removes = [_remove(each.lstrip("#")) for each in (found[2] or "").split(", ") if each]
    return (*sets, *removes)


def _set(text: str) -> Change:
    if found := _APPENDED.fullmatch(text):
        name, same, empty, more = found.groups()
        if name != same:
            raise UnknownRequestError(f"the update {text}")

        def append(item: Item, values: Values) -> None:
            item[name] = {"L": [*item.get(name, values[empty])["L"], *values[more]["L"]]}

        return append
    if found := _ASSIGNED.fullmatch(text):
        name, value = found.groups()

        def assign(item: Item, values: Values) -> None:
            item[name] = values[value]

        return assign
    raise UnknownRequestError(f"the update {text}")


def _remove(name: str) -> Change:
    def remove(item: Item, _: Values) -> None:
        item.pop(name, None)

    return remove

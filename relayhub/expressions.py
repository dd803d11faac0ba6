"""A row's conditional update in DynamoDB's expressions: the changes and their terms. Pure.

Every name stands as a placeholder, since many of the row's are reserved words.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from relayhub.row import HISTORY_MAX, Row, encode


@dataclass(frozen=True)
class Condition:
    """One term of a write's condition: an attribute, a comparison, and what it is compared with."""

    name: str
    form: str
    value: Any = None


def absent(name: str) -> Condition:
    """Demand that the row does not have the attribute."""
    return Condition(name, "attribute_not_exists({name})")


def equals(name: str, value: Any) -> Condition:
    """Demand that the attribute has the value; None: that it is not there."""
    return absent(name) if value is None else Condition(name, "{name} = {value}", value)


def update(row: Row, new: Row, conditions: tuple[Condition, ...]) -> dict[str, Any]:
    """Return the expressions that make `new` of `row`, if the conditions hold."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}

    def name_of(name: str) -> str:
        names[f"#{name}"] = name
        return f"#{name}"

    def value_of(value: Any) -> str:
        values[f":v{len(values)}"] = encode(value)
        return f":v{len(values) - 1}"

    sets, removes = [], []
    for name in _changed(row, new):
        value = getattr(new, name)
        if value is None:
            removes.append(name_of(name))
        else:
            sets.append(f"{name_of(name)} = {value_of(value)}")
    if new.history != row.history:
        history = name_of("history")
        if len(row.history) < HISTORY_MAX:
            # Appending keeps what others have written meanwhile.
            there = f"if_not_exists({history}, {value_of([])})"
            sets.append(f"{history} = list_append({there}, {value_of([new.history[-1]])})")
        else:
            sets.append(f"{history} = {value_of(new.history)}")
    terms = [
        each.form.format(
            name=name_of(each.name),
            value="" if each.value is None else value_of(each.value),
        )
        for each in conditions
    ]
    removal = f" REMOVE {', '.join(removes)}" if removes else ""
    return {
        "UpdateExpression": f"SET {', '.join(sets)}{removal}",
        "ConditionExpression": " AND ".join(terms),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def _changed(row: Row, new: Row) -> list[str]:
    names = (each.name for each in fields(Row) if each.name not in {"history", "updated_at"})
    # The time is always written: an update that sets nothing is refused.
    return ["updated_at", *(name for name in names if getattr(row, name) != getattr(new, name))]

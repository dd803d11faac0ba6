"""What the tests of the template share: the template as plain data, and ways to walk it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools import template as reader

ROOT: Final = reader.TEMPLATE.parent
MAKEFILE: Final = (ROOT / "Makefile").read_text()
TEMPLATE: Final = reader.load()
PARAMETERS: Final[dict[str, dict[str, Any]]] = TEMPLATE["Parameters"]
RESOURCES: Final[dict[str, dict[str, Any]]] = TEMPLATE["Resources"]
GLOBALS: Final[dict[str, Any]] = TEMPLATE["Globals"]["Function"]
VARIABLES: Final[dict[str, Any]] = GLOBALS["Environment"]["Variables"]
CONDITIONS: Final[dict[str, Any]] = TEMPLATE["Conditions"]
RULES: Final[dict[str, dict[str, Any]]] = TEMPLATE["Rules"]
DAY_S: Final = 86_400
NO_VALUE: Final = {"Ref": "AWS::NoValue"}


# The settings that name a resource of the stack; every other one is a parameter.
FROM_RESOURCES: Final = {
    "table_name": "LedgerTable",
    "dead_letter_queue_url": "DeadLetterQueue",
    "hint_rejects_queue_url": "HintRejectsQueue",
    "intake_queue_url": "IntakeQueue",
    "intake_rejects_queue_url": "IntakeRejectsQueue",
    "answers_bucket": "AnswersBucket",
}


def camel(name: str) -> str:
    """Return the name of a setting's parameter."""
    return "".join(part.capitalize() for part in name.split("_"))


def default(value: Any) -> str:
    """Return what a variable is by the template's defaults; names of the stack are made up."""
    if not isinstance(value, dict):
        return str(value)
    if value["Ref"] not in PARAMETERS:
        return "made-up"
    return str(PARAMETERS[value["Ref"]].get("Default", "https://core.example"))


def defaults() -> dict[str, str]:
    """Return the environment of every function by the template's defaults."""
    return {name: default(value) for name, value in VARIABLES.items()}


def limits(parameter: str) -> tuple[int, int, int]:
    """Return the smallest, the default and the largest value of a number."""
    found = PARAMETERS[parameter]
    return int(found["MinValue"]), int(found["Default"]), int(found["MaxValue"])


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type, by logical id."""
    return {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == kind}


def properties(logical: str) -> dict[str, Any]:
    """Return a resource's properties."""
    found: dict[str, Any] = RESOURCES[logical]["Properties"]
    return found


def statements(role: str) -> Iterator[dict[str, Any]]:
    """Return all that a role allows, whatever the conditions of the stack."""
    for policy in properties(role)["Policies"]:
        for each in policy["PolicyDocument"]["Statement"]:
            yield each["Fn::If"][1] if "Fn::If" in each else each


def actions(statement: dict[str, Any]) -> set[str]:
    """Return the statement's actions."""
    found = statement["Action"]
    return {found} if isinstance(found, str) else set(found)


def resources(statement: dict[str, Any]) -> list[Any]:
    """Return the statement's resources."""
    found = statement["Resource"]
    return found if isinstance(found, list) else [found]


def value(node: Any, chosen: Mapping[str, str]) -> Any:
    """Return what a condition or a rule compares, under these parameters and the defaults."""
    match node:
        case {"Ref": str(name)}:
            text = chosen.get(name, str(PARAMETERS[name].get("Default", "")))
            is_list = PARAMETERS[name]["Type"] == "CommaDelimitedList"
            return text.split(",") if is_list else text
        case {"Fn::Select": [int(index), items]}:
            return value(items, chosen)[index]
        case str():
            return node
    raise ValueError(f"cannot read {node}")


def holds(node: Any, chosen: Mapping[str, str]) -> bool:
    """Tell whether a condition, or what a rule asserts, holds under these parameters."""
    match node:
        case {"Condition": str(name)}:
            found = holds(CONDITIONS[name], chosen)
        case {"Fn::Not": [inner]}:
            found = not holds(inner, chosen)
        case {"Fn::And": list(parts)}:
            found = all(holds(each, chosen) for each in parts)
        case {"Fn::Or": list(parts)}:
            found = any(holds(each, chosen) for each in parts)
        case {"Fn::Equals": [left, right]}:
            found = value(left, chosen) == value(right, chosen)
        case {"Fn::Contains": [options, one]}:
            found = value(one, chosen) in options
        case {"Fn::EachMemberEquals": [members, one]}:
            found = all(each == value(one, chosen) for each in value(members, chosen))
        case _:
            raise ValueError(f"cannot judge {node}")
    return found


def refusals(chosen: Mapping[str, str]) -> list[str]:
    """Return why the rules refuse these parameters, in their words."""
    return [
        each["AssertDescription"]
        for rule in RULES.values()
        if holds(rule["RuleCondition"], chosen)
        for each in rule["Assertions"]
        if not holds(each["Assert"], chosen)
    ]


def chosen_of(node: Any, chosen: Mapping[str, str]) -> Any:
    """Return what is left under these parameters: its branch of each Fn::If, without no values."""
    match node:
        case {"Fn::If": [str(name), yes, no]}:
            return chosen_of(yes if holds(CONDITIONS[name], chosen) else no, chosen)
        case dict():
            found = {name: chosen_of(each, chosen) for name, each in node.items()}
            return found if found == NO_VALUE else {k: v for k, v in found.items() if v != NO_VALUE}
        case list():
            return [found for each in node if (found := chosen_of(each, chosen)) != NO_VALUE]
    return node


FUNCTIONS: Final = of_type("AWS::Serverless::Function")


def role_of(function: str) -> str:
    """Return the logical id of a function's role."""
    return str(FUNCTIONS[function]["Role"]["Fn::GetAtt"][0])


def handler_of(function: str) -> Path:
    """Return the file of a function's handler: the Makefile names its folder."""
    module, _, _ = str(FUNCTIONS[function].get("Handler", GLOBALS["Handler"])).partition(".")
    target = re.search(rf"^build-{function}: FUNCTION = (\w+)$", MAKEFILE, re.MULTILINE)
    assert target, f"build-{function} is missing in the Makefile"
    return ROOT / "functions" / target[1] / f"{module}.py"


def log_group_of(function: str) -> str:
    """Return the logical id of a function's log group."""
    return str(FUNCTIONS[function]["LoggingConfig"]["LogGroup"]["Ref"])

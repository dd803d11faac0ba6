"""What the tests of the template share: the template as plain data, and ways to walk it."""

from collections.abc import Iterator
from typing import Any, Final

from tools import template as reader

TEMPLATE: Final = reader.load()
PARAMETERS: Final[dict[str, dict[str, Any]]] = TEMPLATE["Parameters"]
RESOURCES: Final[dict[str, dict[str, Any]]] = TEMPLATE["Resources"]
GLOBALS: Final[dict[str, Any]] = TEMPLATE["Globals"]["Function"]
VARIABLES: Final[dict[str, Any]] = GLOBALS["Environment"]["Variables"]
DAY_S: Final = 86_400


# The settings that name a resource of the stack; every other one is a parameter.
FROM_RESOURCES: Final = {
    "table_name": "LedgerTable",
    "dead_letter_queue_url": "DeadLetterQueue",
    "hint_rejects_queue_url": "HintRejectsQueue",
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


FUNCTIONS: Final = of_type("AWS::Serverless::Function")


def role_of(function: str) -> str:
    """Return the logical id of a function's role."""
    return str(FUNCTIONS[function]["Role"]["Fn::GetAtt"][0])


def log_group_of(function: str) -> str:
    """Return the logical id of a function's log group."""
    return str(FUNCTIONS[function]["LoggingConfig"]["LogGroup"]["Ref"])

"""Reads template.yaml into plain data: `!Ref X` becomes {"Ref": "X"}, `!Sub X` {"Fn::Sub": "X"}.

For tests and tools that must not drift from what is deployed, such as a test's ledger table.
"""

from pathlib import Path
from typing import Any, Final

import yaml

TEMPLATE: Final = Path(__file__).parent.parent / "template.yaml"


class _Loader(yaml.SafeLoader):
    """A safe loader that knows CloudFormation's short forms."""


def _short_form(loader: _Loader, name: str, node: yaml.Node) -> dict[str, Any]:
    match node:
        case yaml.ScalarNode():
            value: Any = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case _:
            raise ValueError(f"!{name} takes a text or a list")
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name if name in ("Ref", "Condition") else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _short_form)


def load(path: Path = TEMPLATE) -> dict[str, Any]:
    """Return the template; raises ValueError for a short form that is none."""
    # The loader is a safe one: it makes plain data only.
    template: dict[str, Any] = yaml.load(path.read_text(), Loader=_Loader)  # noqa: S506
    return template


def table(name: str, template: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what CreateTable takes to make the template's ledger under a name."""
    properties = (template or load())["Resources"]["LedgerTable"]["Properties"]
    kept = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    return {"TableName": name} | {each: properties[each] for each in kept}

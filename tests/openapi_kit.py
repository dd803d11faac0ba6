"""docs/openapi.yaml for tests: what it says of one operation and status, and documents held to it.

A status that is not named is looked up by its class (`4XX`), as OpenAPI has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import yaml
from jsonschema_rs import Draft202012Validator

from tools.docs import ROOT

PAGE: Final = ROOT / "docs" / "openapi.yaml"

Node = dict[str, Any]


@cache
def document() -> Node:
    """Return the whole page."""
    loaded = yaml.safe_load(PAGE.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def resolved(node: Node) -> Node:
    """Return what the node refers to, or the node itself."""
    while "$ref" in node:
        node = at(node["$ref"])
    return node


def at(pointer: str) -> Node:
    """Return the part of the page that a reference names."""
    node: Any = document()
    for name in pointer.removeprefix("#/").split("/"):
        node = node[name]
    assert isinstance(node, dict)
    return node


def operations() -> Iterator[tuple[str, str, Node]]:
    """Return every operation with its path and its method."""
    for path, item in document()["paths"].items():
        for method in ("get", "put", "post", "delete", "patch", "head", "options"):
            if method in item:
                yield path, method.upper(), item[method]


def operation(path: str, method: str) -> Node:
    """Return one operation."""
    found: Node = document()["paths"][path][method.lower()]
    return found


def response(path: str, method: str, status: int) -> Node | None:
    """Return what is said of the status, or of its class; None if nothing is."""
    said = operation(path, method)["responses"]
    node = said.get(str(status), said.get(f"{status // 100}XX"))
    return None if node is None else resolved(node)


def headers_of(path: str, method: str, status: int) -> set[str]:
    """Return the headers that the answer may bear, in lower case."""
    found = response(path, method, status) or {}
    return {name.lower() for name in found.get("headers", {})}


def schema_of(path: str, method: str, status: int, content_type: str) -> Node | None:
    """Return the schema of the answer's body; None if the page does not have the type."""
    content = (response(path, method, status) or {}).get("content", {})
    found = content.get(content_type, content.get("*/*"))
    if found is None:
        return None
    schema: Node = found.get("schema", {})
    return schema


def faults(schema: Node, instance: object) -> list[str]:
    """Return what the schema, which is part of the page, has against the document."""
    return [each.message for each in _validator(json.dumps(schema)).iter_errors(instance)]


@cache
def _validator(schema: str) -> Draft202012Validator:
    components = document()["components"]
    return Draft202012Validator({"components": components, "allOf": [json.loads(schema)]})

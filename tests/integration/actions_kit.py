"""Records what relayhub asks of AWS, as IAM sees it, and finds the places that could ask."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from botocore import xform_name
from botocore.client import BaseClient

import relayhub
from tests.environment import BUCKET, TABLE

PACKAGE: Final = Path(relayhub.__file__).parent
# What IAM calls an operation that it does not call by its own name.
ACTIONS: Final = {
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectsV2": "s3:ListBucket",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}


@dataclass(frozen=True)
class Used:
    """One call: whose, what IAM calls it, on what of the template, on which key of the table."""

    function: str
    action: str
    resource: str
    key: str | None = None


@dataclass(frozen=True, order=True)
class Site:
    """A place in relayhub that calls AWS: the module, the function around it, the method."""

    module: str
    function: str
    method: str


@dataclass
class Recorder:
    """What relayhub asked of AWS while a function was at work; `queues` names them by URL."""

    queues: dict[str, str] = field(default_factory=dict)
    used: set[Used] = field(default_factory=set)
    sites: set[Site] = field(default_factory=set)
    function: str | None = None

    @contextmanager
    def at_work(self, function: str) -> Iterator[None]:
        """Take what is asked in here for the function's."""
        self.function = function
        try:
            yield
        finally:
            self.function = None

    def take(self, service: str, operation: str, request: dict[str, Any]) -> None:
        """Record a call, unless a test itself makes it."""
        sites = set(_places(xform_name(operation)))
        if self.function is None or not sites:
            return
        self.sites |= sites
        name = f"{service}:{operation}"
        resource = self._resource(service, request)
        self.used.add(Used(self.function, ACTIONS.get(name, name), resource, _key(request)))

    def _resource(self, service: str, request: dict[str, Any]) -> str:
        """Return the template's word for what a call is about; raises KeyError for another."""
        match service:
            case "dynamodb":
                (name,) = request.get("RequestItems", {request.get("TableName")})
                index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
                return {TABLE: "LedgerTable"}[name] + index
            case "sqs":
                return self.queues[request["QueueUrl"]]
            case "s3":
                return {BUCKET: "AnswersBucket/*"}[request["Bucket"]]
            case "secretsmanager":
                return "CoreSecretArn"
            case "cloudwatch":
                return "*"  # It knows no resource.
        raise KeyError(service)


def _key(request: dict[str, Any]) -> str | None:
    """Return the row's key, where a call names one row."""
    item = request.get("Key") or request.get("Item")
    return str(item["guid"]["S"]) if isinstance(item, dict) else None


def _places(method: str) -> Iterator[Site]:
    """Return where in relayhub this call comes from, the callers of its callers included."""
    for frame, _ in traceback.walk_stack(None):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            yield Site(str(path.relative_to(PACKAGE)), frame.f_code.co_name, method)


@contextmanager
def recording(patch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Record what any client sends while this is open."""
    recorder, send = Recorder(), BaseClient._make_api_call  # type: ignore[attr-defined] # noqa: SLF001 - where every call passes

    def record(self: Any, operation: str, request: dict[str, Any]) -> Any:
        recorder.take(self.meta.service_model.service_name, operation, request)
        return send(self, operation, request)

    with patch.context() as patched:
        patched.setattr(BaseClient, "_make_api_call", record)
        yield recorder


def called_sites() -> set[Site]:
    """Return every place of relayhub that calls a client, by reading its source."""
    return {
        site
        for path in sorted(PACKAGE.rglob("*.py"))
        for site in _sites_of(str(path.relative_to(PACKAGE)), ast.parse(path.read_text()))
    }


def made_clients() -> set[tuple[str, str]]:
    """Return what relayhub uses of boto3 itself, by module: clients alone, if all is well."""
    return {
        (str(path.relative_to(PACKAGE)), node.attr)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"boto3", "session"}
    }


def _sites_of(module: str, tree: ast.Module) -> Iterator[Site]:
    for around in ast.walk(tree):
        if isinstance(around, ast.FunctionDef):
            for node in ast.walk(around):
                if isinstance(node, ast.Attribute) and _is_client(node.value):
                    yield Site(module, around.name, node.attr)


def _is_client(node: ast.expr) -> bool:
    """Tell whether the expression is a client: by its name, as all of relayhub calls it."""
    match node:
        case ast.Name("client") | ast.Attribute(ast.Name("self"), "_client"):
            return True
    return False

"""The arrow: handler -> flow -> ledger, core, queues, answers -> rules; walked by import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PURE: Final = {"states", "strict_json", "guids", "times", "message", "money", "place"}

# A module imports from lower layers only, or from its own where it stands in one tuple with it.
LAYERS: Final[tuple[tuple[str, ...], ...]] = (
    ("states", "strict_json", "place"),
    ("money",),
    ("guids", "times"),
    ("message",),
    ("setting_values", "row", "judgement"),
    ("settings", "expressions"),
    ("replies", "dynamo", "credentials", "wire", "telemetry"),
    ("ledger", "core", "queues", "answers", "http_event", "message_event"),
    ("upkeep", "gauges", "run_event"),
    ("controls", "surveys", "proposals"),
    ("hub",),
    ("flows.steps", "flows.due", "flows.circuit", "flows.survey"),
    ("flows.attempt", "flows.cancel"),
    ("flows.relay", "flows.resolve", "flows.reprocess", "flows.purge"),
    ("flows.accept", "flows.operate"),
    ("flows.intake",),
    ("hint_event",),
    ("handler",),
)
RANK: Final = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def sources() -> dict[str, Path]:
    """Return every module of the hub, by its name within the package; the handlers by theirs."""
    package = ROOT / "relayhub"
    found = {
        ".".join(path.relative_to(package).with_suffix("").parts): path
        for path in package.rglob("*.py")
        if path.name != "__init__.py"
    }
    handlers = {
        f"functions.{path.parent.name}": path for path in (ROOT / "functions").rglob("*.py")
    }
    return found | handlers


SOURCES: Final = sources()


@cache
def tree(name: str) -> ast.Module:
    """Return the module's syntax."""
    return ast.parse(SOURCES[name].read_text())


def is_for_types(node: ast.stmt) -> bool:
    """Tell whether the statement is the block that only a type checker reads."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def imports(name: str) -> Iterator[str]:
    """Return what the module imports when it runs, as dotted names."""
    nodes: list[ast.AST] = [node for node in tree(name).body if not is_for_types(node)]
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name}: a relative import"
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def of_the_hub(name: str) -> set[str]:
    """Return the hub's own modules that the module imports."""
    found = set()
    for dotted in imports(name):
        first, _, rest = dotted.partition(".")
        if first != "relayhub":
            continue
        parts = rest.split(".")
        for length in (2, 1):
            candidate = ".".join(parts[:length])
            if candidate in SOURCES:
                found.add(candidate)
                break
    return found


def layer(name: str) -> int:
    """Return the module's layer."""
    return RANK["handler" if name.startswith("functions.") else name]


@pytest.mark.parametrize("name", SOURCES)
def test_every_module_stands_in_a_layer(name: str) -> None:
    """A new module must say where."""
    assert name.startswith("functions.") or name in RANK, f"give {name} a layer"


@pytest.mark.parametrize("name", SOURCES)
def test_imports_go_down_only(name: str) -> None:
    """Nothing below knows what is above it."""
    for other in of_the_hub(name):
        assert layer(other) < layer(name), f"{name} imports {other}"


@pytest.mark.parametrize("name", sorted(PURE))
def test_the_pure_rules_import_the_standard_library_only(name: str) -> None:
    """And each other."""
    for dotted in imports(name):
        first = dotted.partition(".")[0]
        assert first in sys.stdlib_module_names or first == "relayhub", dotted
    assert of_the_hub(name) <= PURE


@pytest.mark.parametrize(
    "name", [*sorted(PURE), "replies", "judgement", "http_event", "message_event"]
)
def test_the_rules_do_no_input_and_no_output(name: str) -> None:
    """No socket, no file, no clock, no chance, no environment."""
    forbidden = {"os", "socket", "time", "random", "boto3", "urllib.request", "subprocess", "io"}
    assert not {dotted for dotted in imports(name) if dotted.partition(".")[0] in forbidden}
    calls = {
        node.func.id
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"open", "print", "input"}


def clients(name: str) -> set[str]:
    """Return the AWS services that the module makes clients or resources of."""
    made = set()
    for node in ast.walk(tree(name)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"client", "resource"}
        ):
            service = node.args[0]
            assert isinstance(service, ast.Constant), f"{name}: a client of what?"
            made.add(str(service.value))
    return made


def test_each_service_has_one_module() -> None:
    """Whoever needs it goes through that one."""
    made = {(service, name) for name in SOURCES for service in clients(name)}
    assert made == {
        ("dynamodb", "dynamo"),
        ("sqs", "queues"),
        ("s3", "answers"),
        ("secretsmanager", "credentials"),
        ("cloudwatch", "gauges"),
    }


DYNAMO: Final = {
    "get_item",
    "put_item",
    "update_item",
    "delete_item",
    "query",
    "scan",
    "batch_get_item",
    "batch_write_item",
    "transact_write_items",
}
TABLE_USERS: Final = {"ledger", "upkeep", "controls", "proposals", "surveys"}
QUEUE: Final = {"send_message", "send_message_batch", "receive_message", "delete_message"}
BUCKET: Final = {"put_object", "get_object", "delete_object", "copy_object"}


@pytest.mark.parametrize(
    ("operations", "allowed"),
    [(DYNAMO, TABLE_USERS), (QUEUE, {"queues"}), (BUCKET, {"answers"})],
    ids=["dynamodb", "sqs", "s3"],
)
def test_only_its_own_module_uses_a_service(operations: set[str], allowed: set[str]) -> None:
    """By the names of the operations."""
    users = {
        name
        for name in SOURCES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr in operations and is_client(node.value)
    }
    assert users == allowed


def is_client(node: ast.expr) -> bool:
    """Tell whether the expression is a client, by its name."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.endswith("client")


def test_rows_are_put_and_updated_by_the_ledger_alone() -> None:
    """The maintenance's own module deletes and reads; it writes only keys of the project's own."""
    writers = {
        name
        for name in SOURCES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr == "update_item"
    }
    assert writers == TABLE_USERS - {"surveys"}


def test_only_the_core_module_opens_connections() -> None:
    """No other HTTP, no socket anywhere else."""
    wanted = {"http.client", "socket", "urllib.request", "urllib3", "requests", "httpx"}
    users = {name for name in SOURCES for dotted in imports(name) if dotted in wanted}
    assert users == {"core", "wire"}


def test_only_one_flow_sends() -> None:
    """`core.send` has one caller."""
    callers = {
        name
        for name in SOURCES
        if name.startswith(("flows.", "functions."))
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute)
        and node.attr == "send"
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "core"
    }
    assert callers == {"flows.attempt"}


def test_only_the_settings_know_the_environment() -> None:
    """`hub.py` hands it over; nobody else looks."""
    users = {
        name
        for name in SOURCES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    assert users == {"hub"}


def test_nothing_outlives_a_handler() -> None:
    """No thread or process that is not waited for: only a sweep's pool, within its own block."""
    wanted = {"threading", "multiprocessing", "subprocess", "asyncio", "concurrent"}
    users = {name for name in SOURCES for d in imports(name) if d.partition(".")[0] in wanted}
    assert users <= {"flows.purge"}

"""The core's records: what it executed and what it received, one JSON line each.

Imports the standard library only. The rule it protects: a line is handed to the operating
system in one write before the core answers, so the files tell the truth whatever dies next.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

EXECUTED_CODE = "0000"


class Form(StrEnum):
    """How an answer is dressed, so that the inquiry can give the same bytes again."""

    JSON = "json"
    SHIFT_JIS = "shift_jis"
    BIG = "big"


@dataclass(frozen=True)
class Execution:
    """Money that was moved once; `amount` is in the currency's minor unit."""

    seq: int
    time_ms: int
    guid: str
    attempt: int
    operation: str
    amount: int
    currency: str
    source: str
    target: str
    code: str
    reference: str
    form: Form = Form.JSON
    form_bytes: int = 0


@dataclass(frozen=True)
class Receipt:
    """A full request that was read (`received`), or one that was refused (`refused`)."""

    kind: str
    time_ms: int
    guid: str
    attempt: int
    code: str = ""
    detail: str = ""


class LineFile:
    """An append-only file of JSON lines, each written through before `append` returns."""

    def __init__(self, path: Path) -> None:
        """Open or create the file."""
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(self, record: Mapping[str, object]) -> None:
        """Write one line in one system call; raises OSError when the disk refuses it.

        The line then outlives this process; a power cut is not what this core is about, so there
        is no fsync, which costs more than half of the speed on a quick disk.
        """
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        written = os.write(self._descriptor, line)
        if written != len(line):
            message = f"{self.path}: only {written} of {len(line)} bytes were written"
            raise OSError(message)

    def empty(self) -> None:
        """Throw all lines away."""
        os.ftruncate(self._descriptor, 0)


def received_path(journal: Path) -> Path:
    """Name the file beside the journal that lists every full request."""
    return journal.with_name(journal.name + ".received")


def read_journal(path: Path) -> list[Execution]:
    """Read every execution in order; raises ValueError for a line that is none."""
    return [execution_of(record) for record in _records(path)]


def read_received(path: Path) -> list[Receipt]:
    """Read what the core received and refused, given the *journal's* path."""
    return [Receipt(**record) for record in _records(received_path(path))]


def execution_record(execution: Execution) -> dict[str, object]:
    """Turn an execution into the journal's line: `from` and `to` as in the request."""
    record = asdict(execution)
    record["from"] = record.pop("source")
    record["to"] = record.pop("target")
    return record


def execution_of(record: dict[str, Any]) -> Execution:
    """Turn a journal line back into an execution; raises ValueError when it is none."""
    fields = dict(record)
    fields["source"] = fields.pop("from", None)
    fields["target"] = fields.pop("to", None)
    fields["form"] = Form(str(fields.get("form", Form.JSON)))
    try:
        return Execution(**fields)
    except TypeError as error:
        message = f"not a journal line: {error}"
        raise ValueError(message) from error


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the file's lines; a missing file has none, an unfinished last line is left out."""
    if not path.exists():
        return
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    for line in whole.splitlines():
        yield json.loads(line)

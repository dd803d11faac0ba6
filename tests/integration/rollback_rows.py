"""Rows of every kind as this version writes them, and how a release's are kept for later ones.

`python -m tests.integration.rollback_rows 1.2.3` freezes them under that version, together with the
code that wrote them and with what that code tells and does when it meets them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from moto import mock_aws

from relayhub.core import Answered
from relayhub.message import Answer
from relayhub.states import Event, Hold
from tests.emulated import client
from tests.environment import BUCKET, ENVIRONMENT
from tests.maintenance import cancel
from tests.message_events import deliver, post_async, sqs_event, sqs_message
from tests.world import REFUSED, START_MS, World
from tools import template

ROOT: Final = Path(__file__).parents[2]
RELEASES: Final = ROOT / "tests" / "fixtures" / "releases"
DRIVER: Final = Path(__file__).with_name("rollback_driver.py")
# A quarter of an hour later: every sender is dead, nothing has expired.
LATER_MS: Final = START_MS + 900_000
# Each is a number of calls per run of a job.
FEW: Final = {"SHARDS": "1", "READ_SHARDS": "1", "SCAN_SEGMENTS": "1"}
LARGE: Final = Answer(200, "text/plain", b"x" * 5_000, "0000")
Make = Callable[[World], object]


def _refused(world: World) -> None:
    world.core.outcomes.append(Answered(REFUSED))
    world.post()


def _large(world: World) -> None:
    world.deploy(row_bytes_max=4_096)
    world.core.outcomes.append(Answered(LARGE))
    world.post()


def _cancelled_in_doubt(world: World) -> None:
    world.doubt()
    cancel(world)


def _not_found(world: World) -> None:
    world.doubt()
    world.not_found()


def _twice(world: World) -> None:
    world.fail()
    world.fail()


def _held(world: World) -> None:
    world.post()
    world.move(Event.HELD, by="operator", hold=Hold.OPERATOR, expires_at=None)


def _forgotten(world: World) -> None:
    world.doubt()
    world.move(Event.HELD, by="resolver", hold=Hold.FORGOTTEN)


def _over(world: World) -> None:
    world.post()
    world.edit(expires_at=LATER_MS // 1000 - 1)


def _message(world: World) -> None:
    deliver(world, sqs_event(sqs_message()))


# One of each kind that can stand in the table between two versions.
KINDS: Final[Mapping[str, Make]] = {
    "done": lambda world: world.post(),
    "done, refused": _refused,
    "done, in the bucket": _large,
    "done, cancelled before it came": cancel,
    "done, on hold": _held,
    "done, from a message": _message,
    "done, over": _over,
    "sent": lambda world: world.kill(),
    "unknown": lambda world: world.doubt(),
    "unknown, cancelled": _cancelled_in_doubt,
    "unknown, on hold": _forgotten,
    "failed, not sent": lambda world: world.fail(),
    "failed, not sent twice": _twice,
    "failed, interactive": lambda world: world.fail(headers={"delivery": "interactive"}),
    "failed, not found": _not_found,
    "failed, cancelled": lambda world: (world.fail(), cancel(world)),
    "received": post_async,
}


@mock_aws
def made(kind: str) -> dict[str, Any]:
    """Return the item of one kind, and what lies in the bucket for it."""
    world = World(shards=1, read_shards=1)
    KINDS[kind](world)
    listed = client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
    objects = {
        each["Key"]: client("s3").get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read().decode()
        for each in listed
    }
    return {"item": plain(world.item()), "objects": objects}


def plain(item: Any) -> Any:
    """Return an item as JSON takes it: bytes become latin-1 text, which the driver undoes."""
    match item:
        case {"B": bytes(raw)}:
            return {"B": raw.decode("latin-1")}
        case dict():
            return {name: plain(value) for name, value in sorted(item.items())}
        case list():
            return [plain(value) for value in item]
    return item


def make_all() -> dict[str, Any]:
    """Return the rows of all kinds."""
    return {kind: made(kind) for kind in KINDS}


def meet(rows: Mapping[str, Any], code: Path) -> dict[str, dict[str, Any]]:
    """Let the code of a tree or a zip meet each row; return what it told and did, by deed."""
    with tempfile.TemporaryDirectory() as folder:
        if code.suffix == ".zip":
            shutil.unpack_archive(code, folder)
            code = Path(folder)
        told = Path(folder) / "told.json"
        asked = {
            "now_ms": LATER_MS,
            "rows": rows,
            "table": template.table(ENVIRONMENT["TABLE_NAME"]),
        }
        subprocess.run(
            [sys.executable, str(DRIVER), str(told)],
            input=json.dumps(asked).encode(),
            env={**ENVIRONMENT, **FEW, "PYTHONPATH": str(code), "PATH": ""},
            check=True,
            capture_output=True,
            timeout=120,
        )
        found: dict[str, dict[str, Any]] = json.loads(told.read_text())
        return found


def outcomes(met: Mapping[str, Any]) -> dict[str, Any]:
    """Return of each deed what was told, how often something was sent, and the row's state."""
    return {
        deed: [each["told"], each["sent"], each["item"].get("state", {}).get("S")]
        for deed, each in met.items()
    }


def freeze(version: str) -> None:
    """Keep this version's code, its rows and what it makes of them."""
    RELEASES.mkdir(parents=True, exist_ok=True)
    archive = RELEASES / f"{version}.zip"
    _pack(archive)
    rows = make_all()
    met = meet(rows, archive)
    kept = {"rows": rows, "met": {kind: outcomes(met[kind]) for kind in rows}}
    text = json.dumps(kept, indent=1, sort_keys=True)
    (RELEASES / f"{version}.json").write_text(text + "\n")


def _pack(archive: Path) -> None:
    """Put the code into an archive, in the same bytes each time."""
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for folder in ("relayhub", "functions"):
            for path in sorted((ROOT / folder).rglob("*.py")):
                entry = ZipInfo(str(path.relative_to(ROOT)))
                packed.writestr(entry, path.read_bytes(), ZIP_DEFLATED, 9)


if __name__ == "__main__":
    freeze(sys.argv[1])

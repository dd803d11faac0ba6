"""Large answers while S3 fails: told, stored later, never overwritten, gone after their row."""

from __future__ import annotations

import random
from typing import Final

import pytest

from relayhub.core import Answered
from relayhub.message import Answer
from relayhub.row import item_bytes
from relayhub.states import State
from tests.emulated import client, fails
from tests.maintenance import DAY_MS, processed, purger, resolve_at, resolver
from tests.plant import Works
from tests.world import BUCKET, KilledError, document, never_arrives, refused

ONE: Final = Answer(200, "application/json", b'{"code":"0000","n":1}' + b" " * 400_000, "0000")
OTHER: Final = Answer(200, "application/json", b'{"code":"0000","n":2}' + b" " * 400_000, "0000")
DOWN: Final = refused("ServiceUnavailable", 503)
GONE_MS: Final = 401 * DAY_MS  # Past the evidence's time too.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core; one segment makes calls count."""
    del aws
    return Works(scan_segments=1)


def objects() -> list[str]:
    """Return the keys of all objects in the bucket."""
    found = client("s3").list_objects_v2(Bucket=BUCKET)
    return [each["Key"] for each in found.get("Contents", [])]


def answered(works: Works, guid: str = "G-1", answer: Answer = ONE) -> None:
    """Execute a request whose answer lies in the bucket."""
    works.core.outcomes.append(Answered(answer))
    assert works.post(guid).code == "0000"
    assert works.held(guid).response_object is not None


# --- THE BUCKET IS AWAY --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [DOWN, never_arrives], ids=["refused", "no_answer"])
def test_the_row_of_an_answer_that_the_bucket_did_not_take_is_finished_later(
    works: Works, fault: object
) -> None:
    """The channel has its answer at once; the resolver stores it when S3 is back; one call."""
    works.core.outcomes.append(Answered(ONE))
    works.s3.faults["put_object"] += [fault, fault]  # type: ignore[list-item]
    assert works.post().body == ONE.body
    assert (works.held().state, objects()) == (State.SENT, [])
    assert works.post().code == "E903"

    due_at = (works.held().due_at or 0) + 1
    assert resolve_at(works, due_at, processed(ONE)).state is State.UNKNOWN
    assert (works.post().code, document(works.get())["executed"]) == ("E901", "unknown")

    row = resolve_at(works, due_at + 60_000, processed(ONE))
    assert (row.state, row.code) == (State.DONE, "0000")
    replay = works.post()
    assert (replay.body, replay.headers["Idempotent-Replayed"]) == (ONE.body, "true")
    assert len(works.core.sent) == 1


def test_a_bucket_that_stays_away_loses_nothing_and_calls_nobody(works: Works) -> None:
    """The row stays in doubt, with its age; the core is asked, never called again."""
    works.core.outcomes.append(Answered(ONE))
    works.s3.faults["put_object"] += [DOWN] * 50
    works.post()
    for _ in range(20):
        works.clock.advance(900)
        works.core.findings[:] = [processed(ONE)]
        resolver(works)
    assert works.held().state is State.UNKNOWN
    assert len(works.core.sent) == 1


def test_an_answer_that_fits_needs_no_bucket(works: Works) -> None:
    """Whatever S3 does, plain transactions go on."""
    works.s3.faults["put_object"] += [DOWN] * 5
    works.s3.faults["get_object"] += [DOWN] * 5
    assert (works.post().code, works.post().code, works.s3.calls) == ("0000", "0000", [])


# --- A LATE WRITER -------------------------------------------------------------------------------


def test_a_late_holder_of_the_same_claim_does_not_overwrite_the_stored_answer(works: Works) -> None:
    """The resolver was faster with other bytes; the holder's own lie beside, and are not told."""

    def settle() -> None:
        works.abandon()
        assert resolve_at(works, works.clock() + 1, processed(OTHER)).state is State.DONE

    works.core.during.append(settle)
    works.core.outcomes.append(Answered(ONE))
    assert works.post().body == OTHER.body
    assert len(objects()) == 2
    assert works.post().body == OTHER.body


def test_a_late_holder_of_an_older_claim_does_not_overwrite_the_stored_answer(
    works: Works,
) -> None:
    """The same bytes under another claim are another object, and the stored one is untouched."""

    def go_on() -> None:
        works.abandon()
        works.not_found()
        works.claim_again()
        works.abandon()
        resolve_at(works, works.clock() + 1, processed(ONE))

    works.core.during.append(go_on)
    works.core.outcomes.append(Answered(ONE))
    works.post()
    row = works.held()
    assert row.response_object is not None
    key = row.response_object["key"]
    assert key.split("/")[1] == row.claim_id != "claim-1"
    assert key in objects()
    assert len(objects()) == 2
    assert client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read() == ONE.body


# --- THE ROW'S ROOM ------------------------------------------------------------------------------


def test_the_largest_request_leaves_room_for_every_later_step(works: Works) -> None:
    """256 KiB that no compression makes smaller, and an answer that no longer fits beside it."""
    body = random.Random(1).randbytes(262_144)
    octets = {"content-type": "application/octet-stream"}
    works.core.outcomes.append(Answered(ONE))
    assert works.post(body=body, headers=octets).body == ONE.body
    row = works.held()
    assert (row.request, row.response) == (body, None)
    assert item_bytes(works.item()) < 380_000
    assert works.post(body=body, headers=octets).body == ONE.body


# --- THE PURGE -----------------------------------------------------------------------------------


def test_the_purge_removes_the_object_after_its_row(works: Works) -> None:
    """While the row is there, its answer can be asked for."""
    answered(works)
    works.clock.ms += GONE_MS
    seen: list[object] = []
    works.s3.before["delete_object"].append(lambda: seen.append(works.row()))
    report = purger(works)
    assert (report.deleted, report.objects_left, seen) == (1, 0, [None])
    assert objects() == []


def test_a_purge_that_is_killed_anywhere_never_leaves_a_row_without_its_answer(
    works: Works,
) -> None:
    """At the worst an object is left without its row, which the bucket's lifecycle removes."""
    left_alone = 0
    for at in range(1, 12):
        guid = f"G-{at}"
        answered(works, guid)
        works.clock.ms += GONE_MS
        works.fuse.arm(at)
        try:
            purger(works)
        except KilledError:
            pass
        finally:
            works.fuse.arm(0)
        works.deploy()
        row, keys = works.row(guid), objects()
        assert row is None or keys, f"killed at call {at}"
        left_alone += row is None and bool(keys)
        purger(works)
        assert works.row(guid) is None
        for key in objects():
            client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert left_alone >= 1


def test_the_object_of_a_row_that_is_not_deleted_stays(works: Works) -> None:
    """A person has held it since it was read; and a dry run deletes nothing at all."""
    answered(works)
    works.clock.ms += GONE_MS
    assert purger(works, dry_run=True).deleted == 1
    works.dynamo.before["delete_item"].append(lambda: works.edit(hold="operator"))
    assert purger(works).deleted == 0
    assert len(objects()) == 1
    assert "delete_object" not in works.s3.calls


def test_the_object_of_a_row_that_another_deleted_is_left_to_the_lifecycle(works: Works) -> None:
    """TTL was faster: the purger knows nothing of who holds what then."""
    answered(works)
    works.clock.ms += GONE_MS
    key = {"guid": {"S": "G-1"}}
    works.dynamo.before["delete_item"].append(
        lambda: client("dynamodb").delete_item(TableName="relayhub-ledger", Key=key)
    )
    assert purger(works).deleted == 0
    assert (len(objects()), works.s3.calls.count("delete_object")) == (1, 0)


def test_a_bucket_that_is_away_does_not_hold_up_the_purge(works: Works) -> None:
    """After one object that stays no other is tried in this run: the rows are what it is for."""
    for number in range(4):
        answered(works, f"G-{number}")
    works.clock.ms += GONE_MS
    works.s3.faults["delete_object"] += [DOWN] * 4
    report = purger(works)
    assert (report.deleted, report.objects_left, report.complete) == (4, 4, True)
    assert (works.s3.calls.count("delete_object"), works.noted("object_left")) == (1, 1)


def test_a_row_without_an_object_asks_nothing_of_the_bucket(works: Works) -> None:
    """Most answers lie in their row."""
    works.post()
    works.clock.ms += GONE_MS
    works.s3.faults["delete_object"].append(fails(AssertionError()))
    report = purger(works)
    assert (report.deleted, report.objects_left, works.s3.calls) == (1, 0, [])

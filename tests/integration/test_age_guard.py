"""The age guard: a GUID older than the ledger's memory, with no row, is never executed as new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.replies import Reply
from tests.maintenance import DAY_MS, cancel
from tests.plant import Works
from tests.world import START_MS, document, refused

LIMIT_MS = 28 * DAY_MS  # The retention of 30 days less the margin of 2.
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def uuid7(born_ms: int) -> str:
    """Return a UUIDv7 of that time."""
    text = f"{born_ms:012x}7abc8def0123456789ab"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:32]))


def ulid(born_ms: int) -> str:
    """Return a ULID of that time."""
    coded = "".join(DIGITS[born_ms >> shift & 31] for shift in range(45, -1, -5))
    return f"{coded}ABCDEFGHJKMNPQRS"


def post(works: Works, guid: str) -> Reply:
    """Send a request."""
    return works.post(guid)


def get(works: Works, guid: str) -> Reply:
    """Ask for its status."""
    return works.get(guid)


MAKERS: dict[str, Callable[[Works, str], object]] = {
    "DONE": Works.post,
    "SENT": Works.kill,
    "UNKNOWN": Works.doubt,
    "FAILED": Works.fail,
}
SHAPES = pytest.mark.parametrize("make", [uuid7, ulid])
CALLS = pytest.mark.parametrize("call", [post, get, cancel])


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


@SHAPES
@CALLS
def test_a_guid_past_the_memory_and_without_a_row_is_refused(
    works: Works, make: Callable[[int], str], call: Callable[[Works, str], Reply]
) -> None:
    """E907: not executed now, perhaps then; nothing is written, sent, or buried."""
    guid = make(START_MS - LIMIT_MS - 1)
    reply = call(works, guid)
    told = document(reply)
    assert (reply.status, reply.code) == (422, "E907")
    assert (told["executed"], told["resend"], told["new_guid"]) == ("unknown", "no", "no")
    assert (works.row(guid), works.core.sent) == (None, [])
    assert works.dynamo.calls == ["get_item"]


@SHAPES
@pytest.mark.parametrize(
    ("call", "code", "requests"),
    [
        (post, "0000", ["put_item", "update_item"]),
        (get, None, ["get_item"]),
        (cancel, "E908", ["put_item"]),
    ],
    ids=["post", "get", "cancel"],
)
def test_a_guid_within_the_memory_costs_no_read(
    works: Works,
    make: Callable[[int], str],
    call: Callable[[Works, str], Reply],
    code: str | None,
    requests: list[str],
) -> None:
    """At the limit itself it is still taken as new."""
    assert call(works, make(START_MS - LIMIT_MS)).code == code
    assert works.dynamo.calls == requests


@SHAPES
@pytest.mark.parametrize("state", ["DONE", "SENT", "UNKNOWN", "FAILED"])
def test_an_old_guid_that_has_a_row_is_answered_from_it(
    works: Works, make: Callable[[int], str], state: str
) -> None:
    """Whatever its age; a FAILED one is sent again as ever."""
    guid = make(START_MS)
    MAKERS[state](works, guid)
    works.edit(guid, valid_until=START_MS + 100 * DAY_MS)
    works.clock.ms = START_MS + LIMIT_MS + 1
    code = {"DONE": "0000", "SENT": "E903", "UNKNOWN": "E901", "FAILED": "0000"}[state]
    sent = len(works.core.sent)
    assert works.get(guid).code == {"FAILED": "E902"}.get(state, code)
    assert works.post(guid).code == code
    assert len(works.core.sent) == sent + (state == "FAILED")


@SHAPES
@pytest.mark.parametrize(
    ("state", "cancelled"), [("DONE", False), ("UNKNOWN", False), ("FAILED", True)]
)
def test_an_old_guid_that_has_a_row_can_be_cancelled(
    works: Works, make: Callable[[int], str], state: str, *, cancelled: bool
) -> None:
    """By the row, as ever."""
    guid = make(START_MS)
    MAKERS[state](works, guid)
    works.clock.ms = START_MS + LIMIT_MS + 1
    assert document(cancel(works, guid))["cancelled"] is cancelled
    assert cancel(works, guid, "app").code == "E904"


@SHAPES
def test_another_body_under_an_old_guid_is_still_another_request(
    works: Works, make: Callable[[int], str]
) -> None:
    """E904 by its row, not E907."""
    guid = make(START_MS)
    works.post(guid)
    works.clock.ms = START_MS + LIMIT_MS + 1
    assert works.post(guid, body=b'{"amount":7}').code == "E904"


@SHAPES
@CALLS
def test_a_ledger_that_cannot_be_read_is_not_taken_for_one_without_the_row(
    works: Works, make: Callable[[int], str], call: Callable[[Works, str], Reply]
) -> None:
    """E906, and nothing is executed or buried."""
    works.dynamo.faults["get_item"] += [refused("ThrottlingException")] * 2
    guid = make(START_MS - LIMIT_MS - 1)
    assert call(works, guid).code == "E906"
    assert (works.row(guid), works.core.sent) == (None, [])


@SHAPES
@CALLS
def test_the_guard_can_be_switched_off(
    aws: None, make: Callable[[int], str], call: Callable[[Works, str], Reply]
) -> None:
    """Where GUIDs only look like times."""
    del aws
    works = Works(guid_time=False)
    assert call(works, make(START_MS - LIMIT_MS - 1)).code in {"0000", None, "E908"}


OTHERS: list[Any] = [
    pytest.param("G-1", id="plain"),
    pytest.param("6ba7b810-9dad-41d1-80b4-00c04fd430c8", id="uuid4"),
    pytest.param(uuid7(1_577_836_800_000 - 1), id="uuid7_before_2020"),
    pytest.param(ulid(START_MS + DAY_MS + 5_001), id="ulid_beyond_a_day_ahead"),
    pytest.param(uuid7(START_MS + DAY_MS), id="uuid7_a_day_ahead"),
]


@pytest.mark.parametrize("guid", OTHERS)
def test_a_guid_without_a_birth_costs_no_read(works: Works, guid: str) -> None:
    """It cannot be too old: the limit of this guard, which is documented."""
    assert works.post(guid).code == "0000"
    assert works.dynamo.calls == ["put_item", "update_item"]


@pytest.mark.parametrize(
    ("settings", "limit_ms"),
    [
        ({"retention_s": 40 * 86_400}, 38 * DAY_MS),
        ({"retention_s": 60 * 86_400, "age_horizon_s": 30 * 86_400}, 28 * DAY_MS),
        ({"age_margin_s": 5 * 86_400}, 25 * DAY_MS),
    ],
    ids=["retention", "horizon", "margin"],
)
def test_the_limit_is_the_shortest_retention_ever_in_force_less_the_margin(
    aws: None, settings: dict[str, int], limit_ms: int
) -> None:
    """Raising the retention does not bring back the rows that are gone."""
    del aws
    works = Works(**settings)
    assert works.post(uuid7(START_MS - limit_ms - 1)).code == "E907"
    assert works.post(uuid7(START_MS - limit_ms)).code == "0000"


def test_a_resend_after_its_row_was_purged_is_not_executed_again(works: Works) -> None:
    """The whole way: executed, kept for the retention, gone, resent."""
    guid = uuid7(START_MS)
    works.post(guid)
    works.clock.ms = (works.held(guid).expires_at or 0) * 1000
    works.hub.upkeep.delete_expired(guid, works.clock() // 1000)
    assert works.row(guid) is None
    assert works.post(guid).code == "E907"
    assert len(works.core.sent) == 1

"""The resolver, row by row: who is gone, what the core's inquiry proves, and what waits."""

from __future__ import annotations

from typing import Any

import pytest

from relayhub.core import Finding
from relayhub.message import Answer
from relayhub.states import Event, Hold, State, Verdict
from tests.maintenance import (
    AWAY,
    NOT_FOUND,
    PROCESSING,
    UNDECIDED,
    accept,
    events,
    processed,
    resolve_at,
    resolver,
)
from tests.plant import Works
from tests.world import EXECUTED, REFUSED, START_MS, refused

SHIFT_JIS = Answer(200, "text/plain; charset=Shift_JIS", "0000 完了\x00  ".encode("cp932"), "0000")
REFUSED_500 = Answer(500, "application/json", b'{"code":"E500"} \n', "E500")
LARGE = Answer(200, "application/octet-stream", b"0000" + bytes(range(256)) * 2_000, "0000")
DEAD_MS = START_MS + 25_000
COUNTS_MS = START_MS + 65_001  # The first moment at which a NOT_FOUND of `doubt()` counts.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


@pytest.mark.parametrize(
    ("after_ms", "state"),
    [(0, State.SENT), (4_999, State.SENT), (5_000, State.SENT), (5_001, State.UNKNOWN)],
)
def test_a_holder_counts_as_gone_only_past_its_end_and_the_skew(
    works: Works, after_ms: int, state: State
) -> None:
    """Until then the row is its holder's alone: nothing is written and nobody is asked."""
    works.kill()
    before = works.item()
    row = resolve_at(works, DEAD_MS + after_ms, UNDECIDED)
    assert row.state is state
    assert (len(works.core.asked), len(works.core.sent)) == (int(state is State.UNKNOWN), 1)
    if state is State.SENT:
        assert works.item() == before | {"due_at": works.item()["due_at"]}
    else:
        assert (row.code, row.doubted, row.due_at) == ("E901", True, works.clock() + 15_000)


def test_a_row_without_dead_at_is_nobodys_to_give_up(works: Works) -> None:
    """No time says that its holder is gone."""
    works.kill()
    works.edit(dead_at=None)
    assert resolve_at(works, START_MS + 10_000_000, processed()).state is State.SENT
    assert works.core.asked == []


@pytest.mark.parametrize(
    ("finding", "state"),
    [(processed(), "DONE"), (NOT_FOUND, "UNKNOWN"), (PROCESSING, "UNKNOWN"), (AWAY, "UNKNOWN")],
    ids=["processed", "not_found", "processing", "away"],
)
def test_an_early_inquiry_believes_only_that_it_was_processed(
    works: Works, finding: Finding, state: str
) -> None:
    """Fifteen seconds after the doubt it is asked; everything else means: ask again."""
    works.doubt()
    works.clock.ms = START_MS + 14_999
    resolver(works)
    assert works.core.asked == []
    works.clock.ms = START_MS + 15_000
    works.core.findings.append(finding)
    resolver(works)
    row = works.held()
    assert (row.state, works.core.asked) == (state, ["G-1"])
    assert row.not_found_at is None
    assert len(works.core.sent) == 1


@pytest.mark.parametrize(
    "answer",
    [EXECUTED, REFUSED, REFUSED_500, SHIFT_JIS, LARGE],
    ids=["executed", "refused", "e500", "shift_jis", "large"],
)
def test_what_the_core_has_processed_is_replayed_byte_for_byte(
    works: Works, answer: Answer
) -> None:
    """The original bytes, status and type; one too large for the row by way of the bucket."""
    works.doubt()
    row = resolve_at(works, START_MS + 15_000, processed(answer))
    assert (row.state, row.code, row.answer_source) == (State.DONE, answer.code, "inquiry")
    assert (row.response is None) == (answer is LARGE)
    reply = works.post()
    assert (reply.status, reply.content_type, reply.body) == (
        answer.status,
        answer.content_type,
        answer.body,
    )
    assert reply.headers["Idempotent-Replayed"] == "true"
    assert (len(works.core.sent), works.hints()) == (1, [])


def test_a_killed_holders_answer_is_found_without_anybody_resending(works: Works) -> None:
    """The row is given up and asked about in one run, and its overdue time is reported."""
    works.kill()
    works.clock.ms = DEAD_MS + 65_000
    works.core.findings.append(processed())
    report = resolver(works)
    assert report.oldest_due_ms["SENT"] == 60_000
    assert report.oldest_age_ms == {"SENT": DEAD_MS + 65_000 - START_MS}
    assert events(works) == ["claimed", "abandoned", "processed"]
    assert works.post().body == EXECUTED.body


def test_done_by_inquiry_keeps_the_longer_evidence(works: Works) -> None:
    """A row that was ever in doubt outlives the ordinary retention."""
    works.doubt()
    row = resolve_at(works, START_MS + 15_000, processed())
    assert row.expires_at == (START_MS + 15_000) // 1000 + 400 * 86_400


def test_an_answer_that_cannot_be_kept_leaves_the_row_in_doubt(works: Works) -> None:
    """The bucket refuses: nothing is said, and it is asked again later."""
    works.doubt()
    works.s3.faults["put_object"].append(refused("SlowDown", 503))
    row = resolve_at(works, START_MS + 15_000, processed(LARGE))
    assert (row.state, row.due_at) == (State.UNKNOWN, START_MS + 30_000)
    assert resolve_at(works, START_MS + 30_000, processed(LARGE)).state is State.DONE


UNDECIDED_REASONS = [
    "gateway_status",  # 403, a proxy's 404, 5xx
    "not_json",
    "other_guid",
    "redirect",
    "truncated",
    "answer_timeout",
    "credentials_unreadable",
    "core_unreachable",
]


@pytest.mark.parametrize("reason", UNDECIDED_REASONS)
def test_what_decides_nothing_never_makes_failed_of_a_doubt(works: Works, reason: str) -> None:
    """However old the row is, and however often it is said: UNKNOWN, counted, asked again later."""
    works.doubt()
    for turn in range(5):
        row = resolve_at(
            works, COUNTS_MS + turn * 1_000_000, Finding(Verdict.UNDECIDED, None, reason)
        )
        assert (row.state, row.code, row.not_found_at) == (State.UNKNOWN, "E901", None)
        assert row.due_at is not None
        assert row.due_at > works.clock()
    assert (works.noted("undecided"), works.hints()) == (5, [])
    assert events(works) == ["claimed", "doubted"]


def test_inquiries_back_off_but_not_past_the_moment_when_a_not_found_counts(works: Works) -> None:
    """15 s, doubling to 15 min; exactly once cut short: when a NOT_FOUND starts to count."""
    works.doubt()
    turns = []
    for _ in range(10):
        works.clock.ms = works.held().due_at or 0
        works.core.findings.append(UNDECIDED)
        resolver(works)
        turns.append((works.held().due_at or 0) - works.clock())
    assert turns == [15_000, 30_000, 5_001, 120_000, 240_000, 480_000, *[900_000] * 4]


@pytest.mark.parametrize("expired", [False, True], ids=["valid", "expired"])
def test_an_accepted_request_whose_message_does_not_come_ends_as_not_sent(
    works: Works, *, expired: bool
) -> None:
    """Overdue: FAILED, for the hub to send while it is valid; past its validity: E908."""
    accept(works, valid_until=START_MS + (120_000 if expired else 120_001))
    works.clock.ms = START_MS + 119_999
    resolver(works)
    assert works.held().state is State.RECEIVED
    works.clock.ms = START_MS + 120_000
    resolver(works)
    row = works.held()
    if expired:
        assert (row.state, row.code, works.hints()) == (State.DONE, "E908", [])
    else:
        assert (row.state, row.code, row.why) == (State.FAILED, "E902", "not_sent")
        assert len(works.hints()) == 1
    assert (works.core.asked, works.core.sent) == ([], [])


HOLDS = ["operator", "contradiction", "forgotten"]


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("state", ["SENT", "UNKNOWN", "RECEIVED"])
def test_nobody_but_a_person_moves_a_held_row(works: Works, state: str, hold: str) -> None:
    """Not even when the index still shows it as due."""
    {"SENT": works.kill, "UNKNOWN": works.doubt, "RECEIVED": lambda: accept(works)}[state]()
    works.edit(hold=hold, due_at=START_MS)
    works.clock.advance(1_000_000)
    before = works.item()
    report = resolver(works)
    assert (works.item(), works.core.asked, report.due) == (before, [], 1)


def test_a_held_row_is_not_even_looked_at_once_the_index_knows(works: Works) -> None:
    """It stands in a group of its own, so that no run reads it again and again."""
    works.doubt()
    works.move(Event.HELD, by="operator", hold=Hold.OPERATOR)
    works.clock.advance(1_000_000)
    assert resolver(works).due == 0


@pytest.mark.parametrize("verdict", ["processed", "not_found"])
def test_a_restored_row_is_resolved_and_stays_held(works: Works, verdict: str) -> None:
    """PROCESSED ends it, NOT_FOUND makes it FAILED; a person looks at it all the same."""
    works.doubt()
    works.move(Event.HELD, by="operator", hold=Hold.RESTORED)
    finding = processed() if verdict == "processed" else NOT_FOUND
    resolve_at(works, COUNTS_MS, finding)
    row = resolve_at(works, COUNTS_MS + 30_000, finding)
    assert row.state == ("DONE" if verdict == "processed" else "FAILED")
    assert (row.hold, row.expires_at, works.hints()) == ("restored", None, [])
    assert works.post().code == "E901"
    assert len(works.core.sent) == 1


def test_a_restored_row_with_a_cancel_is_asked_about_ever_more_rarely(works: Works) -> None:
    """Hold stops E908, the cancel stops FAILED: it waits, and never takes every run's time."""
    works.doubt()
    works.move(Event.CANCEL_RECORDED, cancel={"at": START_MS, "by": "atm"})
    works.move(Event.HELD, by="operator", hold=Hold.RESTORED)
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    row = resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND)
    assert (row.state, row.hold) == (State.UNKNOWN, "restored")
    assert (row.due_at or 0) > works.clock()


def _newer(works: Works, state: str) -> dict[str, Any]:
    {"SENT": works.kill, "UNKNOWN": works.doubt, "RECEIVED": lambda: accept(works)}[state]()
    works.edit(schema=2, due_at=START_MS)
    works.clock.advance(100_000)
    works.core.findings += [processed(), processed()]
    return works.item()


@pytest.mark.parametrize("state", ["SENT", "UNKNOWN", "RECEIVED"])
def test_rows_of_a_newer_version_are_left_alone(works: Works, state: str) -> None:
    """Old code neither writes to them nor asks about them."""
    before = _newer(works, state)
    resolver(works)
    assert (works.item(), works.core.asked) == (before, [])


@pytest.mark.parametrize("finding", [processed(), NOT_FOUND], ids=["processed", "not_found"])
def test_a_hold_between_the_resolvers_read_and_its_write_stops_the_write(
    works: Works, finding: Finding
) -> None:
    """Else a held row would bear an expiry, or stand where the jobs would find it."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    works.dynamo.before["update_item"].append(lambda: works.edit(hold="operator"))
    row = resolve_at(works, COUNTS_MS + 30_000, finding)
    assert (row.state, row.hold, row.expires_at) == (State.UNKNOWN, "operator", None)

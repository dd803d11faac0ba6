"""What the hub answers: the core's bytes, or its own document with every field."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from relayhub.message import Answer
from relayhub.replies import (
    Reply,
    code_of,
    not_known,
    of_accepted,
    of_code,
    of_core,
    of_row,
    status_of,
)
from relayhub.row import Row, hub_sends
from relayhub.states import TOLD, Code, DefiniteCodes, Delivery, Hold, State

CODES = DefiniteCodes()
NOW = 1_800_000_000_000
FIELDS = {
    "type",
    "title",
    "detail",
    "code",
    "guid",
    "state",
    "attempt",
    "accepted_at",
    "executed",
    "resend",
    "new_guid",
    "ask_after",
    "valid_until",
}
ROW = Row(
    "G-1",
    State.SENT,
    "atm",
    NOW,
    NOW,
    attempt=2,
    dead_at=NOW + 25_000,
    ask_after=NOW + 90_000,
    valid_until=NOW + 86_400_000,
)


def told(reply: Reply) -> dict[str, Any]:
    """Return the reply's document."""
    found = json.loads(reply.body)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("words", TOLD, ids=lambda words: f"{words.label}-{words.status}")
def test_every_code_makes_a_whole_document(words: Any) -> None:
    """All fields of the contract; the words are the table's."""
    code = {"B2xx, E500": "B201"}.get(words.label, words.label)
    delivery = Delivery.INTERACTIVE if words.status == 503 else Delivery.DEFERRED
    row = replace(ROW, delivery=delivery, response_status=200)
    reply = of_row(row, CODES, NOW, code=code)
    document = told(reply)
    assert set(document) == FIELDS | {"status"}
    assert document["status"] == reply.status == (words.status or 200)
    assert (document["code"], reply.code) == (code, code)
    assert (document["title"], document["detail"]) == (words.title, words.detail)
    assert document["executed"] == words.executed
    assert (document["resend"], document["new_guid"]) == (words.resend, words.new_guid)
    assert (document["state"], document["attempt"]) == ("SENT", 2)
    assert document["accepted_at"] == "2027-01-15T08:00:00.000Z"
    is_open = code in {Code.E901, Code.E903}
    assert document["ask_after"] == ("2027-01-15T08:01:30.000Z" if is_open else None)
    assert document["valid_until"] == "2027-01-16T08:00:00.000Z"


@pytest.mark.parametrize("code", list(Code))
def test_a_code_without_a_row_makes_a_whole_document_too(code: Code) -> None:
    """The facts of a row are there, and empty."""
    reply = of_code(code, "G-1", detail="Because.")
    document = told(reply)
    assert set(document) == FIELDS | {"status"}
    facts = ("state", "attempt", "accepted_at", "ask_after", "valid_until")
    assert {document[name] for name in facts} == {None}
    assert document["detail"].startswith("Because. ")
    assert (document["guid"], document["code"]) == ("G-1", code)


@pytest.mark.parametrize("code", [Code.E903, Code.E906])
def test_who_must_come_back_is_told_when(code: Code) -> None:
    """Retry-After, with a row or without one."""
    assert int(of_code(code, "G-1").headers["Retry-After"]) >= 1
    assert int(of_row(ROW, CODES, NOW, code=code).headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("later_ms", "seconds"),
    [(0, 25), (1, 25), (999, 25), (1_000, 24), (24_000, 1), (24_999, 1), (25_000, 1), (10**9, 1)],
)
def test_in_progress_says_how_long_its_holder_may_live(later_ms: int, seconds: int) -> None:
    """What is left until dead_at, rounded up, at least a second."""
    reply = of_row(ROW, CODES, NOW + later_ms)
    assert (reply.code, reply.headers["Retry-After"]) == ("E903", str(seconds))


STATES = [
    (State.RECEIVED, None, None, "E903"),
    (State.SENT, None, None, "E903"),
    (State.UNKNOWN, None, None, "E901"),
    (State.FAILED, "E902", None, "E902"),
    (State.DONE, "0000", None, "0000"),
    (State.DONE, "B201", None, "B201"),
    (State.DONE, "E908", None, "E908"),
    (State.DONE, None, None, "E901"),
    *((state, "0000", Hold.CONTRADICTION, "E901") for state in State),
]


@pytest.mark.parametrize(("state", "code", "hold", "expected"), STATES)
def test_a_row_means_one_code(
    state: State, code: str | None, hold: Hold | None, expected: str
) -> None:
    """Its state's, its answer's if it is DONE, and E901 under any hold."""
    assert code_of(replace(ROW, state=state, code=code, hold=hold)) == expected


OTHERS_SEND = [
    {"delivery": Delivery.INTERACTIVE},
    {"parked": "cap"},
    {"hold": Hold.OPERATOR},
    {"cancel": {"at": 1}},
]


@pytest.mark.parametrize("change", OTHERS_SEND, ids=lambda change: next(iter(change)))
def test_the_hub_promises_only_what_it_does(change: dict[str, Any]) -> None:
    """Interactive, parked, held and cancelled rows are not sent by it."""
    assert hub_sends(ROW)
    assert not hub_sends(replace(ROW, **change))


def test_the_cores_answer_goes_as_it_came() -> None:
    """Status, type and bytes; beside them when it was accepted, and which attempt it was."""
    answer = Answer(201, "text/plain; charset=Shift_JIS", b"\x8e\xf3 \x00", "0000")
    first = of_core(answer, ROW, replayed=False)
    assert (first.status, first.content_type, first.body) == (201, answer.content_type, answer.body)
    assert first.headers == {"Accepted-At": "2027-01-15T08:00:00.000Z", "Attempt": "2"}
    again = of_core(answer, ROW, replayed=True)
    assert again.headers == {**first.headers, "Idempotent-Replayed": "true"}
    assert again.body == first.body


def test_a_status_has_the_age_in_whole_seconds() -> None:
    """Never negative, whatever the clocks say."""
    assert told(status_of(ROW, CODES, NOW + 1_999))["age_s"] == 1
    assert told(status_of(ROW, CODES, NOW - 5_000))["age_s"] == 0
    document = told(status_of(ROW, CODES, NOW))
    assert set(document) >= FIELDS | {"updated_at", "age_s"}


def test_not_known_bears_no_code_and_promises_nothing() -> None:
    """No code means: treat it as in doubt."""
    document = told(not_known("G-1"))
    assert set(document) == FIELDS | {"status"}
    assert (document["code"], document["executed"], document["new_guid"]) == (None, "unknown", "no")
    assert "may still arrive" in document["detail"]


def test_problems_are_problems_and_the_rest_is_json() -> None:
    """RFC 9457's type for what is not a success."""
    assert of_row(ROW, CODES, NOW).content_type == "application/problem+json"
    waiting = replace(ROW, state=State.FAILED, code="E902")
    assert (of_row(waiting, CODES, NOW).status, of_row(waiting, CODES, NOW).content_type) == (
        202,
        "application/json",
    )
    assert status_of(ROW, CODES, NOW).content_type == "application/json"


RECEIVED = replace(
    ROW,
    guid="3f2b8c1e-7d4a-4e0b-9a5c-0123456789ab",
    state=State.RECEIVED,
    attempt=0,
    dead_at=None,
    ask_after=None,
)


def test_what_is_accepted_for_later_is_told_where_to_ask() -> None:
    """202 with the status's path and the preference that was applied (RFC 7240)."""
    reply = of_accepted(RECEIVED)
    assert (reply.status, reply.content_type, reply.code) == (202, "application/json", "E903")
    assert reply.headers == {
        "Location": "/transactions/3f2b8c1e-7d4a-4e0b-9a5c-0123456789ab",
        "Preference-Applied": "respond-async",
        "Retry-After": "1",
    }


def test_what_is_accepted_for_later_is_in_progress() -> None:
    """A whole document in the words of E903: neither failed nor done, never to be started anew."""
    document = told(of_accepted(RECEIVED))
    words = next(each for each in TOLD if each.label == Code.E903)
    assert set(document) == FIELDS | {"status"}
    assert (document["status"], document["code"]) == (202, "E903")
    assert (document["title"], document["detail"]) == (words.title, words.detail)
    assert (document["executed"], document["resend"]) == ("unknown", "yes")
    assert document["new_guid"] == "no"
    assert (document["guid"], document["state"]) == (RECEIVED.guid, "RECEIVED")
    assert (document["attempt"], document["ask_after"]) == (0, None)
    assert document["accepted_at"] == "2027-01-15T08:00:00.000Z"
    assert document["valid_until"] == "2027-01-16T08:00:00.000Z"


def test_a_reply_that_tells_of_a_row_is_recorded() -> None:
    """A message that got one is taken; whoever knows of no row says so."""
    answer = Answer(200, "text/plain", b"ok", "0000")
    for reply in (
        of_accepted(RECEIVED),
        of_row(ROW, CODES, NOW),
        of_core(answer, ROW, replayed=True),
    ):
        assert reply.is_recorded
    assert not of_code(Code.E906, "G-1").is_recorded
    assert not not_known("G-1").is_recorded

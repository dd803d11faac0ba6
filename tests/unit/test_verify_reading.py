"""What an answer tells a channel, and how the expectations judge it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from relayhub.replies import not_known, of_code
from relayhub.states import TOLD, Code
from verify import expect
from verify.reading import Reading, code_of, is_own_document, read, retry_after_s, shown
from verify.scenario import FailedError
from verify.wire import NO_ANSWER, Answer

JSON = {"content-type": "application/json"}


def answer(status: int = 200, headers: dict[str, str] | None = None, **document: Any) -> Answer:
    """Return an answer with a JSON body."""
    return Answer(status, {**JSON, **(headers or {})}, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("got", "code", "words"),
    [
        (answer(code="0000"), "0000", ("yes", "no", "no")),
        (answer(422, code="B201"), "B201", ("no", "no", "yes")),
        (answer(500, code="E500"), "E500", ("no", "no", "yes")),
        (answer(code="Z999"), "Z999", ("unknown", "yes", "no")),
        (answer(code=7), None, ("unknown", "yes", "no")),
        (answer(502, message="Bad Gateway"), None, ("unknown", "yes", "no")),
        (Answer(200, {}, b"OK"), None, ("unknown", "yes", "no")),
        (Answer(200, {}, b"[]"), None, ("unknown", "yes", "no")),
        (Answer(200, {"x-response-code": "0000"}, b"\x8c"), "0000", ("yes", "no", "no")),
        (NO_ANSWER, None, ("unknown", "yes", "no")),
        (
            answer(410, code="E908", executed="no", resend="no", new_guid="yes"),
            "E908",
            ("no", "no", "yes"),
        ),
    ],
    ids=[
        *("executed", "refused", "e500", "unknown-code", "number", "gateway", "bare-200", "list"),
        *("header", "none", "own-document"),
    ],
)
def test_an_answer_is_read_as_the_guide_says(
    got: Answer, code: str | None, words: tuple[str, str, str]
) -> None:
    """No code means E901: not known, resend, no new GUID."""
    told = read(got)
    assert (told.code, (told.executed, told.resend, told.new_guid)) == (code, words)


@pytest.mark.parametrize("told", TOLD, ids=lambda told: f"{told.label}-{told.status}")
def test_the_reading_agrees_with_what_the_hub_means(told: Any) -> None:
    """The grader has words of its own; they are those of the hub's table."""
    if told.label in set(Code):
        reply = of_code(Code(told.label), "G-1")
        got = read(Answer(reply.status, JSON, reply.body))
        assert got.code == told.label
        if told.label != Code.E902:  # Its words depend on the row.
            words = (told.executed, told.resend, told.new_guid)
            assert (got.executed, got.resend, got.new_guid) == words
        return
    for code in told.label.replace("B2xx", "B201").split(", "):
        got = read(answer(code=code))
        assert (got.executed, got.new_guid) == (told.executed, told.new_guid)
        assert got.is_definite


def test_an_unknown_guid_is_an_own_document_without_a_code() -> None:
    """So that a gateway's 404 is not taken for a status."""
    reply = not_known("G-1")
    assert is_own_document(Answer(404, JSON, reply.body))
    assert code_of(Answer(404, JSON, reply.body)) is None
    assert not is_own_document(answer(404, message="Not Found"))


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("", None), ("soon", None), ("-1", None)], ids=str
)
def test_retry_after_is_whole_seconds(text: str, seconds: int | None) -> None:
    """Anything else is none."""
    assert retry_after_s(answer(409, {"retry-after": text})) == seconds


def test_a_sentence_names_the_code_or_the_status() -> None:
    """A person must be able to tell no answer from one without a code."""
    assert shown(answer(code="E901")) == "E901"
    assert shown(answer(502, message="x")) == "an answer without a code (502)"
    assert shown(NO_ANSWER) == "no answer"


E901 = answer(504, code="E901", executed="unknown", resend="yes", new_guid="no")
LIAR = answer(504, code="E901", executed="no", resend="yes", new_guid="no")
RIGHT = [
    (lambda: expect.code(answer(code="0000"), "0000"), "0000"),
    (lambda: expect.unconfirmed(E901), "e901"),
    (lambda: expect.unconfirmed(answer(502)), "bare-502"),
    (lambda: expect.unconfirmed(NO_ANSWER), "no-answer"),
    (lambda: expect.in_progress(answer(409)), "bare-409"),
    (lambda: expect.other_request(answer(422)), "bare-422"),
    (lambda: expect.other_request(answer(422, code="E904")), "e904"),
    (lambda: expect.malformed(answer(413)), "bare-413"),
    (lambda: expect.unsent(answer(202, code="E902")), "e902"),
    (lambda: expect.unsent(answer(502)), "claims-nothing"),
    (lambda: expect.same(answer(code="0000"), answer(code="0000")), "same"),
]
WRONG = [
    (lambda: expect.code(answer(502), "0000"), "the answer was an answer without a code (502)"),
    (lambda: expect.unconfirmed(answer(code="0000")), "the answer was 0000, though nobody knows"),
    (lambda: expect.unconfirmed(LIAR), "says executed, resend, new_guid: ('no', 'yes', 'no')"),
    (lambda: expect.in_progress(E901), "the resend was E901 instead of E903"),
    (lambda: expect.in_progress(answer(500)), "instead of E903"),
    (lambda: expect.other_request(answer(409)), "instead of E904"),
    (lambda: expect.malformed(answer(500)), "instead of E905"),
    (lambda: expect.unsent(answer(code="B201")), "though the core never got the request"),
    (lambda: expect.words(E901, "no", "yes", "no"), "E901 says executed: unknown instead of no"),
    (lambda: expect.cancelled(E901, is_done=True), "says cancelled: none instead of true"),
    (lambda: expect.same(answer(200), answer(201)), "status 201"),
    (lambda: expect.same(answer(200), Answer(200, {}, b"{}")), "got the content type ''"),
    (lambda: expect.same(answer(a=1), answer(a=2)), "got other bytes"),
]


@pytest.mark.parametrize("right", [each for each, _ in RIGHT], ids=[name for _, name in RIGHT])
def test_what_is_right_passes(right: Callable[[], object]) -> None:
    """Codes, or the bare statuses that mean the same."""
    right()


@pytest.mark.parametrize(
    ("wrong", "says"), WRONG, ids=[f"{index}" for index, _ in enumerate(WRONG)]
)
def test_what_is_wrong_is_told_in_a_sentence(wrong: Callable[[], object], says: str) -> None:
    """The sentence is what the table shows."""
    with pytest.raises(FailedError) as failed:
        wrong()
    assert says in str(failed.value)


def test_a_definite_end_is_the_cores_code_or_never() -> None:
    """E902 is no end: it may be sent yet."""
    assert Reading("E908").is_definite
    assert not Reading("E902").is_definite
    assert not Reading(None).is_definite

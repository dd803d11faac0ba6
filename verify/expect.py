"""What is right of an answer; each raises FailedError with the sentence that says what was not."""

from __future__ import annotations

import hashlib
from typing import Final

from verify import reading
from verify.play import require
from verify.reading import Reading, shown
from verify.wire import Answer

_CLIENT_ERRORS: Final = range(400, 500)


def code(answer: Answer, *wanted: str, what: str = "the answer") -> Reading:
    """Demand one of the codes, and return what the answer tells."""
    told = reading.read(answer)
    require(told.code in wanted, f"{what} was {shown(answer)} instead of {' or '.join(wanted)}")
    return told


def same(first: Answer, again: Answer, what: str = "the resend") -> None:
    """Demand the first answer again: status, content type and every byte."""
    require(again.status == first.status, f"{what} got {shown(again)} and status {again.status}")
    type_ = f"{what} got the content type {again.content_type!r} instead of {first.content_type!r}"
    require(again.content_type == first.content_type, type_)
    is_same = _digest(first) == _digest(again)
    require(is_same, f"{what} got other bytes than the first answer had")


def unconfirmed(answer: Answer, what: str = "the answer") -> Reading:
    """Demand the word that nobody knows: E901, E903, or no code, which means the same."""
    told = reading.read(answer)
    is_open = told.code is None or told.code in reading.UNCONFIRMED
    require(is_open, f"{what} was {shown(answer)}, though nobody knows what became of it")
    words = (told.executed, told.resend, told.new_guid)
    require(words == ("unknown", "yes", "no"), f"{what} says executed, resend, new_guid: {words}")
    return told


def in_progress(answer: Answer, what: str = "the resend") -> None:
    """Demand the word that the first one is still at it: E903, or a bare 409."""
    told = unconfirmed(answer, what)
    is_bare = told.code is None and answer.status == reading.IN_PROGRESS_STATUS
    require(told.code == "E903" or is_bare, f"{what} was {shown(answer)} instead of E903")


def other_request(answer: Answer, what: str = "the other request") -> None:
    """Demand the refusal of another request under a GUID that is taken: E904, or a bare 422."""
    told = reading.read(answer)
    is_bare = told.code is None and answer.status == reading.OTHER_REQUEST_STATUS
    require(told.code == "E904" or is_bare, f"{what} was {shown(answer)} instead of E904")


def malformed(answer: Answer, what: str = "the request") -> None:
    """Demand the refusal of what can be read in two ways: E905, or a bare 4xx."""
    told = reading.read(answer)
    is_bare = told.code is None and answer.status in _CLIENT_ERRORS
    require(told.code == "E905" or is_bare, f"{what} was told {shown(answer)} instead of E905")


def unsent(answer: Answer, what: str = "the answer") -> None:
    """Demand the word that nothing was sent (E902), or none at all."""
    told = reading.read(answer)
    is_right = told.code is None or told.code == "E902"
    require(is_right, f"{what} was {shown(answer)}, though the core never got the request")


def words(answer: Answer, executed: str, resend: str, new_guid: str) -> None:
    """Demand these fields, which say what the channel may do."""
    told = reading.read(answer)
    found = {"executed": told.executed, "resend": told.resend, "new_guid": told.new_guid}
    wanted = {"executed": executed, "resend": resend, "new_guid": new_guid}
    wrong = [name for name, value in wanted.items() if found[name] != value]
    differs = ", ".join(f"{name}: {found[name]} instead of {wanted[name]}" for name in wrong)
    require(not wrong, f"{shown(answer)} says {differs}")


def cancelled(answer: Answer, *, is_done: bool, what: str = "the cancel") -> None:
    """Demand the word whether the act is given up."""
    told = reading.fields_of(answer).get("cancelled")
    wanted = str(is_done).lower()
    require(told is is_done, f"{what} says cancelled: {str(told).lower()} instead of {wanted}")


def _digest(answer: Answer) -> str:
    return hashlib.sha256(answer.body).hexdigest()

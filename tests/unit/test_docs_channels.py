"""The channel guide and the table of codes say what the hub answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from relayhub.http_event import CANCEL, STATUS, SUBMIT, read_call
from relayhub.message import MalformedError, MessageRules, read_submission
from relayhub.replies import Reply, of_cancel, of_row
from relayhub.row import Row
from relayhub.states import TOLD, Code, DefiniteCodes, Delivery, Hold, State, Told
from tools import docs

GUIDE: Final = "docs/channel-guide.md"
FIRST_LINE: Final = "**No `code` in the answer (a gateway's 5xx, a dead function, even a bare 200)"
OVER: Final = Row("G-1", State.DONE, "atm", 0, 0, code="E908")


def text_of(page: str) -> str:
    """Return a page's text."""
    return (docs.ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("route", [SUBMIT, STATUS, CANCEL])
def test_the_guide_describes_every_route(route: str) -> None:
    """A channel developer finds each call that the hub takes."""
    assert f"`{route}`" in text_of(GUIDE)


@pytest.mark.parametrize(
    ("said", "row"),
    [
        ("nothing", OVER),
        ("not executed (FAILED)", OVER),
        ("sent, in progress (SENT)", replace(OVER, state=State.SENT)),
        ("sent, in doubt (UNKNOWN)", replace(OVER, state=State.UNKNOWN)),
        ("executed (DONE)", replace(OVER, code="0000")),
        ("refused by the core (DONE)", replace(OVER, code="B201")),
        ("cancelled or expired (DONE)", OVER),
        ("on hold for a person", replace(OVER, code="0000", hold=Hold.CONTRADICTION)),
    ],
    ids=["nothing", "failed", "sent", "unknown", "executed", "refused", "over", "held"],
)
def test_the_guide_says_what_a_cancel_is_answered(said: str, row: Row) -> None:
    """The table of cancels agrees with the reply that the hub makes of the row as it is then."""
    reply = of_cancel(row, DefiniteCodes())
    told = json.loads(reply.body)
    facts = (
        f"`{told['code']}`",
        str(told["cancelled"]).lower(),
        told["executed"],
        told["new_guid"],
    )
    assert f"| {said} | {reply.status} | {' | '.join(facts)} | " in text_of(GUIDE)


@pytest.mark.parametrize("page", ["README.md", GUIDE])
def test_the_first_line_for_channels_says_what_no_code_means(page: str) -> None:
    """The line that keeps a channel from paying twice stands above the table of codes."""
    text = text_of(page)
    line = text.index(FIRST_LINE)
    assert "means E901" in text[line : line + 120]
    assert line < text.index("<!-- codes:")


@pytest.mark.parametrize("code", Code)
def test_every_code_of_the_hub_stands_in_the_table(code: Code) -> None:
    """A channel developer finds each code that the hub may answer."""
    assert f"| `{code}` |" in docs.code_table()


def example(told: Told) -> Reply:
    """Return the hub's own document for a row that bears the code."""
    delivery = Delivery.DEFERRED if told.status == 202 else Delivery.INTERACTIVE
    row = Row("G-1", State.SENT, "atm", 0, 0, delivery=delivery, dead_at=9_000)
    return of_row(row, DefiniteCodes(), 0, code=told.label)


@pytest.mark.parametrize(
    "told", [each for each in TOLD if each.status], ids=lambda each: f"{each.label}-{each.status}"
)
def test_the_table_says_with_which_status_and_wait_a_code_comes(told: Told) -> None:
    """The HTTP column agrees with the reply that the hub makes, Retry-After included."""
    reply = example(told)
    cell = docs.http_cell(told)
    assert str(reply.status) in cell
    assert ("Retry-After" in reply.headers) is ("Retry-After" in cell)


def event(route: str, path: str, user: str = "AIDA:session") -> dict[str, Any]:
    """Return an HTTP API event."""
    caller = {"authorizer": {"iam": {"userId": user}}}
    return {"routeKey": route, "rawPath": path, "requestContext": caller}


def test_the_table_names_every_status_of_e905() -> None:
    """Whatever refuses a request before anything is recorded has its status in the table."""
    calls = (
        event("POST /transactions", "/transactions", user=""),
        event("$default", "/elsewhere"),
        event("$default", "/transactions"),
    )
    replies = [read_call(each, "sub") for each in calls]
    statuses = {each.status for each in replies if isinstance(each, Reply)}
    for body in (b"", b"too large"):
        with pytest.raises(MalformedError) as refused:
            read_submission(
                headers={},
                body=body,
                is_text=False,
                channel="atm",
                rules=MessageRules(body_bytes_max=1),
                now_ms=0,
            )
        statuses.add(refused.value.status)
    (told,) = (each for each in TOLD if each.label == Code.E905)
    assert docs.http_cell(told) == ", ".join(map(str, sorted(statuses)))

"""The core was reached and said nothing that is certain: not confirmed, not sent again, settled.

Each ends with the core's own answer and one execution, whoever of the two was late.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from verify import expect, reading
from verify.play import INTERACTIVE, Act, Play, require, times
from verify.reading import shown
from verify.scenario import Scenario, Steps, make

# For each of some 160 bytes: longer in all than any channel waits.
_DRIP_S: Final = 0.3
_RESENDS: Final = 10
_FALSE_WORDS: Final = re.compile(r"\b(fail\w*|declin\w*|reject\w*|unsuccess\w*)\b", re.IGNORECASE)
_EXPECTS: Final = (
    "Not confirmed; a resend does not reach the core; in the end the core's own answer is told."
)

_Doubt = tuple[str, str, int | None, dict[str, Any]]

# Each executes the request.
DOUBTS: Final[tuple[_Doubt, ...]] = (
    ("core-silent", "the core executes and never answers", 11, {"kind": "execute_then_hang"}),
    ("core-closes", "the core executes and closes", 5, {"kind": "execute_then_close"}),
    ("core-resets", "the core executes and resets", None, {"kind": "execute_then_reset"}),
    *(
        (
            *(f"gateway-{status}", f"executed, and a gateway says {status}", None),
            {"kind": "gateway_page", "status": status, "executes": True},
        )
        for status in (502, 503, 504)
    ),
    ("redirect", "executed, and a redirect", None, {"kind": "redirect"}),
    ("truncated", "executed, and half an answer", None, {"kind": "truncated"}),
    ("codes-differ", "executed; header and body differ", None, {"kind": "two_codes"}),
    ("unknown-code", "executed, and an unknown code", None, {"kind": "unknown_code"}),
    ("garbage", "executed, and no HTTP", None, {"kind": "garbage"}),
    ("gzip", "executed, and a compressed answer", None, {"kind": "gzip"}),
    ("no-length", "executed; the answer has no end", None, {"kind": "no_length"}),
    ("drip", "executed; the answer drips", None, {"kind": "drip", "seconds": _DRIP_S}),
)


def doubted(play: Play, *rules: dict[str, Any], lines: tuple[tuple[str, str], ...] = ()) -> Act:
    """Send an act that meets these faults, is not confirmed, and stays so; return it."""
    act = play.act(*lines)
    play.faults(*({**rule, "guid": act.guid} for rule in rules))
    first = play.post(act)
    sent = play.core.received(act.guid)
    require(sent <= 1, f"the relay itself sent it {times(sent)}, though it may have been executed")
    expect.unconfirmed(first, "the first answer")
    still_in_doubt(play, act)
    return act


def still_in_doubt(play: Play, act: Act, what: str = "the resend") -> None:
    """A resend does not reach the core, and is told the same, or by then the core's answer."""
    answer = play.post(act)
    is_settled = reading.code_of(answer) == "0000" and play.core.executed(act.guid) == 1
    if not is_settled:
        expect.unconfirmed(answer, what)
    require(play.core.received(act.guid) == 1, f"{what} reached the core")


def ends_with_the_answer(play: Play, act: Act) -> Steps:
    """In the end a resend gets the core's own answer, of the one execution."""
    answer = yield from play.truth(act)
    require(
        reading.code_of(answer) == "0000",
        f"within {play.limits.settle_s:.0f} s the act was not settled: the resend got"
        f" {shown(answer)}",
    )
    executions = play.core.executions(act.guid)
    is_own = any(each.reference.encode() in answer.body for each in executions)
    require(is_own, "the answer in the end is not the core's own")


def _doubt(play: Play, rule: dict[str, Any]) -> Steps:
    act = doubted(play, rule)
    play.heal()
    yield from ends_with_the_answer(play, act)


def core_reads_late(play: Play) -> Steps:
    """What the core reads when the relay has given up is executed once, and told in the end."""
    act = play.act()
    play.faults({"kind": "accept_nothing"})
    expect.unconfirmed(play.post(act), "the first answer")
    expect.unconfirmed(play.post(act))
    play.heal()
    yield from ends_with_the_answer(play, act)


def late_execution(play: Play) -> Steps:
    """The core closes, is not seen to be at it, and executes later: it is not sent again."""
    fault = {"kind": "execute_late", "seconds": play.limits.late_s, "attempt": 1}
    act = doubted(play, {**fault, "close_first": True, "seen": False})
    yield from ends_with_the_answer(play, act)


def never_executed(play: Play) -> Steps:
    """What the core took and never executed is executed once in the end, and never twice."""
    act = doubted(play, {"kind": "hang_before", "attempt": 1})
    yield from ends_with_the_answer(play, act)


def reset_on_connect(play: Play) -> Steps:
    """A connection that is reset at once is never told as an end, and it is executed once."""
    act = play.act()
    play.faults({"kind": "reset_on_connect"})
    first = play.post(act)
    play.heal()
    told = reading.read(first)
    is_careful = not told.is_definite and told.executed != "yes"
    require(is_careful, f"the first answer was {shown(first)}, though nobody knows")
    yield from ends_with_the_answer(play, act)


def resend_after_verdict(play: Play) -> Steps:
    """Once it is known that the core did not execute it, the channel's own resend is sent."""
    act = doubted(play, {"kind": "hang_before", "attempt": 1}, lines=(INTERACTIVE,))
    yield play.until(lambda: play.knows(act, "E902"))
    expect.code(play.post(act), "0000", what="the resend after the verdict")


def many_resends(play: Play) -> Steps:
    """Ten resends in doubt, five at once among them, do not reach the core."""
    act = doubted(play, {"kind": "execute_then_close"})
    half = _RESENDS // 2
    answers = [play.post(act) for _ in range(half)]
    answers += play.at_once([lambda: play.post(act)] * half)
    for answer in answers:
        if reading.code_of(answer) != "0000":  # By then it may be settled.
            expect.unconfirmed(answer, "a resend")
    require(play.core.received(act.guid) == 1, "a resend reached the core")
    play.heal()
    yield from ends_with_the_answer(play, act)


def words_in_doubt(play: Play) -> Steps:
    """E901 says not confirmed, when to ask and not to start anew; no word of it says failed."""
    act = play.act()
    play.faults({"kind": "execute_then_close", "guid": act.guid})
    answer = play.post(act)
    told = expect.code(answer, "E901", what="the first answer")
    document = reading.fields_of(answer)
    said = f"{document.get('title', '')} {document.get('detail', '')}"
    false = _FALSE_WORDS.search(said)
    require(false is None, f"E901 says {false[0] if false else ''!r}")
    require(told.ask_after is not None, "E901 does not say from when to ask")
    require(document.get("guid") == act.guid, "E901 does not name the GUID")
    play.heal()
    yield from ends_with_the_answer(play, act)


INQUIRIES: Final = (
    ("inquiry-403", "in doubt; the inquiry says 403", {"kind": "inquiry_403"}),
    ("inquiry-500", "in doubt; the inquiry says 500, E500", {"kind": "inquiry_500"}),
    ("inquiry-404", "in doubt; the inquiry meets a proxy's 404", {"kind": "inquiry_proxy_404"}),
    ("inquiry-garbage", "in doubt; the inquiry says no HTTP", {"kind": "inquiry_garbage"}),
    ("inquiry-other", "in doubt; the inquiry is of another GUID", {"kind": "inquiry_other_guid"}),
)


def _inquiry(play: Play, rule: dict[str, Any]) -> Steps:
    act = doubted(play, {"kind": "execute_then_close"}, rule)
    yield play.pause(play.limits.quiet_s)
    expect.unconfirmed(play.post(act), "the resend after a while")
    require(play.core.received(act.guid) == 1, "the resend after a while reached the core")
    play.heal()
    yield from ends_with_the_answer(play, act)


SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        make(slug, name, partial(_doubt, rule=rule), _EXPECTS, case=case)
        for slug, name, case, rule in DOUBTS
    ),
    make("core-reads-late", "the core reads it when the relay gave up", core_reads_late),
    make("late-execution", "the core executes it later", late_execution, case=29),
    make("never-executed", "the core took it and did nothing", never_executed),
    make("reset-on-connect", "the core resets the connection", reset_on_connect),
    make("resend-after-verdict", "a resend after the verdict", resend_after_verdict, case=10),
    make("many-resends", "ten resends in doubt", many_resends),
    make("words-in-doubt", "what E901 says", words_in_doubt, case=11),
    *(
        make(
            slug,
            name,
            partial(_inquiry, rule=rule),
            "A word that is not the core's own about this GUID proves nothing: it stays in doubt.",
            case=9,
        )
        for slug, name, rule in INQUIRIES
    ),
)

"""The same request again, and another one under its GUID: at every moment, one execution."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from typing import Final

from verify import expect, reading
from verify.play import INTERACTIVE, JSON, Act, Play, again, require, transfer
from verify.scenario import Need, Scenario, Steps, make
from verify.wire import Answer

PARALLEL: Final = 50
_FILE: Final = 10
_SLOW_S: Final = 1.5


def done(play: Play, act: Act) -> Answer:
    """Send the act, which the core executes at once; return the answer."""
    answer = play.post(act)
    expect.code(answer, "0000", what="the first answer")
    return answer


def first_answer(play: Play) -> None:
    """The core gets what the channel sent, once, and its own answer comes back."""
    act = play.act(("X-Operation", "transfer"), amount=7)
    answer = done(play, act)
    executions = play.core.executions(act.guid)
    require(executions, "the answer says 0000, and the core executed nothing")
    sent = (executions[0].amount, executions[0].operation)
    require(sent == (7, "transfer"), f"the core got amount and operation {sent}")
    reference = executions[0].reference.encode()
    require(reference in answer.body, "the answer is not the core's own")


def resend_after_done(play: Play) -> None:
    """A resend gets the first answer again: status, content type and every byte."""
    act = play.act()
    first = done(play, act)
    expect.same(first, play.post(act))
    expect.same(first, play.post(act), "the second resend")


def replay_is_marked(play: Play) -> None:
    """A replay says that it is one, and of when and of which attempt; a first answer does not."""
    act = play.act()
    first, resend = done(play, act), play.post(act)
    require("idempotent-replayed" not in first.headers, "the first answer calls itself a replay")
    marked = resend.headers.get("idempotent-replayed")
    require(marked == "true", "the resend does not bear Idempotent-Replayed: true")
    for name in ("accepted-at", "attempt"):
        require(name in first.headers, f"the first answer bears no {name}")
        require(resend.headers.get(name) == first.headers[name], f"the resend has another {name}")


def parallel(play: Play) -> None:
    """Of 50 requests with one GUID at once one is executed; the rest get its bytes, or E903."""
    act = play.act()
    answers = play.at_once([lambda: play.post(act)] * PARALLEL)
    first = [each for each in answers if reading.code_of(each) == "0000"]
    require(first, f"nobody got the answer: {_counted(answers)}")
    for each in answers:
        if reading.code_of(each) != "0000":
            expect.in_progress(each, f"one of {_counted(answers)}")
    for each in first:
        expect.same(first[0], each, "one of them")


def _counted(answers: list[Answer]) -> str:
    counts = Counter(map(reading.shown, answers))
    return ", ".join(f"{count} x {word}" for word, count in sorted(counts.items()))


def during_progress(play: Play) -> None:
    """A resend while the core is at it is told E903 with Retry-After, and the first ends well."""
    act = play.act()
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S})
    call = play.begin_post(act)
    resend = play.post(act)
    first = call.result()
    expect.in_progress(resend)
    waits = reading.retry_after_s(resend)
    require(waits is not None and waits >= 1, "the resend's answer bears no Retry-After")
    expect.code(first, "0000", what="the first answer")
    expect.same(first, play.post(act), "the resend after it")


def file_again(play: Play) -> None:
    """A file of ten requests that is sent again is replayed, and nothing is executed."""
    acts = [play.act(amount=number + 1) for number in range(_FILE)]
    firsts = [done(play, act) for act in acts]
    for first, act in zip(reversed(firsts), reversed(acts), strict=True):
        expect.same(first, play.post(act))


def other_body_done(play: Play) -> None:
    """Another amount under the GUID of a finished request is refused, and changes nothing."""
    act = play.act()
    first = done(play, act)
    expect.other_request(play.post(act, body=transfer(2)))
    expect.same(first, play.post(act))


def other_body_in_progress(play: Play) -> None:
    """Another amount under the GUID of a request in progress is refused, and changes nothing."""
    act = play.act()
    play.faults({"kind": "slow", "guid": act.guid, "seconds": _SLOW_S})
    call = play.begin_post(act)
    other = play.post(act, body=transfer(2))
    first = call.result()
    expect.other_request(other)
    expect.code(first, "0000", what="the first answer")
    expect.same(first, play.post(act))


def other_body_in_doubt(play: Play) -> Steps:
    """Another amount under the GUID of a request in doubt is refused, and changes nothing."""
    act = play.act()
    play.faults({"kind": "execute_then_close", "guid": act.guid})
    expect.unconfirmed(play.post(act), "the first answer")
    expect.other_request(play.post(act, body=transfer(2)))
    play.heal()
    expect.code((yield from play.truth(act)), "0000", what="the resend in the end")


def other_body_unsent(play: Play) -> None:
    """Another amount under the GUID of a request that was not sent is refused; its own is sent."""
    act = play.act(INTERACTIVE)
    play.faults({"kind": "refuse"})
    expect.unsent(play.post(act), "the first answer")
    expect.other_request(play.post(act, body=transfer(2)))
    play.heal()
    expect.code(play.post(act), "0000", what="the resend")


def other_operation(play: Play) -> None:
    """The same body for another operation is another request: refused."""
    act = play.act(("X-Operation", "transfer"))
    first = done(play, act)
    expect.other_request(play.post(again(act, lines=(("X-Operation", "refund"),))))
    expect.same(first, play.post(act))


def other_channel(play: Play) -> None:
    """Another channel's request under the GUID is refused, and learns nothing of the first."""
    act = play.act()
    first = done(play, act)
    other = play.post(act, by=play.second)
    expect.other_request(other)
    reference = play.core.executions(act.guid)[0].reference.encode()
    require(reference not in other.body, "the other channel was told of the first one's request")
    expect.same(first, play.post(act))


def guid_in_body(play: Play) -> None:
    """The GUID may stand in the body instead of the header, and is the same GUID there."""
    act = play.act()
    act.body = json.dumps({"guid": act.guid, **json.loads(act.body)}).encode()
    first = play.submit(act.body, [], JSON)
    expect.code(first, "0000", what="the request without the header")
    expect.same(first, play.post(act), "the resend with the header")


def quoted_key(play: Play) -> None:
    """The GUID in double quotes is the same GUID."""
    act = play.act()
    first = done(play, act)
    expect.same(first, play.submit(act.body, [("Idempotency-Key", f'"{act.guid}"')], JSON))


def uuid_case(play: Play) -> None:
    """A UUID in capitals is the same GUID."""
    lower = str(uuid.uuid4())
    act = play.act(guid=lower, spellings=[lower.upper()])
    first = done(play, act)
    expect.same(first, play.post(again(act, guid=lower.upper())))


SCENARIOS: Final[tuple[Scenario, ...]] = (
    make("first-answer", "a request", first_answer),
    make("resend-after-done", "a resend after the answer", resend_after_done),
    make("replay-is-marked", "what a replay says of itself", replay_is_marked),
    make("parallel-50", "50 requests of one GUID at once", parallel, case=19),
    make("during-progress", "a resend while the core is at it", during_progress, case=8),
    make("file-again", "the same file again", file_again, case=31),
    make("other-body-done", "another amount, the first is done", other_body_done, case=3),
    make(
        "other-body-in-progress",
        "another amount, the first in progress",
        other_body_in_progress,
        case=3,
    ),
    make("other-body-in-doubt", "another amount, the first in doubt", other_body_in_doubt, case=3),
    make("other-body-unsent", "another amount, the first not sent", other_body_unsent, case=3),
    make("other-operation", "another operation, the same body", other_operation),
    make("other-channel", "another channel's request", other_channel, need=Need.SECOND),
    make("guid-in-body", "the GUID in the body", guid_in_body),
    make("quoted-key", "the GUID in quotes", quoted_key),
    make("uuid-case", "a UUID in capitals", uuid_case),
)

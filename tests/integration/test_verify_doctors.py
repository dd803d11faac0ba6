"""Every scenario can fail: a relay with just that fault fails it, and is told why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from relayhub.replies import Reply
from tests.integration.verify_doctors import (
    bare,
    blind_to,
    case_counts,
    changed,
    fields,
    first_body_counts,
    lenient,
    no_guid_in_body,
    on_turn,
    only_posts,
    sends_again,
    sends_later,
    told,
    unkept,
    unkept_and_sent,
    with_header,
    without_header,
)
from tests.integration.verify_kit import BLACK_BOX, named, play
from tests.integration.verify_server import Call, Doctor, HubServer, healthy, hub_server
from verify.scenarios.refusals import BAD

STUCK: Final = {"executed": "no", "resend": "no", "new_guid": "no"}
NOT_EXECUTED: Final = {"executed": "no", "resend": "no", "new_guid": "yes"}


def is_replay(_call: Call, reply: Reply) -> bool:
    """Tell whether the answer is a stored one."""
    return reply.headers.get("Idempotent-Replayed") == "true"


def is_repeated(call: Call, reply: Reply) -> bool:
    """Tell whether the answer is a stored one, or says that the first request is in progress."""
    return reply.code == "E903" or is_replay(call, reply)


def is_open(call: Call, reply: Reply) -> bool:
    """Tell whether a request was told E901."""
    return call.is_post and reply.code == "E901"


def _always(_call: Call, _reply: Reply) -> bool:
    return True


def _of(code: str) -> Any:
    return lambda _, reply: reply.code == code


def on_cancel(**changes: Any) -> Doctor:
    """Return a relay whose answer to a cancel says something else."""
    return changed(lambda call, _: call.is_cancel, lambda reply: fields(reply, **changes))


def on_status(code: str | None, /, **changes: Any) -> Doctor:
    """Return a relay whose status says something else for this code."""
    is_it = lambda call, reply: call.is_status and reply.code == code  # noqa: E731
    return changed(is_it, lambda reply: fields(reply, **changes))


def on_replay(**changes: Any) -> Doctor:
    """Return a relay whose replays differ from the first answer."""
    return changed(is_replay, lambda reply: replace(reply, **changes))


def is_not_done(call: Call, reply: Reply) -> bool:
    """Tell whether a request was told that it is in doubt, or not sent."""
    return call.is_post and reply.code in {"E901", "E902"}


def done(reply: Reply) -> Reply:
    """Return an answer that says executed."""
    return fields(reply, code="0000", executed="yes")


def cut(reply: Reply) -> Reply:
    """Return the reply with less than all its bytes."""
    return replace(reply, body=reply.body[:400_000])


@dataclass(frozen=True)
class Row:
    """A relay with one fault, the scenario that finds it, and what that says."""

    scenario: str
    doctor: Doctor
    says: str
    has_upkeep: bool = True
    settle_s: float = 2.5


AGAIN: Final = sends_again(is_open)
AGAIN_ON_TURN_2: Final = on_turn(2, sends_again(_always))
AGAIN_AT_ONCE: Final = sends_again(lambda call, _: call.is_post)
NOBODY: Final = blind_to("x-channel")
NO_OPERATION: Final = blind_to("x-operation")
NO_VALIDITY: Final = blind_to("valid-until")

ROWS: Final = (
    Row("core-silent", AGAIN, "the relay itself sent it twice"),
    Row("core-closes", told("E901", code="E908", **NOT_EXECUTED), "the first answer was E908"),
    Row("core-resets", told("E901", code="0000", executed="yes"), "the first answer was 0000"),
    Row("gateway-502", told("E901", new_guid="yes"), "says executed, resend, new_guid"),
    Row("gateway-503", told("E901", resend="no"), "says executed, resend, new_guid"),
    Row("gateway-504", told("E901", executed="no"), "says executed, resend, new_guid"),
    Row("redirect", AGAIN_ON_TURN_2, "the resend reached the core"),
    Row("truncated", AGAIN_ON_TURN_2, "the resend reached the core"),
    Row("codes-differ", healthy, "the act was not settled", has_upkeep=False),
    Row(
        "unknown-code",
        changed(_of("0000"), lambda reply: replace(reply, body=b'{"code":"0000"}')),
        "is not the core's own",
    ),
    Row("garbage", told("E901", code="E902"), "the first answer was E902"),
    Row("gzip", AGAIN, "the relay itself sent it twice"),
    Row("no-length", sends_again(is_replay), "the core executed it twice instead of once"),
    Row("drip", told("E901", code="B201"), "the first answer was B201"),
    Row("core-reads-late", told("E901", code="0000"), "the first answer was 0000"),
    Row("late-execution", AGAIN_ON_TURN_2, "the resend reached the core"),
    Row("never-executed", told("E901", executed="no"), "says executed, resend, new_guid"),
    Row("reset-on-connect", changed(is_not_done, done), "the first answer was 0000"),
    Row("resend-after-verdict", told("E901", code="E902"), "the first answer was E902"),
    Row("many-resends", on_turn(5, sends_again(_always)), "a resend reached the core"),
    Row("words-in-doubt", told("E901", detail="It failed."), "E901 says 'failed'"),
    Row("words-in-doubt", told("E901", title="Declined"), "E901 says 'Declined'"),
    Row("words-in-doubt", told("E901", ask_after=None), "does not say from when to ask"),
    Row("words-in-doubt", told("E901", guid=None), "does not name the GUID"),
    Row("inquiry-403", on_turn(3, told("E901", code="E902")), "the resend after a while was E902"),
    Row("inquiry-500", on_turn(3, sends_again(_always)), "after a while reached the core"),
    Row("inquiry-404", on_turn(3, told("E901", code="0000")), "after a while was 0000"),
    Row("inquiry-garbage", healthy, "the act was not settled", has_upkeep=False),
    Row("inquiry-other", on_turn(3, told("E901", executed="no")), "says executed, resend"),
    Row("refused-then-accepted", told("E902", code="0000"), "the first answer was 0000"),
    Row("words-unsent", told("E902", new_guid="yes"), "new_guid: yes instead of after_cancel"),
    Row("words-unsent", without_header("Retry-After"), "E902 bears no Retry-After"),
    Row("deferred-sent-later", healthy, "did not send it by itself", has_upkeep=False),
    Row("deferred-and-resent", AGAIN_ON_TURN_2, "instead of once"),
    # By itself and by the resend, or by itself alone: that hangs on which comes first.
    Row("interactive-unsent", sends_later, ""),
    Row("validity-over", NO_VALIDITY, "the resend past Valid-Until was 0000"),
    Row("validity-over-in-doubt", told("0000", code="E908"), "the resend in the end was E908"),
    Row("validity-past", NO_VALIDITY, "the request was told 0000"),
    Row("cancel-before", unkept, "the request after its cancel was 0000"),
    Row("cancel-unsent", unkept, "the core executed it once instead of never"),
    Row("cancel-unsent", unkept_and_sent, "the relay sent what was cancelled"),
    Row("cancel-after-done", on_cancel(cancelled=True), "cancelled: true instead of false"),
    Row("cancel-after-refusal", on_cancel(executed="yes"), "executed: yes instead of no"),
    Row("cancel-in-progress", on_cancel(cancelled=True), "cancelled: true instead of false"),
    Row("cancel-in-doubt", on_cancel(executed="no"), "says executed, resend, new_guid"),
    Row("cancel-in-doubt-unexecuted", on_cancel(new_guid="yes"), "says executed, resend"),
    Row("cancel-other-channel", NOBODY, "another channel was told"),
    Row("cancel-before", only_posts, "there is no cancel"),
    Row("async-accepted", without_header("Location"), "the 202 says to ask at ''"),
    Row("async-accepted", blind_to("prefer"), "the preference is not applied"),
    Row("async-repeated", AGAIN_ON_TURN_2, "instead of once"),
    Row(
        "async-interactive",
        with_header("Preference-Applied", "respond-async"),
        "the answer says Preference-Applied",
    ),
    Row("async-cancelled", unkept, "the resend after the cancel was 0000"),
    Row("obedient-silent", told("E901", **NOT_EXECUTED), "ended with executed: no"),
    Row("obedient-unexecuted", told("E901", resend="no"), "ended with executed: unknown"),
    Row("obedient-refused", AGAIN, "instead of once"),
    Row("obedient-redone", unkept_and_sent, "the core executed it once instead of never"),
    Row("obedient-no-funds", told("B201", **STUCK), "a new GUID is told as no"),
    Row("first-answer", NO_OPERATION, "the core got amount and operation (7, '')"),
    Row("resend-after-done", on_replay(body=b'{"code":"0000"}'), "other bytes than the first"),
    Row("replay-is-marked", without_header("Idempotent-Replayed"), "does not bear Idempotent"),
    Row("replay-is-marked", without_header("Attempt", is_replay), "has another attempt"),
    Row("parallel-50", changed(is_repeated, lambda _: bare(500)), "instead of E903"),
    Row("during-progress", without_header("Retry-After"), "bears no Retry-After"),
    Row("during-progress", told("E903", code="0000"), "the resend was 0000"),
    Row("file-again", sends_again(is_replay), "the core executed it twice instead of once"),
    *(
        Row(f"other-body-{moment}", first_body_counts, "the other request was")
        for moment in ("done", "in-progress", "in-doubt", "unsent")
    ),
    Row("other-operation", NO_OPERATION, "the other request was 0000 instead of E904"),
    Row("other-channel", NOBODY, "the other request was 0000 instead of E904"),
    Row("guid-in-body", no_guid_in_body, "an answer without a code (400) instead of 0000"),
    Row("quoted-key", no_guid_in_body, "status 400"),
    Row("uuid-case", case_counts, "other bytes than the first answer"),
    Row("replay-shift-jis", on_replay(content_type="text/plain"), "the content type 'text/plain'"),
    Row("replay-500kb", changed(is_replay, cut), "other bytes than the first answer"),
    Row("replay-500kb", changed(_always, cut), "other bytes than the core's"),
    Row("replay-chunked", on_replay(status=201), "status 201"),
    Row("replay-refusal", sends_again(is_replay), "the resend of a refused request reached"),
    Row("replay-e500", changed(_of("E500"), lambda _: bare(500)), "without a code (500)"),
    Row("status-absent", only_posts, "there is no status"),
    Row("status-absent", on_status(None, code="E908"), "the status bears E908"),
    Row("status-done", on_status("0000", code="E901"), "the status was E901 instead of 0000"),
    Row("status-in-progress", on_status("E903", executed="yes"), "executed: yes instead of"),
    Row("status-in-doubt", sends_again(lambda call, _: call.is_status), "reached the core"),
    Row("status-other-channel", NOBODY, "another channel can tell"),
    Row("bad-guids", lenient, "was told 0000 instead of E905"),
    *(Row(bad.slug, lenient, "the request was told 0000 instead of E905") for bad in BAD),
    Row("old-guid", told("E907", code="E901"), "the request was E901 instead of E907"),
    Row("claim-reply-lost", told("0000", code="E903"), "the first answer was E903"),
    Row("claim-replies-lost", told("E901", code="E902"), "the first answer was E902"),
    Row("claim-refused", told("E906", code="E902"), "though nothing was claimed"),
    Row("claim-refused", sends_again(_of("E906")), "the core was called without a claim"),
    Row("outcome-reply-lost", on_replay(body=b"{}"), "other bytes than the first answer"),
    Row("outcome-refused", told("0000", code="E901"), "the first answer was E901"),
    *(
        Row(f"killed-{moment}", healthy, "a relay that was killed cannot have answered")
        for moment in ("with-bytes", "no-resend", "before-execution")
    ),
    Row("stalled", AGAIN_AT_ONCE, "the stalled relay sent it again"),
    Row("core-restarted", told("E901", code="0000"), "the first answer was 0000"),
    Row("core-lost-it", told("E901", code="B201"), "the first answer was B201"),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """Run one hub for the module."""
    with hub_server(tmp_path_factory.mktemp("hub")) as running:
        yield running


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{index}-{row.scenario}" for index, row in enumerate(ROWS)]
)
def test_a_relay_with_the_fault_fails_the_scenario(served: HubServer, row: Row) -> None:
    """And the reason names the fault."""
    served.doctor, served.has_upkeep = row.doctor, row.has_upkeep
    served.notes.clear()
    [outcome] = play(served, named(row.scenario), settle_s=row.settle_s)
    assert not outcome.passed
    assert row.says in (outcome.reason or "")


def test_every_scenario_without_process_control_has_such_a_relay() -> None:
    """A scenario that nothing fails would prove nothing."""
    assert {each.id for each in BLACK_BOX} <= {row.scenario for row in ROWS}

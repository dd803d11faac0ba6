"""GUIDs that are unique per channel: two channels' equal ones are two acts, and none is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from functions.resolver import handler as resolver_function
from relayhub.core import Answered, Doubt, NotSent
from relayhub.flows.purge import Report
from relayhub.guids import GuidScope
from relayhub.hint_event import read_hint
from relayhub.message import Answer
from relayhub.replies import Reply
from relayhub.states import State
from tests.integration.test_age_guard import uuid7
from tests.integration.test_maintenance_handlers import context
from tests.maintenance import DAY_MS, cancel, processed, purger, reprocessor, resolve_at
from tests.message_events import (
    announced,
    deliver,
    kafka_event,
    kafka_record,
    put_aside,
    sqs_event,
    sqs_message,
)
from tests.plant import Works
from tests.world import START_MS, document, never_arrives, refused

ATM: Final = "G-1:atm"  # The key of the channel atm's G-1.
APP: Final = "G-1:app"
PREFER: Final = {"prefer": "respond-async"}


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub whose channels count by themselves."""
    del aws
    return Works(guid_scope=GuidScope.CHANNEL)


def sent(works: Works) -> list[str]:
    """Return the GUIDs that the core was called with."""
    return [each.guid for each in works.core.sent]


def test_two_channels_equal_guids_are_two_acts(works: Works) -> None:
    """Each is executed once under a GUID of its own, each has its own replay."""
    first = Answer(200, "text/plain", b"to atm", "0000")
    second = Answer(200, "text/plain", b"to app", "0000")
    works.core.outcomes[:] = [Answered(first), Answered(second)]
    for _ in range(2):
        assert works.post(channel="atm").body == b"to atm"
        assert works.post(channel="app", body=b'{"amount":7}').body == b"to app"
    assert sent(works) == [ATM, APP]
    assert (works.held(ATM).channel, works.held(APP).channel) == ("atm", "app")


def test_a_channels_name_and_a_guid_never_run_into_each_other(works: Works) -> None:
    """AB with C1 and A with BC1 are two acts."""
    assert works.post("C1", channel="AB").code == "0000"
    assert works.post("BC1", channel="A").code == "0000"
    assert sent(works) == ["C1:AB", "BC1:A"]


def test_a_guid_that_is_spelt_like_anothers_key_is_not_that_key(works: Works) -> None:
    """A channel cannot name another's row."""
    works.post("G-1", channel="atm")
    for guid in (ATM, "G-1:atm:app"):
        assert works.get(guid, channel="app").status == 404
        assert works.get(guid, channel="atm").status == 404
    assert works.post(ATM, channel="app").code == "0000"
    assert sent(works) == [ATM, f"{ATM}:app"]


def doubt(works: Works) -> Reply:
    """Send what the core leaves without an answer."""
    works.core.outcomes.append(Doubt("no_answer", aborted=True))
    return works.post()


def unsent(works: Works) -> Reply:
    """Send what the core never gets."""
    works.core.outcomes.append(NotSent("connect_refused"))
    return works.post()


def lost_claim(works: Works) -> Reply:
    """Send when nobody knows whether the claim stands."""
    works.dynamo.faults["put_item"] += [never_arrives] * 2
    return works.post()


def lost_cancel(works: Works) -> Reply:
    """Cancel when nobody knows whether it was recorded."""
    works.dynamo.faults["put_item"] += [never_arrives] * 2
    return cancel(works)


def refused_claim(works: Works) -> Reply:
    """Send when the ledger refuses."""
    works.dynamo.faults["put_item"].append(refused("AccessDeniedException"))
    return works.post()


def break_down(works: Works) -> Reply:
    """Send when something goes wrong inside."""

    def fail() -> None:
        raise RuntimeError

    works.core.during.append(fail)
    return works.post()


def other_body(works: Works) -> Reply:
    """Use the GUID for another request."""
    works.post()
    return works.post(body=b'{"amount":7}')


def in_progress(works: Works) -> Reply:
    """Resend while the row says SENT."""
    seen: list[Reply] = []
    works.core.during.append(lambda: seen.append(works.post()))
    works.post()
    return seen[0]


def unreadable(works: Works) -> Reply:
    """Replay an answer whose object is gone."""
    works.post()
    works.edit(ATM, response=None, response_object={"key": "x", "bytes": 1, "sha256": "0"})
    return works.post()


def over(works: Works) -> Reply:
    """Send what is over by its own word."""
    return works.post(headers={"valid-until": "2020-01-01T00:00:00Z"})


TOLD: Final[dict[str, Callable[[Works], Reply]]] = {
    "E901": doubt,
    "E902": unsent,
    "E903": in_progress,
    "E904": other_body,
    "E905": over,
    "E906": refused_claim,
    "no_answer": lost_claim,
    "fault": break_down,
    "unreadable": unreadable,
    "accepted": lambda works: works.post(headers=PREFER),
    "status": lambda works: (works.post(), works.get())[1],
    "unknown": lambda works: works.get(),
    "cancel": cancel,
    "cancel_done": lambda works: (works.post(), cancel(works))[1],
    "cancel_lost": lost_cancel,
}


@pytest.mark.parametrize("name", TOLD)
def test_a_channel_is_told_the_guid_that_it_knows(works: Works, name: str) -> None:
    """In every document of the hub's own and in Location; the key stands nowhere."""
    reply = TOLD[name](works)
    assert document(reply)["guid"] == "G-1"
    everything = reply.body + json.dumps(dict(reply.headers)).encode()
    assert ATM.encode() not in everything
    if name == "accepted":
        assert reply.headers["Location"] == "/transactions/G-1"


def test_a_guid_past_the_memory_is_told_by_its_own_time(works: Works) -> None:
    """The channel's name beside it does not hide when it was born."""
    old = uuid7(START_MS - 29 * DAY_MS)
    for reply in (works.post(old), works.get(old), cancel(works, old)):
        assert (reply.code, document(reply)["guid"]) == ("E907", old)
    assert works.post(uuid7(START_MS)).code == "0000"


def test_a_uuid_is_one_in_either_case_here_too(works: Works) -> None:
    """It is folded before the channel's name is put to it."""
    guid = "5F0C9A3E-1B2D-4C6F-8A7B-0000000000AB"
    works.post(guid)
    assert works.post(guid.lower()).headers["Idempotent-Replayed"] == "true"
    assert document(works.get(guid))["guid"] == guid.lower()
    assert sent(works) == [f"{guid.lower()}:atm"]


@pytest.mark.parametrize("call", [Works.post, Works.get, cancel])
def test_a_guid_too_long_for_its_channel_is_malformed(
    works: Works, call: Callable[[Works, str], Reply]
) -> None:
    """E905 with the number that would do; nothing is recorded."""
    reply = call(works, "G" * 125)
    assert (reply.status, reply.code) == (400, "E905")
    assert "124 characters" in document(reply)["detail"]
    assert (works.dynamo.calls, works.core.sent) == ([], [])
    assert call(works, "G" * 124).code != "E905"


def test_by_http_first_and_by_a_queue_then_is_one_act_of_one_channel(works: Works) -> None:
    """Where CHANNEL_NAMES makes one of the two; else they are two acts."""
    works.deploy(channel_names=(("sqs:relayhub-intake", "atm"),))
    works.post()
    assert deliver(works, sqs_event(sqs_message())) == []
    assert sent(works) == [ATM]
    assert deliver(works, kafka_event([kafka_record()])) == []
    assert sent(works) == [ATM, "G-1:kafka_3Areceipts"]


def test_a_message_whose_guid_is_too_long_is_put_aside(works: Works) -> None:
    """It can never be executed, and says why."""
    assert deliver(works, sqs_event(sqs_message("G" * 125))) == []
    (reject,) = put_aside(works)
    assert (reject["code"], "longer than the" in reject["reason"]) == ("E905", True)


def test_an_accepted_request_is_sent_by_its_key(works: Works) -> None:
    """The hub's own message names the row."""
    works.post(headers=PREFER)
    works.post(headers=PREFER, channel="app")
    for message in announced(works):
        assert deliver(works, sqs_event(message)) == []
    assert sorted(sent(works)) == [APP, ATM]


def test_a_hint_names_the_key_and_the_reprocessor_sends_the_same(works: Works) -> None:
    """The hint's own reader takes it, and the core sees one GUID on every attempt."""
    unsent(works)
    (hint,) = works.hints()
    assert read_hint(json.dumps(hint)).guid == ATM
    works.core.findings[:] = [processed()]
    works.clock.advance(60)
    reprocessor(works, ATM, 1)
    assert works.held(ATM).state is State.DONE
    assert set(sent(works) + works.core.asked) == {ATM}


def test_the_resolver_asks_by_the_key_and_the_purger_deletes_by_it(works: Works) -> None:
    """What became of one channel's act says nothing of another's."""
    doubt(works)
    works.post(channel="app")
    resolve_at(works, START_MS + 200_000, processed(), guid=ATM)
    assert (works.core.asked, works.held(ATM).state) == ([ATM], State.DONE)
    works.clock.ms = START_MS + 31 * DAY_MS
    report: Report = purger(works)
    assert (report.deleted, works.row(APP)) == (1, None)
    assert works.held(ATM).doubted


@pytest.mark.parametrize("call", [Works.get, cancel])
@pytest.mark.parametrize(
    "make", [Works.post, doubt, unsent, cancel], ids=lambda each: each.__name__
)
def test_another_channels_guid_is_not_to_be_told_from_an_absent_one(
    works: Works, make: Callable[[Works], Any], call: Callable[..., Reply]
) -> None:
    """The same status, headers and bytes but for the GUID, by the same requests; POST as well."""
    make(works)
    before = works.item(ATM)
    told = []
    for guid in ("G-1", "G-9"):
        asked = len(works.dynamo.calls)
        reply = call(works, guid, channel="app")
        body = reply.body.replace(guid.encode(), b"?")
        told.append((reply.status, dict(reply.headers), body, works.dynamo.calls[asked:]))
    assert told[0] == told[1]
    assert (works.post("G-2", channel="app").code, works.item(ATM)) == ("0000", before)


# --- A TABLE IN USE ------------------------------------------------------------------------------


OTHER_SCOPE: Final = {GuidScope.CHANNEL: GuidScope.GLOBAL, GuidScope.GLOBAL: GuidScope.CHANNEL}
USES: Final[dict[str, Callable[[Works], str | None]]] = {
    "post": lambda works: works.post().code,
    "accepted": lambda works: works.post(headers=PREFER).code,
    "over": lambda works: over(works).code,
    "cancel": lambda works: cancel(works).code,
    "message": lambda works: "E906" if deliver(works, sqs_event(sqs_message())) else None,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("scope", GuidScope)
def test_a_table_of_another_scope_is_not_used(
    works: Works, scope: GuidScope, use: Callable[[Works], str | None]
) -> None:
    """A resend would be a new key there: nothing is recorded or sent until the setting is right."""
    works.deploy(guid_scope=scope)
    works.hub.controls.bind_scope(scope)
    works.post()
    sends = len(works.core.sent)
    works.deploy(guid_scope=OTHER_SCOPE[scope])
    assert use(works) == "E906"
    assert (len(works.core.sent), works.dynamo.calls) == (sends, [])
    assert works.noted("not_ready") + works.noted("message_given_back") > 0
    works.deploy(guid_scope=scope)
    assert works.post().headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("scope", GuidScope)
def test_the_first_word_of_a_tables_scope_stands(works: Works, scope: GuidScope) -> None:
    """Whoever comes later, under whatever setting, and after however long."""
    works.hub.controls.bind_scope(scope)
    works.deploy(guid_scope=OTHER_SCOPE[scope])
    works.hub.controls.bind_scope(OTHER_SCOPE[scope])
    assert works.hub.controls.read().guid_scope == scope
    works.clock.advance(60)
    assert works.hub.controls.switches().guid_scope == scope


def test_the_resolver_says_the_tables_scope(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a minute of the first deploy; a dry run writes nothing."""
    monkeypatch.setattr(resolver_function, "hub", works.hub)
    for event, bound in (({"dry_run": True}, None), ({}, "channel"), ({}, "channel")):
        works.clock.advance(60)
        resolver_function.handler(event, context())
        assert works.hub.controls.read().guid_scope == bound
    assert works.switchboard.calls.count("update_item") == 1


def test_a_scope_that_cannot_be_read_is_not_taken_for_the_right_one(works: Works) -> None:
    """Nothing is cancelled or accepted on a guess."""
    for use in (cancel, USES["accepted"]):
        works.switchboard.faults["get_item"] += [refused("AccessDeniedException")]
        told = use(works)
        assert getattr(told, "code", told) == "E906"
    assert works.row(ATM) is None

"""A cancel that meets others at the same row: who writes second sees what the first made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Answered, Doubt, NotSent
from relayhub.flows import attempt
from relayhub.flows.reprocess import Taken
from relayhub.ledger import Stored
from relayhub.states import State
from tests.maintenance import NOT_FOUND, cancel, events, processed, reprocessor, resolve_at
from tests.plant import Works
from tests.world import EXECUTED, REFUSED, START_MS, document, reply_lost

COUNTS_MS = START_MS + 65_001  # The first moment at which a NOT_FOUND of `doubt()` counts.


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core."""
    del aws
    return Works()


RESULTS: list[Any] = [
    pytest.param(Answered(EXECUTED), ("DONE", "0000"), id="executed"),
    pytest.param(Answered(REFUSED), ("DONE", "B201"), id="refused"),
    pytest.param(Doubt("no_answer", aborted=True), ("UNKNOWN", "E901"), id="doubt"),
    pytest.param(NotSent("connect_refused"), ("DONE", "E908"), id="not_sent"),
]


@pytest.mark.parametrize("when", ["during", "before_write"])
@pytest.mark.parametrize(("outcome", "end"), RESULTS)
def test_a_cancel_between_a_holders_call_and_its_write(
    works: Works, outcome: Any, end: tuple[str, str], when: str
) -> None:
    """Recorded while it calls; its result stands, and "not sent" becomes E908."""
    told: list[dict[str, Any]] = []

    def meanwhile() -> None:
        told.append(document(cancel(works)))

    works.core.outcomes.append(outcome)
    if when == "during":
        works.core.during.append(meanwhile)
    else:
        works.dynamo.before["update_item"].append(meanwhile)
    reply = works.post()
    row = works.held()
    assert (row.state, row.code, reply.code) == (*end, end[1])
    assert (told[0]["cancelled"], told[0]["executed"]) == (False, "unknown")
    assert row.cancel is not None
    assert events(works).count("cancel_recorded") == 1


@pytest.mark.parametrize(("outcome", "end"), RESULTS)
def test_a_holders_result_between_a_cancels_read_and_its_write(
    works: Works, outcome: Any, end: tuple[str, str]
) -> None:
    """The cancel loses its write, reads what the row says now, and goes on from there."""
    told: list[dict[str, Any]] = []

    def cancel_while_it_is_sent() -> None:
        works.dynamo.before["update_item"].append(finish)
        told.append(document(cancel(works)))

    def finish() -> None:
        by_claim[0]()

    # The holder's own write is made from inside the cancel's, by handing its result in there.
    by_claim: list[Callable[[], object]] = []
    works.kill()
    row = works.held()
    by_claim.append(lambda: _finish(works, row, outcome))
    cancel_while_it_is_sent()
    now = works.held()
    ended = ("DONE", "E908") if end[0] == "DONE" and end[1] == "E908" else end
    assert (now.state, now.code) == ended
    assert told[0]["cancelled"] is (ended[1] == "E908")
    if ended[0] == "UNKNOWN":
        assert now.cancel is not None
    assert len(works.core.sent) == 2


def _finish(works: Works, row: Any, outcome: Any) -> None:
    works.core.outcomes[:] = [outcome]
    attempt.run(works.hub, Stored(row), "relay")


@pytest.mark.parametrize("when", ["inquiry", "write"])
def test_a_cancel_between_the_resolvers_not_found_and_its_write(works: Works, when: str) -> None:
    """FAILED is not written over it: the row stays in doubt, and ends in E908 the next time."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    meanwhile = lambda: cancel(works)  # noqa: E731
    if when == "inquiry":
        works.core.during_ask.append(meanwhile)
    else:
        works.dynamo.before["update_item"].append(meanwhile)
    row = resolve_at(works, COUNTS_MS + 30_000, NOT_FOUND)
    assert (row.state, row.cancel is not None, works.hints()) == (State.UNKNOWN, True, [])
    row = resolve_at(works, COUNTS_MS + 60_000, NOT_FOUND)
    assert (row.state, row.code, works.hints()) == (State.DONE, "E908", [])
    assert len(works.core.sent) == 1


@pytest.mark.parametrize("finding", [NOT_FOUND, processed()], ids=["not_found", "processed"])
def test_a_resolver_between_a_cancels_read_and_its_write(works: Works, finding: Any) -> None:
    """The cancel ends the FAILED row, or tells that it was executed."""
    works.doubt()
    resolve_at(works, COUNTS_MS, NOT_FOUND)
    works.dynamo.before["update_item"].append(
        lambda: resolve_at(works, COUNTS_MS + 30_000, finding)
    )
    says = document(cancel(works))
    row = works.held()
    code = "E908" if finding is NOT_FOUND else "0000"
    assert (row.state, row.code, says["code"]) == (State.DONE, code, code)
    assert says["cancelled"] is (code == "E908")


@pytest.mark.parametrize("when", ["inquiry", "claim"])
def test_a_cancel_before_the_reprocessors_claim_stops_the_send(works: Works, when: str) -> None:
    """E908 was told, so nothing is sent after it."""
    works.fail()
    works.core.findings.append(NOT_FOUND)
    meanwhile = lambda: cancel(works)  # noqa: E731
    if when == "inquiry":
        works.core.during_ask.append(meanwhile)
    else:
        works.dynamo.before["update_item"].append(meanwhile)
    assert reprocessor(works) is Taken.DROPPED
    assert (works.held().code, len(works.core.sent)) == ("E908", 1)


def test_a_reprocessors_claim_between_a_cancels_read_and_its_write(works: Works) -> None:
    """The cancel finds it sent: recorded, never told as cancelled."""
    works.fail()
    works.core.findings.append(NOT_FOUND)
    works.core.outcomes.append(Doubt("no_answer", aborted=True))
    works.dynamo.before["update_item"].append(lambda: reprocessor(works))
    says = document(cancel(works))
    assert (says["cancelled"], says["code"], works.held().state) == (False, "E901", "UNKNOWN")
    assert works.held().cancel is not None


def test_a_request_between_a_cancels_tombstone_and_its_reply(works: Works) -> None:
    """The put of one of the two is first; the other sees its row."""
    works.dynamo.before["put_item"].append(lambda: works.post())  # noqa: PLW0108
    says = document(cancel(works))
    assert (says["cancelled"], says["executed"], len(works.core.sent)) == (False, "yes", 1)
    works.dynamo.before["put_item"].append(lambda: cancel(works, "G-2"))
    assert works.post("G-2").code == "E908"
    assert len(works.core.sent) == 1


def test_two_channels_cancels_of_one_millisecond_are_told_apart(works: Works) -> None:
    """Their tombstones differ in the channel alone: the second one's is another's GUID."""
    assert cancel(works, channel="atm").code == "E908"
    works.dynamo.faults["put_item"].append(reply_lost)
    assert cancel(works, channel="app").code == "E904"
    assert works.held().channel == "atm"


def test_two_cancels_at_once_tell_the_same(works: Works) -> None:
    """One writes, the other finds it written."""
    works.fail()
    told: list[dict[str, Any]] = []
    works.dynamo.before["update_item"].append(lambda: told.append(document(cancel(works))))
    told.append(document(cancel(works)))
    assert told[0] == told[1]
    assert events(works).count("cancelled") == 1

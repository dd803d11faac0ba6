"""What a channel is told at the edges: never "not executed" of what may have been executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relayhub.core import Answered
from relayhub.message import Answer
from relayhub.replies import Reply
from relayhub.states import Event, Hold, State
from tests.emulated import Fault
from tests.integration.edges_kit import held_meanwhile, not_executed, passes
from tests.maintenance import PROCESSING, cancel, processed, reprocessor, sweep
from tests.plant import Works
from tests.world import EXECUTED, REFUSED, World, document, never_arrives, refused

BY = pytest.mark.parametrize("who", ["relay", "reprocessor"])


def large(code: str = "0000") -> Answer:
    """Return an answer that a row of 4 KB has no room for."""
    body = b'{"code":"%b","pad":"%b"}' % (code.encode(), b"x" * 9_000)
    return Answer(200, "application/json", body, code)


@pytest.fixture
def works(aws: None) -> Works:
    """Return a hub on emulated AWS with a scripted core and rows of 4 KB at the most."""
    del aws
    return Works(row_bytes_max=4_096)


def resend_unreadable(world: World) -> Reply:
    """Resend what was executed, and lose the stored answer on its way from the bucket."""
    world.s3.faults["get_object"].append(refused("NoSuchKey", 404))
    return world.post()


ASKS: list[Any] = [
    pytest.param(World.get, id="get"),
    pytest.param(cancel, id="cancel"),
    pytest.param(resend_unreadable, id="resend"),
]


@pytest.mark.parametrize("ask", ASKS)
def test_a_code_that_no_setting_knows_any_more_is_never_told_as_refused(
    make_world: Callable[..., World], ask: Callable[[World], Reply]
) -> None:
    """Stored as an execution, told after a deploy that does not list it: nobody knows."""
    world = make_world(executed_codes=("0000", "0001"), row_bytes_max=4_096)
    world.core.outcomes.append(Answered(large("0001")))
    assert world.post().code == "0001"
    world.deploy(executed_codes=("0000",))
    told = document(ask(world))
    assert told["state"] == "DONE"
    assert (told["executed"], told["resend"], told["new_guid"]) == ("unknown", "yes", "no")


def seen_at_it(works: Works, who: str) -> None:
    """Let a sender ask before its resend, and the core say that it is at it."""
    works.core.findings[:] = [PROCESSING]
    if who == "relay":
        assert works.post().code == "E901"
    else:
        reprocessor(works)


def found_but_not_stored(works: Works, who: str) -> None:
    """Let a sender ask before its resend, and find an answer that the bucket does not take."""
    works.core.findings[:] = [processed(large())]
    works.s3.faults["put_object"].append(refused("SlowDown", 503))
    if who == "relay":
        # The reply is lost on its way to the channel, which asks again.
        assert works.post().code == "0000"
    else:
        reprocessor(works)


def swept_when_over(works: Works) -> Reply:
    """Ask for the status after its validity has ended and the sweep has run."""
    works.clock.advance(90_000)
    sweep(works)
    return works.get()


ENDS: list[Any] = [
    pytest.param(Works.get, id="get"),
    pytest.param(cancel, id="cancel"),
    pytest.param(Works.post, id="resend"),
    pytest.param(swept_when_over, id="validity"),
]


@BY
@pytest.mark.parametrize("find", [seen_at_it, found_but_not_stored])
@pytest.mark.parametrize("end", ENDS)
def test_what_the_core_turns_out_to_have_is_never_told_as_not_executed(
    works: Works,
    who: str,
    find: Callable[[Works, str], None],
    end: Callable[[Works], Reply],
) -> None:
    """The row said "not executed" and the core says otherwise: in doubt, until a person looks."""
    not_executed(works)
    find(works, who)
    told = document(end(works))
    assert (told["code"], told["executed"], told["new_guid"]) == ("E901", "unknown", "no")
    assert works.held().hold is Hold.CONTRADICTION
    assert len(works.core.sent) == 1


def refused_twice(works: Works) -> None:
    """Let the row be held while its holder calls, then refuse the write of what it got."""
    _not_written(works, refused("ThrottlingException"))


def lost_twice(works: Works) -> None:
    """Let the row be held while its holder calls, then lose the write of what it got."""
    _not_written(works, never_arrives)


def _not_written(works: Works, fault: Fault) -> None:
    held_meanwhile(works)
    # The first write meets the hold; the one under the hold fails for good.
    works.dynamo.faults["update_item"] += [passes, fault, fault]


def moved_on_too_often(works: Works) -> None:
    """Let each try of the holder's write meet yet another hold."""
    words = [Hold.CONTRADICTION, Hold.OPERATOR] * 3

    def hold(word: Hold) -> Callable[[], object]:
        return lambda: works.edit(hold=word)

    works.dynamo.before["update_item"] += [hold(word) for word in words]


@pytest.mark.parametrize("answer", [EXECUTED, REFUSED], ids=["executed", "refused"])
@pytest.mark.parametrize("meanwhile", [refused_twice, lost_twice, moved_on_too_often])
def test_an_answer_not_stored_on_a_row_on_hold_is_not_told(
    works: Works, answer: Answer, meanwhile: Callable[[Works], None]
) -> None:
    """An earlier attempt may have been executed: a refusal of this one would let it be paid anew.

    The holder knows of the hold from the write that met it.
    """
    works.core.outcomes.append(Answered(answer))
    works.core.during.append(lambda: meanwhile(works))
    reply = works.post()
    assert (reply.code, document(reply)["executed"]) == ("E901", "unknown")
    assert (works.held().state, works.noted("not_stored")) == (State.SENT, 1)
    assert works.held().hold is not None


@pytest.mark.parametrize("who", ["relay", "reprocessor", "sweep"])
def test_a_row_whose_validity_a_person_has_extended_meanwhile_does_not_end(
    works: Works, who: str
) -> None:
    """What was over when it was read is not over any more when E908 would be written."""
    works.fail()
    works.clock.ms = works.held().valid_until or 0
    later_ms = works.clock() + 3_600_000
    works.dynamo.before["update_item"].append(lambda: works.edit(valid_until=later_ms))
    run: dict[str, Callable[[Works], object]] = {
        "relay": Works.post,
        "reprocessor": reprocessor,
        "sweep": sweep,
    }
    run[who](works)
    row = works.held()
    assert (row.state, row.code, row.valid_until) == (State.FAILED, "E902", later_ms)
    assert Event.EXPIRED not in {entry["event"] for entry in row.history}

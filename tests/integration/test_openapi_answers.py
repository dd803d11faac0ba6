"""docs/openapi.yaml against real answers, both ways: every answer is written down, and no other.

Each scenario makes one answer. Its status, type, headers and document must be what the page has for
its operation; and what the page has of the hub's own must come from some scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from moto import mock_aws

from relayhub.core import Answered, Doubt, NotSent
from relayhub.http_event import CANCEL, to_response
from relayhub.replies import Reply
from relayhub.states import NOT_KNOWN, TOLD, Code
from tests import openapi_kit
from tests.maintenance import accept, cancel
from tests.message_events import PREFER
from tests.openapi_kit import Node
from tests.world import REFUSED, World, document, get_event, post_event, refused, reply_lost

Make = Callable[[World], Reply]

SUBMIT: Final = ("/transactions", "POST")
ASK: Final = ("/transactions/{guid}", "GET")
GIVE_UP: Final = ("/transactions/{guid}/cancel", "POST")
OLD: Final = "01890000-0000-7000-8000-000000000000"  # A UUIDv7 of June 2023.
# The page's schemas of what each code tells.
WORDS: Final = {*Code, "Executed", "Refused", "NoLongerKnown", "NotKnown"}
CORE: Final = "CoreAnswer"


@dataclass(frozen=True)
class Scenario:
    """One way to an answer, and what it must be: status, and the page's name of its words."""

    operation: tuple[str, str]
    status: int
    words: str
    make: Make


def nobody(event: dict[str, Any]) -> Make:
    """Hand the event over without its caller."""
    return lambda world: world.call({**event, "requestContext": {}})


def elsewhere(path: str, method: str) -> Make:
    """Take a path that a GUID without a character, or with a slash, makes."""
    spoilt = {"routeKey": "$default", "rawPath": path}

    def make(world: World) -> Reply:
        event = post_event() | spoilt
        event["requestContext"]["http"] = {"method": method}
        return world.call(event)

    return make


def after(*steps: Callable[[World], object]) -> Make:
    """Take the steps; the last one's reply is the answer."""

    def make(world: World) -> Reply:
        for step in steps[:-1]:
            step(world)
        last = steps[-1](world)
        assert isinstance(last, Reply)
        return last

    return make


def core_says(*outcomes: Any) -> Callable[[World], object]:
    """Script the core."""
    return lambda world: world.core.outcomes.extend(outcomes)


def unreadable(world: World) -> None:
    """Lose the object of a large answer."""
    world.edit(response=None, response_object={"key": "x", "bytes": 1, "sha256": "0"})


def other_codes(world: World) -> None:
    """Go on under settings that do not know the stored code."""
    world.deploy(executed_codes=("9999",), refused_codes=("8888",))


def newer(world: World) -> None:
    """Let a newer version of the hub write the row."""
    world.edit(schema=2)


def broken(world: World) -> None:
    """Leave a row that nobody can read."""
    world.edit(state="NONSENSE")


def ledger_refuses(operation: str) -> Callable[[World], object]:
    """Let the ledger refuse whatever it is asked next."""
    fault = refused("ProvisionedThroughputExceededException")
    return lambda world: world.dynamo.faults[operation].extend([fault] * 9)


def replies_lost(world: World) -> None:
    """Lose the replies of the next writes."""
    world.dynamo.faults["put_item"].extend([reply_lost] * 9)


def get(world: World) -> Reply:
    """Ask for the status."""
    return world.get()


def no_time(world: World) -> Reply:
    """Come with too little time."""
    return world.call(post_event(), left_ms=1_000)


def post(**more: Any) -> Make:
    """Send a request."""
    return lambda world: world.post(**more)


def expired(world: World) -> None:
    """Let the validity of a FAILED row pass."""
    world.fail()
    world.clock.advance(90_000)


INTERACTIVE: Final = post(headers={"delivery": "interactive"})
DOUBT: Final = core_says(Doubt("no_answer", aborted=True))
NOT_SENT: Final = core_says(NotSent("connect_refused"))
B201: Final = core_says(Answered(REFUSED))

SCENARIOS: Final = [
    Scenario(SUBMIT, 200, CORE, post()),
    Scenario(SUBMIT, 200, CORE, after(post(), post())),
    Scenario(SUBMIT, 200, "Executed", after(post(), unreadable, post())),
    Scenario(SUBMIT, 202, "E902", after(NOT_SENT, post())),
    Scenario(SUBMIT, 202, "E903", post(headers=PREFER)),
    Scenario(SUBMIT, 400, "E905", post(guid=None)),
    Scenario(SUBMIT, 403, "E905", nobody(post_event())),
    Scenario(SUBMIT, 409, "E903", after(World.kill, post())),
    Scenario(SUBMIT, 410, "E908", after(expired, post())),
    Scenario(SUBMIT, 413, "E905", post(body=b"x" * 262_145)),
    Scenario(SUBMIT, 422, CORE, after(B201, post())),
    Scenario(SUBMIT, 422, "Refused", after(B201, post(), unreadable, post())),
    Scenario(SUBMIT, 422, "E904", after(post(), post(body=b'{"amount":7}'))),
    Scenario(SUBMIT, 422, "E907", post(guid=OLD)),
    Scenario(SUBMIT, 503, "E902", after(NOT_SENT, INTERACTIVE)),
    Scenario(SUBMIT, 503, "E906", no_time),
    Scenario(SUBMIT, 504, "E901", after(DOUBT, post())),
    Scenario(SUBMIT, 504, "NoLongerKnown", after(post(), unreadable, other_codes, post())),
    Scenario(ASK, 200, "E901", after(World.doubt, get)),
    Scenario(ASK, 200, "E902", after(World.fail, get)),
    Scenario(ASK, 200, "E902", after(NOT_SENT, INTERACTIVE, get)),
    Scenario(ASK, 200, "E903", after(World.kill, get)),
    Scenario(ASK, 200, "E903", after(accept, get)),
    Scenario(ASK, 200, "E908", after(cancel, get)),
    Scenario(ASK, 200, "Executed", after(post(), get)),
    Scenario(ASK, 200, "Refused", after(B201, post(), get)),
    Scenario(ASK, 200, "NoLongerKnown", after(post(), other_codes, get)),
    Scenario(ASK, 400, "E905", lambda world: world.get("!gate")),
    Scenario(ASK, 403, "E905", nobody(get_event("G-1"))),
    Scenario(ASK, 404, "NotKnown", get),
    Scenario(ASK, 404, "NotKnown", after(post(), lambda world: world.get(channel="app"))),
    Scenario(ASK, 404, "E905", elsewhere("/transactions/a/b", "GET")),
    Scenario(ASK, 405, "E905", elsewhere("/transactions/", "GET")),
    Scenario(ASK, 422, "E907", lambda world: world.get(OLD)),
    Scenario(ASK, 503, "E906", after(ledger_refuses("get_item"), get)),
    Scenario(ASK, 504, "E901", after(post(), broken, get)),
    Scenario(GIVE_UP, 200, "E908", cancel),
    Scenario(GIVE_UP, 200, "Executed", after(post(), cancel)),
    Scenario(GIVE_UP, 200, "Refused", after(B201, post(), cancel)),
    Scenario(GIVE_UP, 200, "NoLongerKnown", after(post(), other_codes, cancel)),
    Scenario(GIVE_UP, 202, "E901", after(World.doubt, cancel)),
    Scenario(GIVE_UP, 202, "E903", after(World.kill, cancel)),
    Scenario(GIVE_UP, 400, "E905", lambda world: cancel(world, "!gate")),
    Scenario(GIVE_UP, 403, "E905", nobody(get_event("G-1") | {"routeKey": CANCEL})),
    Scenario(GIVE_UP, 404, "E905", elsewhere("/transactions/a/b/cancel", "POST")),
    Scenario(GIVE_UP, 405, "E905", elsewhere("/transactions//cancel", "POST")),
    Scenario(GIVE_UP, 409, "E903", after(World.kill, newer, cancel)),
    Scenario(GIVE_UP, 422, "E904", after(post(), lambda world: cancel(world, channel="app"))),
    Scenario(GIVE_UP, 422, "E907", lambda world: cancel(world, OLD)),
    Scenario(GIVE_UP, 503, "E906", after(ledger_refuses("put_item"), cancel)),
    Scenario(GIVE_UP, 504, "E901", after(replies_lost, cancel)),
]
CASES: Final = [
    pytest.param(each, id=f"{' '.join(each.operation)}-{each.status}-{each.words}-{number}")
    for number, each in enumerate(SCENARIOS)
]


@pytest.mark.parametrize("scenario", CASES)
def test_an_answer_is_what_the_page_says(world: World, scenario: Scenario) -> None:
    """Status, content type, headers, every field, and the words of just this code."""
    reply = scenario.make(world)
    assert reply.status == scenario.status
    headers = {name.lower() for name in to_response(reply)["headers"]} - {"content-type"}
    assert headers <= openapi_kit.headers_of(*scenario.operation, reply.status)
    schema = openapi_kit.schema_of(*scenario.operation, reply.status, reply.content_type)
    assert schema is not None
    told = document(reply)
    assert openapi_kit.faults(schema, told) == []
    words = openapi_kit.at(f"#/components/schemas/{scenario.words}")
    assert openapi_kit.faults({"required": ["code"], **words}, told) == []
    if scenario.words != CORE:
        assert taken_or_left_out(told) == []


def taken_or_left_out(told: dict[str, Any]) -> list[str]:
    """Return which fields of the hub's document may be missing, and "other" if others may come."""
    kind = "Problem" if "status" in told else "Status" if "age_s" in told else "Cancel"
    schema = openapi_kit.at(f"#/components/schemas/{kind}")
    changed = {each: {k: v for k, v in told.items() if k != each} for each in told}
    changed["other"] = {**told, "other": 1}
    return [each for each, document in changed.items() if not openapi_kit.faults(schema, document)]


def words_of(schema: Node) -> set[str]:
    """Return the names of the words that the schema lets through."""
    found: set[str] = set()
    for inner in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        found |= words_of(inner)
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in WORDS:
        return found | {name}
    return found | words_of(openapi_kit.resolved(schema)) if name == "Settled" else found


def documented() -> set[tuple[tuple[str, str], str, str]]:
    """Return what the page has of the hub's own words: operation, status, name."""
    return {
        ((path, method), status, words)
        for path, method, operation in openapi_kit.operations()
        for status, said in operation["responses"].items()
        for media in openapi_kit.resolved(said).get("content", {}).values()
        for words in words_of(media.get("schema", {}))
    }


def test_the_page_has_no_answer_that_cannot_come() -> None:
    """Each word under each status has a scenario; the core's words come with any status of its."""
    made = {(each.operation, str(each.status), each.words) for each in SCENARIOS}
    of_core = {
        each for each in documented() if each[0] == SUBMIT and each[2] in {"Executed", "Refused"}
    }
    assert documented() - of_core == {
        each for each in made if each[2] != CORE and each not in of_core
    }


def test_every_code_is_told_with_its_status_somewhere() -> None:
    """Each line of the table of codes, and what is told where there is none."""
    own = {(each.label, str(each.status)) for each in TOLD if each.status is not None}
    named = {(words, status) for _, status, words in documented()}
    assert own <= named
    assert ("NotKnown", str(NOT_KNOWN.status)) in named


# The gateway's own, and those of the core's answers, which come with any status of the core's.
NOT_OF_THE_HUB: Final = {"WWW-Authenticate", "Accepted-At", "Attempt", "Idempotent-Replayed"}


@pytest.mark.parametrize("operation", [SUBMIT, ASK, GIVE_UP], ids=" ".join)
def test_every_header_of_the_page_comes_with_some_answer(operation: tuple[str, str]) -> None:
    """No header is promised that the hub does not send."""
    sent = set()
    for each in SCENARIOS:
        if each.operation == operation:
            with mock_aws():
                sent |= {(str(each.status), name) for name in each.make(World()).headers}
    promised = {
        (status, name)
        for status, said in openapi_kit.operation(*operation)["responses"].items()
        for name in openapi_kit.resolved(said).get("headers", {})
    }
    assert {each for each in promised if each[1] not in NOT_OF_THE_HUB} <= sent
    of_core = {name for status, name in sent if status == "200"} & NOT_OF_THE_HUB
    assert of_core == (NOT_OF_THE_HUB - {"WWW-Authenticate"} if operation == SUBMIT else set())

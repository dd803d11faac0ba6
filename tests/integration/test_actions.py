"""Each role allows what its function asks of AWS and nothing more, by what the SDK really sent."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

import pytest

from tests.integration.actions_flows import run_all
from tests.integration.actions_kit import (
    Recorder,
    Site,
    Used,
    called_sites,
    made_clients,
    recording,
)
from tests.unit.template_kit import FUNCTIONS, actions, resources, role_of, statements

# What a role allows that no code of ours asks for: who does, in the role's name. A pattern is of
# function, action and resource.
NOT_OURS: Final = {
    "* logs:* *LogGroup": "Lambda keeps what a function prints.",
    "* xray:* *": "Lambda traces by itself.",
    "* ec2:* *": "Lambda puts the function, or its pollers, into a VPC.",
    "* kms:* K*KeyArn": "The services use a key in the function's name.",
    "MessagesFunction kafka:* *": "Lambda's pollers look for the cluster.",
    "MessagesFunction kafka-cluster:* *": "Lambda's pollers read the topic.",
    "MessagesFunction secretsmanager:GetSecretValue Kafka*": "Lambda's pollers log in.",
    "MessagesFunction sqs:DeleteMessage IntakeQueue": "The event source deletes what is taken.",
    "MessagesFunction sqs:GetQueueAttributes IntakeQueue": "The event source looks at the queue.",
    "MessagesFunction sqs:ReceiveMessage IntakeQueue": "The event source takes messages.",
    "ReprocessorFunction sqs:DeleteMessage DeadLetterQueue": "As for the messages.",
    "ReprocessorFunction sqs:GetQueueAttributes DeadLetterQueue": "As for the messages.",
    "ReprocessorFunction sqs:ReceiveMessage DeadLetterQueue": "As for the messages.",
}
# What only a person's command asks for, under that person's rights: no function has these.
# A pattern is of module and function.
OPERATORS: Final = {
    "proposals.py *": "Acts that need a second person are proposed and approved by a command.",
    "surveys.py scan": "Rows are looked for, and recovered after a restore, by a command.",
}


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """Return what all functions asked for, each in all of its flows."""
    with pytest.MonkeyPatch.context() as patch, recording(patch) as found:
        run_all(found)
        yield found


def word(resource: Any) -> str:
    """Return a resource of the template as the recorder writes it."""
    match resource:
        case {"Fn::GetAtt": [str(name), "Arn"]} | {"Ref": str(name)}:
            return name
        case {"Fn::Sub": str(text)}:
            return text.replace("${LedgerTable.Arn}", "LedgerTable").replace(
                "${AnswersBucket.Arn}", "AnswersBucket"
            )
    return str(resource)


Allowed = tuple[str, str, tuple[str, ...]]  # An action, on what, on which keys; none: on any.


def keys_of(statement: dict[str, Any]) -> tuple[str, ...]:
    """Return the patterns of the table's keys that a statement is bound to."""
    tests: dict[str, Any] = statement.get("Condition", {})
    return tuple(key for each in tests.values() for key in each.get("dynamodb:LeadingKeys", ()))


def allowed_to(function: str) -> set[Allowed]:
    """Return all that a function's role allows, whatever the parameters."""
    return {
        (action, word(resource), keys_of(statement))
        for statement in statements(role_of(function))
        for action in actions(statement)
        for resource in resources(statement)
    }


def covers(allowed: Allowed, used: Used) -> bool:
    """Tell whether this allows that call."""
    action, resource, keys = allowed
    is_key = not keys or any(fnmatchcase(used.key or "", each) for each in keys)
    return (action, resource, is_key) == (used.action, used.resource, True)


def denied(used: set[Used], allowed: set[Allowed]) -> list[Used]:
    """Return the calls that a role with this would not get through."""
    return [each for each in sorted(used, key=repr) if not any(covers(a, each) for a in allowed)]


def unused(function: str, used: set[Used], allowed: set[Allowed]) -> list[Allowed]:
    """Return what a role allows and nobody asks for, beside what is not ours to ask."""
    return [
        each
        for each in sorted(allowed)
        if not any(covers(each, one) for one in used)
        and not any(fnmatchcase(f"{function} {each[0]} {each[1]}", one) for one in NOT_OURS)
    ]


def of(function: str, recorder: Recorder) -> set[Used]:
    """Return what a function asked for."""
    return {each for each in recorder.used if each.function == function}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_every_call_of_its_function(function: str, recorder: Recorder) -> None:
    """Each recorded action, on that resource and, where the role says so, on that key."""
    assert denied(of(function, recorder), allowed_to(function)) == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_nothing_that_its_function_does_not_do(
    function: str, recorder: Recorder
) -> None:
    """Each allowed action was recorded, or is one of the listed that Lambda takes itself."""
    assert unused(function, of(function, recorder), allowed_to(function)) == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_that_lacked_any_used_action_or_had_one_more_would_be_found(
    function: str, recorder: Recorder
) -> None:
    """Whichever is taken away, a call is denied; whatever is added stands there unused."""
    used, allowed = of(function, recorder), allowed_to(function)
    for each in allowed:
        if any(covers(each, one) for one in used):
            assert denied(used, allowed - {each}), each
    for more in ("dynamodb:BatchWriteItem", "dynamodb:DeleteTable", "sqs:PurgeQueue"):
        assert unused(function, used, allowed | {(more, "LedgerTable", ())})


@pytest.mark.parametrize("pattern", NOT_OURS)
def test_an_exception_is_about_something_and_hides_no_call_of_ours(
    pattern: str, recorder: Recorder
) -> None:
    """A role allows it, no recorded call needs it, and it says whose it is."""
    excepted = [
        each
        for function in FUNCTIONS
        for each in allowed_to(function)
        if fnmatchcase(f"{function} {each[0]} {each[1]}", pattern)
    ]
    assert excepted
    ours = [f"{each.function} {each.action} {each.resource}" for each in recorder.used]
    assert not [each for each in ours if fnmatchcase(each, pattern)]
    assert NOT_OURS[pattern].endswith(".")


def by_command(site: Site) -> list[str]:
    """Return the patterns of what only a command does that the place is of."""
    return [each for each in OPERATORS if fnmatchcase(f"{site.module} {site.function}", each)]


def test_every_place_that_calls_aws_was_recorded(recorder: Recorder) -> None:
    """A call that no flow makes would be in no role, and nobody would know before it is denied."""
    missed = called_sites() - recorder.sites
    assert sorted(each for each in missed if not by_command(each)) == []


def test_the_places_that_call_aws_are_found() -> None:
    """By the client's name; among them one of each module that has a client."""
    found = called_sites()
    for known in (
        Site("ledger.py", "create", "put_item"),
        Site("queues.py", "send", "send_message"),
        Site("answers.py", "put", "put_object"),
        Site("credentials.py", "_read", "get_secret_value"),
        Site("upkeep.py", "due", "query"),
    ):
        assert known in found
    with_client = {each.module for each in found}
    assert {module for module, _ in made_clients()} - {"dynamo.py"} <= with_client
    assert {use for _, use in made_clients()} == {"client"}


@pytest.mark.parametrize("pattern", OPERATORS)
def test_what_only_a_command_asks_for_is_in_no_function(pattern: str, recorder: Recorder) -> None:
    """It is there, no function was recorded with it, and it says who calls it."""
    places = {each for each in called_sites() if pattern in by_command(each)}
    assert places
    assert not places & recorder.sites
    assert OPERATORS[pattern].endswith(".")

"""The functions run under the template's roles: what a role loses, its function is denied."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.stack import Stack

pytestmark = pytest.mark.e2e

TRANSFER = b'{"from":"A001","to":"A002","amount":100}'


@contextmanager
def without(stack: Stack, role: str, action: str) -> Iterator[None]:
    """Take an action from a role of the deployed template, and give it back."""
    iam: Any = stack.emulator.client("iam")
    name = stack.name_of(role)
    (policy,) = iam.list_role_policies(RoleName=name)["PolicyNames"]
    document = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
    kept = [_less(each, action) for each in document["Statement"]]
    assert kept != document["Statement"], f"{role} has no {action}"
    less = json.dumps(document | {"Statement": [each for each in kept if each["Action"]]})
    iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=less)
    try:
        yield
    finally:
        whole = json.dumps(document)
        iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=whole)


def _less(statement: dict[str, Any], action: str) -> dict[str, Any]:
    found = statement["Action"]
    actions = [found] if isinstance(found, str) else found
    return statement | {"Action": [each for each in actions if each != action]}


def test_a_relay_that_may_not_claim_sends_nothing(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """E906 as long as its role lacks the action: the ledger said no, and nothing left for the core.

    With the action back the same GUID is executed, once.
    """
    with without(stack, "RelayRole", "dynamodb:PutItem"):
        refused = atm.post("role-1", TRANSFER)
        assert (refused.status, refused.code) == (503, "E906")
        assert core.counts("role-1") == {}
    assert atm.post("role-1", TRANSFER).code == "0000"
    assert core.counts("role-1")["role-1"].executed == 1


def test_an_answer_that_may_not_be_kept_in_the_bucket_is_still_told(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """Without the right to put objects a large answer reaches its channel and no row."""
    core.set_faults([{"kind": "big", "guid": "role-2"}])
    with without(stack, "RelayRole", "s3:PutObject"):
        told = atm.post("role-2", TRANSFER)
        assert (told.status, len(told.body)) == (200, 500_000)
        assert (stack.ledger_row("role-2") or {})["state"] == "SENT"
    assert core.counts("role-2")["role-2"].executed == 1

"""The deployed purger removes a large answer's object, under the role that it has."""

from __future__ import annotations

from typing import Any

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.stack import Stack

pytestmark = pytest.mark.e2e


def expire(stack: Stack, guid: str) -> None:
    """Let the row's time be over."""
    stack.emulator.client("dynamodb").update_item(
        TableName=stack.operator.table,
        Key={"guid": {"S": guid}},
        UpdateExpression="SET expires_at = :past",
        ExpressionAttributeValues={":past": {"N": "1"}},
    )


def test_a_large_answers_object_goes_with_its_row(
    stack: Stack, core: CoreControl, atm: Channel
) -> None:
    """Both are gone after the purge, whose report says that no object was left."""
    guid = "purge-big"
    core.set_faults([{"kind": "big", "guid": guid}])
    atm.post(guid, b'{"from":"A001","to":"A002","amount":1}')
    place: dict[str, Any] = (stack.ledger_row(guid) or {})["response_object"]
    s3, bucket = stack.emulator.client("s3"), stack.name_of("AnswersBucket")
    assert s3.head_object(Bucket=bucket, Key=place["key"])["ContentLength"] == place["bytes"]
    expire(stack, guid)
    report = stack.invoke("PurgerFunction", {})
    assert (report["deleted"], report["objects_left"]) == (1, 0)
    assert stack.ledger_row(guid) is None
    assert s3.list_objects_v2(Bucket=bucket, Prefix=f"{guid}/")["KeyCount"] == 0

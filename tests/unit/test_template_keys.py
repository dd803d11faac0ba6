"""With a key of one's own all that is stored is under it, and each role uses it by services."""

from typing import Any, Final

import pytest

from tests.unit.template_kit import (
    FUNCTIONS,
    PARAMETERS,
    RESOURCES,
    actions,
    chosen_of,
    of_type,
    properties,
    role_of,
)

ARN: Final = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OWN: Final = {"KmsKeyArn": ARN}
KEY: Final = {"Ref": "KmsKeyArn"}
QUEUES: Final = of_type("AWS::SQS::Queue")
LOG_GROUPS: Final = of_type("AWS::Logs::LogGroup")
# The services that a statement's actions are of, by the name that KMS knows each by.
VIA: Final = {
    "dynamodb": "dynamodb",
    "s3": "s3",
    "secretsmanager": "secretsmanager",
    "sqs": "sqs",
}
# A reader needs the first; what is encrypted anew, by a writer of objects or messages, the second.
DECRYPT: Final = "kms:Decrypt"
ENCRYPT: Final = "kms:GenerateDataKey"
WRITES: Final = {"s3:PutObject", "sqs:SendMessage"}


def statements(role: str, **chosen: str) -> list[dict[str, Any]]:
    """Return what a role allows under these parameters."""
    found: list[dict[str, Any]] = [
        statement
        for policy in chosen_of(properties(role)["Policies"], chosen)
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    return found


def test_the_parameter_takes_a_key_and_no_alias() -> None:
    """A role's condition is on the key itself, and an alias may come to mean another one."""
    assert PARAMETERS["KmsKeyArn"]["Default"] == ""
    assert "key/" in PARAMETERS["KmsKeyArn"]["AllowedPattern"]
    assert "alias" not in PARAMETERS["KmsKeyArn"]["AllowedPattern"]


def test_the_table_is_under_the_key_or_under_the_one_that_aws_manages() -> None:
    """It is encrypted by KMS either way."""
    encryption = properties("LedgerTable")["SSESpecification"]
    managed = {"SSEEnabled": True, "SSEType": "KMS"}
    assert chosen_of(encryption, {}) == managed
    assert chosen_of(encryption, OWN) == managed | {"KMSMasterKeyId": KEY}


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_has_one_encryption_and_never_two_or_none(name: str) -> None:
    """SQS refuses a queue that asks for its own keys and for a key of ours."""
    plain, own = chosen_of(QUEUES[name], {}), chosen_of(QUEUES[name], OWN)
    assert (plain["SqsManagedSseEnabled"], "KmsMasterKeyId" in plain) == (True, False)
    assert ("SqsManagedSseEnabled" in own, own["KmsMasterKeyId"]) == (False, KEY)


def test_the_bucket_is_under_the_key_and_asks_for_it_once_for_many_objects() -> None:
    """A bucket key: else every answer is a call of KMS, which has a limit of its own."""
    encryption = properties("AnswersBucket")["BucketEncryption"]
    (plain,) = chosen_of(encryption, {})["ServerSideEncryptionConfiguration"]
    (own,) = chosen_of(encryption, OWN)["ServerSideEncryptionConfiguration"]
    assert plain == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
    assert own == {"ServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}


@pytest.mark.parametrize("name", LOG_GROUPS)
def test_a_log_is_under_the_key(name: str) -> None:
    """Without a payload in it, but with GUIDs and channels."""
    assert "KmsKeyId" not in chosen_of(LOG_GROUPS[name], {})
    assert chosen_of(LOG_GROUPS[name], OWN)["KmsKeyId"] == KEY


def test_nothing_else_in_the_template_stores_what_a_request_says() -> None:
    """A new kind of store would have to be put under the key, and this test says so."""
    stores = {"AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::Logs::LogGroup"}
    kinds = {each["Type"] for each in RESOURCES.values()}
    others = {"AWS::SNS::Topic", "AWS::Kinesis::Stream", "AWS::KinesisFirehose::DeliveryStream"}
    assert stores <= kinds
    assert not kinds & others


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_uses_the_key_through_the_services_that_it_uses_and_no_other(function: str) -> None:
    """Not by itself: whoever stole the role could not decrypt a copy of the data with it."""
    role = role_of(function)
    secret = {"CoreSecretArn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:core"}
    (key,) = [each for each in statements(role, **OWN, **secret) if each["Resource"] == KEY]
    used = {
        action for each in statements(role, **secret) for action in actions(each)
    }  # What the role may do without the key says which services it uses.
    services = [
        VIA[each] for each in sorted(VIA) if any(one.startswith(f"{each}:") for one in used)
    ]
    if used & {"s3:DeleteObject"} == {each for each in used if each.startswith("s3:")}:
        services = [each for each in services if each != "s3"]  # Deleting needs no key.
    via = [{"Fn::Sub": f"{each}.${{AWS::Region}}.amazonaws.com"} for each in services]
    assert key["Condition"] == {"StringEquals": {"kms:ViaService": via}}
    assert actions(key) == {DECRYPT} | ({ENCRYPT} if used & WRITES else set())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_a_key_no_role_may_use_any(function: str) -> None:
    """The keys that AWS holds need no permission."""
    used = {action for each in statements(role_of(function)) for action in actions(each)}
    assert not [each for each in used if each.startswith("kms:")]

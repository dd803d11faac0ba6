"""The template says what no emulator enforces, and its parameters fit the settings."""

import re
from dataclasses import MISSING, Field, fields
from typing import Any, Final

import pytest

from relayhub import settings
from relayhub.message import parse_rfc3339
from relayhub.settings import RELATIONS, Relation, Settings
from tests.unit.template_kit import (
    DAY_S,
    FROM_RESOURCES,
    PARAMETERS,
    RESOURCES,
    VARIABLES,
    camel,
    chosen_of,
    default,
    defaults,
    limits,
    of_type,
    properties,
)

# Variables that libraries read, not our settings.
NOT_SETTINGS: Final = {"POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL", "RES_OPTIONS"}
# The longest names: a stack's is bounded by its functions', which have 64 characters with their
# suffix; the table's and the intake queue's are made of it. Then the names that the platform gives:
# a queue's has up to 80 characters, a bucket's up to 63.
STACK_NAME_LONGEST: Final = 64 - len("-reprocessor")
ADDRESS_LONGEST: Final = len("https://sqs.ap-northeast-1.amazonaws.com.cn/123456789012/")
NAMES_LONGEST: Final = {
    "AWS::StackName": STACK_NAME_LONGEST,
    "LedgerTable": STACK_NAME_LONGEST + len("-ledger"),
    "DeadLetterQueue": ADDRESS_LONGEST + 80,
    "HintRejectsQueue": ADDRESS_LONGEST + 80,
    "IntakeQueue": ADDRESS_LONGEST + STACK_NAME_LONGEST + len("-intake"),
    "IntakeRejectsQueue": ADDRESS_LONGEST + 80,
    "AnswersBucket": 63,
}
# Lambda refuses an environment above 4 KB; the rest is for a function's own variables.
ENVIRONMENT_BYTES_MAX: Final = 4096 - 128


def longest(value: Any) -> int:
    """Return the length of a variable's longest value."""
    if not isinstance(value, dict):
        return len(value)
    if value["Ref"] in NAMES_LONGEST:
        return NAMES_LONGEST[value["Ref"]]
    parameter = PARAMETERS[value["Ref"]]
    if "AllowedValues" in parameter:
        return max(len(str(each)) for each in parameter["AllowedValues"])
    return (
        int(parameter["MaxLength"]) if "MaxLength" in parameter else len(str(parameter["MaxValue"]))
    )


@pytest.mark.parametrize("each", fields(Settings), ids=lambda each: each.name)
def test_every_setting_comes_from_its_parameter_or_resource(each: Field[Any]) -> None:
    """Each field of the settings is a variable that refers to the parameter of its name."""
    expected = FROM_RESOURCES.get(each.name, camel(each.name))
    assert VARIABLES[each.name.upper()] == {"Ref": expected}


def test_no_variable_is_set_that_nobody_reads() -> None:
    """A variable is a setting, or one of the few that a library reads."""
    assert set(VARIABLES) - NOT_SETTINGS == {each.name.upper() for each in fields(Settings)}


@pytest.mark.parametrize(
    "each",
    [each for each in fields(Settings) if "low" in each.metadata],
    ids=lambda each: each.name,
)
def test_a_parameter_allows_no_number_that_its_setting_refuses(each: Field[Any]) -> None:
    """The parameter's range lies within the setting's."""
    parameter = PARAMETERS[camel(each.name)]
    assert each.metadata["low"] <= parameter["MinValue"] <= parameter["MaxValue"]
    assert parameter["MaxValue"] <= each.metadata["high"]


def test_the_templates_defaults_are_the_settings_own() -> None:
    """Settings from the template's defaults equal those with nothing set, relations included."""
    needed = {
        name: default(VARIABLES[name])
        for name in (each.name.upper() for each in fields(Settings) if each.default is MISSING)
    }
    assert settings.load(defaults()) == settings.load(needed)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda each: " ".join(each.names[:3]))
def test_a_relation_holds_between_the_templates_defaults(relation: Relation) -> None:
    """What the functions check at start-up holds for a stack that nobody gave a number."""
    assert relation.fault(settings.load(defaults())) is None


@pytest.mark.parametrize("name", [each for each in VARIABLES if each.endswith("_TIMEOUT_S")])
def test_every_function_knows_every_functions_timeout(name: str) -> None:
    """A timeout stands in the variables of all functions, and no function has another value."""
    assert VARIABLES[name] == {"Ref": camel(name.lower())}
    for function in of_type("AWS::Serverless::Function").values():
        assert name not in function["Environment"]["Variables"]


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+09:00"])
def test_a_failovers_end_that_the_parameter_takes_is_one_that_the_hub_reads(text: str) -> None:
    """The pattern lets times with an offset through, and the setting reads them."""
    pattern = PARAMETERS["HoldNotFoundUntil"]["AllowedPattern"]
    assert re.fullmatch(pattern, text)
    assert parse_rfc3339(text) > 0
    assert not re.fullmatch(pattern, text[:19])


def test_the_environment_fits_into_lambdas_limit() -> None:
    """Names and the longest values together stay below what Lambda takes."""
    size = sum(len(name) + longest(value) for name, value in VARIABLES.items())
    assert size <= ENVIRONMENT_BYTES_MAX


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_says_what_it_is_and_what_it_may_be(name: str) -> None:
    """Each parameter has a description; each range or pattern says so in words when refused."""
    parameter = PARAMETERS[name]
    assert parameter["Description"]
    if parameter["Type"] == "Number":
        assert "AllowedValues" in parameter or {"MinValue", "MaxValue"} <= set(parameter)
    if {"MinValue", "AllowedPattern"} & set(parameter):
        assert parameter["ConstraintDescription"].startswith("must be")


def test_a_row_outlives_the_stack_and_its_name_forbids_a_second_table() -> None:
    """The ledger is kept whatever happens to the stack, and a replacement fails on its name."""
    table = RESOURCES["LedgerTable"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["TableName"] == {"Fn::Sub": "${AWS::StackName}-ledger"}


def test_the_ledger_has_its_key_and_its_sparse_index() -> None:
    """The key and the index cannot be changed without another table: they stand here as well."""
    table = properties("LedgerTable")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [{"AttributeName": "guid", "KeyType": "HASH"}]
    assert table["GlobalSecondaryIndexes"] == [
        {
            "IndexName": "open",
            "KeySchema": [
                {"AttributeName": "open_shard", "KeyType": "HASH"},
                {"AttributeName": "due_at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    assert types == {"guid": "S", "open_shard": "S", "due_at": "N"}


def test_the_ledger_expires_recovers_and_is_encrypted() -> None:
    """What the emulators leave out of a table is in the template."""
    table = properties("LedgerTable")
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"] == 35
    assert table["SSESpecification"]["SSEEnabled"] is True


def test_a_hint_is_kept_and_hidden_long_enough() -> None:
    """Hints stay 14 days, encrypted; one in hand stays hidden for six of its reader's timeouts."""
    queue = properties("DeadLetterQueue")
    assert queue["MessageRetentionPeriod"] == 14 * DAY_S
    assert queue["VisibilityTimeout"] >= 6 * PARAMETERS["ReprocessorTimeoutS"]["MaxValue"]
    assert chosen_of(queue, {})["SqsManagedSseEnabled"] is True


def test_the_bucket_is_private_encrypted_and_outlives_the_stack() -> None:
    """Answers bear account data: nobody else reads them, and no deploy deletes them."""
    bucket = RESOURCES["AnswersBucket"]
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert all(bucket["Properties"]["PublicAccessBlockConfiguration"].values())
    assert len(bucket["Properties"]["PublicAccessBlockConfiguration"]) == 4
    encryption = chosen_of(bucket["Properties"]["BucketEncryption"], {})
    rules = encryption["ServerSideEncryptionConfiguration"]
    assert rules == [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    assert bucket["Properties"]["OwnershipControls"]["Rules"] == [
        {"ObjectOwnership": "BucketOwnerEnforced"}
    ]


def test_the_bucket_refuses_what_does_not_come_over_tls() -> None:
    """The bucket's policy denies everything without TLS, to everybody."""
    policy = properties("AnswersBucketPolicy")
    assert policy["Bucket"] == {"Ref": "AnswersBucket"}
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == (
        "Deny",
        "*",
        "s3:*",
    )
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(statement["Resource"]) == 2


def test_a_large_answer_outlives_its_row_by_14_days() -> None:
    """Objects expire, but by default 14 days after the longest kept row at the earliest."""
    rules = properties("AnswersBucket")["LifecycleConfiguration"]["Rules"]
    assert all(rule["Status"] == "Enabled" for rule in rules)
    assert rules[0]["ExpirationInDays"] == {"Ref": "AnswersDays"}
    assert rules[1]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    for days, evidence_s in zip(limits("AnswersDays"), limits("EvidenceS"), strict=True):
        assert days * DAY_S >= evidence_s + 14 * DAY_S

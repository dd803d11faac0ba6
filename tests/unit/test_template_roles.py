"""Each function may do only what it does, and nothing has a role that does not need it."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, Final

import pytest

from relayhub.upkeep import OWN, Upkeep
from tests.unit.template_kit import (
    FUNCTIONS,
    NO_VALUE,
    actions,
    log_group_of,
    of_type,
    properties,
    resources,
    role_of,
    statements,
)

ROLES: Final = of_type("AWS::IAM::Role")

# Actions for which the service knows no resource, or that Lambda needs on every one in a VPC: for
# the functions themselves, and for its pollers of a Kafka cluster.
ON_ANY_RESOURCE: Final = {
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcs",
    "kafka:GetBootstrapBrokers",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:PutMetricData",
}
# What each function may do, on which resource, on which of the table's keys. Only the purger scans
# and deletes rows; the reprocessor makes and deletes the gate, the project's own row, alone.
Grant = tuple[set[str], Any, Any]
LEDGER: Final = {"Fn::GetAtt": ["LedgerTable", "Arn"]}
OPEN_ROWS: Final = {"Fn::Sub": "${LedgerTable.Arn}/index/open"}
HINTS: Final = {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
HINT_REJECTS: Final = {"Fn::GetAtt": ["HintRejectsQueue", "Arn"]}
INTAKE: Final = {"Fn::GetAtt": ["IntakeQueue", "Arn"]}
INTAKE_REJECTS: Final = {"Fn::GetAtt": ["IntakeRejectsQueue", "Arn"]}
ANSWERS: Final = {"Fn::Sub": "${AnswersBucket.Arn}/*"}
GATE: Final = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["!gate"]}}
CURSORS: Final = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["!purge#*"]}}
SECRET: Final[Grant] = ({"secretsmanager:GetSecretValue"}, {"Ref": "CoreSecretArn"}, None)


def _of_cluster(kind: str, name: str) -> dict[str, Any]:
    """Return the ARN of a topic or a group, which has its cluster's account, name and id."""
    halves: dict[str, Any] = {"Fn::Split": [":cluster/", {"Ref": "KafkaMskArn"}]}
    parts = {"Account": {"Fn::Select": [0, halves]}, "Cluster": {"Fn::Select": [1, halves]}}
    return {"Fn::Sub": [f"${{Account}}:{kind}/${{Cluster}}/${{{name}}}", parts]}


# What Lambda's pollers do in the message function's name, each under its condition.
KAFKA_OPTIONS: Final[dict[str, list[Grant]]] = {
    "HasKafkaSecret": [({"secretsmanager:GetSecretValue"}, {"Ref": "KafkaSecretArn"}, None)],
    "HasKafkaSecretKey": [({"kms:Decrypt"}, {"Ref": "KafkaSecretKeyArn"}, None)],
    "HasKafkaRootCa": [
        ({"secretsmanager:GetSecretValue"}, {"Ref": "KafkaServerRootCaSecretArn"}, None)
    ],
    "HasKafkaNetwork": [
        (
            {
                "ec2:CreateNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcs",
            },
            "*",
            None,
        )
    ],
    "HasKafkaMsk": [
        ({"kafka:DescribeClusterV2"}, {"Ref": "KafkaMskArn"}, None),
        ({"kafka:GetBootstrapBrokers"}, "*", None),
    ],
    "HasKafkaIam": [
        (
            {"kafka-cluster:Connect", "kafka-cluster:DescribeClusterDynamicConfiguration"},
            {"Ref": "KafkaMskArn"},
            None,
        ),
        (
            {"kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"},
            _of_cluster("topic", "KafkaTopic"),
            None,
        ),
        (
            {"kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"},
            _of_cluster("group", "KafkaConsumerGroup"),
            None,
        ),
    ],
}


# Each service uses the key in the function's name, for data of its own.
def _key(actions_of_it: set[str], *services: str) -> Grant:
    via = [{"Fn::Sub": f"{each}.${{AWS::Region}}.amazonaws.com"} for each in services]
    bound = {"StringEquals": {"kms:ViaService": via}}
    return (actions_of_it, {"Ref": "KmsKeyArn"}, bound)


KEY: Final = _key({"kms:Decrypt", "kms:GenerateDataKey"}, "dynamodb", "s3", "secretsmanager", "sqs")
PURGERS_KEY: Final = _key({"kms:Decrypt"}, "dynamodb")
KAFKA: Final = [each for grants in KAFKA_OPTIONS.values() for each in grants if each[1] != "*"]
ALLOWED: Final[dict[str, list[Grant]]] = {
    "RelayFunction": [
        ({"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, LEDGER, None),
        ({"sqs:SendMessage"}, HINTS, None),
        ({"sqs:SendMessage"}, INTAKE, None),
        ({"s3:GetObject", "s3:PutObject"}, ANSWERS, None),
        SECRET,
        KEY,
    ],
    "MessagesFunction": [
        ({"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, LEDGER, None),
        (
            {
                "sqs:ChangeMessageVisibility",
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:ReceiveMessage",
            },
            INTAKE,
            None,
        ),
        ({"sqs:SendMessage"}, INTAKE_REJECTS, None),
        ({"sqs:SendMessage"}, HINTS, None),
        ({"s3:GetObject", "s3:PutObject"}, ANSWERS, None),
        SECRET,
        KEY,
        *KAFKA,
    ],
    "ResolverFunction": [
        ({"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"}, LEDGER, None),
        ({"dynamodb:Query"}, OPEN_ROWS, None),
        ({"sqs:SendMessage"}, HINTS, None),
        ({"s3:PutObject"}, ANSWERS, None),
        SECRET,
        KEY,
    ],
    "ReprocessorFunction": [
        ({"dynamodb:GetItem", "dynamodb:UpdateItem"}, LEDGER, None),
        ({"dynamodb:DeleteItem", "dynamodb:PutItem"}, LEDGER, GATE),
        ({"dynamodb:Query"}, OPEN_ROWS, None),
        (
            {
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:ReceiveMessage",
                "sqs:SendMessage",
            },
            HINTS,
            None,
        ),
        ({"sqs:SendMessage"}, HINT_REJECTS, None),
        ({"s3:PutObject"}, ANSWERS, None),
        SECRET,
        KEY,
    ],
    "PurgerFunction": [
        ({"dynamodb:DeleteItem", "dynamodb:Scan", "dynamodb:UpdateItem"}, LEDGER, None),
        ({"dynamodb:GetItem", "dynamodb:PutItem"}, LEDGER, CURSORS),
        PURGERS_KEY,
        ({"s3:DeleteObject"}, ANSWERS, None),
    ],
}


class _Recorder:
    """A client that does nothing and keeps the keys that it was asked for."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        """Return the operation, whatever it is."""
        return self._record

    def _record(self, **request: Any) -> dict[str, Any]:
        self._keys.append(str((request.get("Key") or request["Item"])["guid"]["S"]))
        return {}


def test_every_function_has_a_role_and_a_log_group_of_its_own() -> None:
    """No function shares a role or a log group; beside them only two services have one."""
    services = ["CodeDeployRole", "SchedulerRole"]
    assert sorted([*map(role_of, FUNCTIONS), *services]) == sorted(ROLES)
    assert len(set(map(log_group_of, FUNCTIONS))) == len(FUNCTIONS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_exactly_what_its_function_does(function: str) -> None:
    """Beside the list, a role has its own log group and what knows no resource; nothing else."""
    group = {"Fn::GetAtt": [log_group_of(function), "Arn"]}
    logs: Grant = ({"logs:CreateLogStream", "logs:PutLogEvents"}, group, None)
    particular = [
        (actions(each), each["Resource"], each.get("Condition"))
        for each in statements(role_of(function))
        if each["Resource"] != "*"
    ]
    expected = [*ALLOWED[function], logs]
    assert [each for each in particular if each not in expected] == []
    assert [each for each in expected if each not in particular] == []


def test_the_keys_that_a_role_is_bound_to_are_the_projects_own() -> None:
    """The gate and the cursors, as the code spells them, and no GUID's row."""
    (gate,) = GATE["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"]
    (cursors,) = CURSORS["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    asked: list[str] = []
    upkeep = Upkeep(_Recorder(asked), "table", now_ms=lambda: 0, skew_s=5)
    upkeep.close_gate(1)
    upkeep.open_gate()
    upkeep.keep_cursor(1, 4, "next")
    upkeep.cursor(1, 4)
    assert asked[:2] == [gate, gate]
    assert all(fnmatchcase(key, cursors) for key in asked[2:])
    assert len(asked) == 4
    assert gate[0] == cursors[0] == OWN


@pytest.mark.parametrize("role", ROLES)
def test_a_star_stands_only_where_no_resource_can(role: str) -> None:
    """No action has a star, and a star as the resource comes with listed actions only."""
    for statement in statements(role):
        assert statement["Effect"] == "Allow"
        assert not any("*" in action for action in actions(statement))
        if "*" in resources(statement):
            assert actions(statement) <= ON_ANY_RESOURCE


@pytest.mark.parametrize("role", [role_of(each) for each in FUNCTIONS])
def test_a_role_is_for_lambda_alone_and_takes_no_policy_from_elsewhere(role: str) -> None:
    """Only the service assumes the role, and all that it allows is written in the template."""
    (trust,) = properties(role)["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert trust["Action"] == "sts:AssumeRole"
    assert "ManagedPolicyArns" not in properties(role)


def options_of(function: str) -> dict[str, list[Grant]]:
    """Return what a role allows under conditions, by condition; otherwise it has nothing."""
    found: dict[str, list[Grant]] = {}
    for statement in properties(role_of(function))["Policies"][0]["PolicyDocument"]["Statement"]:
        if "Fn::If" in statement:
            name, grant, nothing = statement["Fn::If"]
            assert nothing == NO_VALUE
            allowed = (actions(grant), grant["Resource"], grant.get("Condition"))
            found.setdefault(name, []).append(allowed)
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_a_role_has_for_an_option_depends_on_that_option(function: str) -> None:
    """Without a secret, a VPC or Kafka a role names none; the purger never asks the core."""
    optional = options_of(function)
    assert len(optional.pop("HasVpc")) == 1
    key = PURGERS_KEY if function == "PurgerFunction" else KEY
    assert optional.pop("HasKmsKey") == [key]
    kafka = {name: each for name, each in optional.items() if name.startswith("HasKafka")}
    assert kafka == (KAFKA_OPTIONS if function == "MessagesFunction" else {})
    rest = {name: each for name, each in optional.items() if name not in kafka}
    assert rest == ({} if function == "PurgerFunction" else {"HasCoreSecret": [SECRET]})


def test_the_resolver_alone_writes_metrics_itself_and_only_the_stacks_own() -> None:
    """Another stack's alarms hang on another namespace."""
    found = [
        (function, each["Condition"])
        for function in FUNCTIONS
        for each in statements(role_of(function))
        if "cloudwatch:PutMetricData" in actions(each)
    ]
    own = {"StringEquals": {"cloudwatch:namespace": {"Ref": "AWS::StackName"}}}
    assert found == [("ResolverFunction", own)]

"""A stack has a Kafka source or none, never half of one, and the source gives up no record."""

import json
import re
from typing import Any, Final

import pytest

from relayhub import settings
from tests.unit.template_kit import (
    CONDITIONS,
    NO_VALUE,
    PARAMETERS,
    RESOURCES,
    VARIABLES,
    chosen_of,
    defaults,
    holds,
    limits,
    properties,
    refusals,
)

Chosen = dict[str, str]

SOURCES: Final = {"HasKafkaMsk": "KafkaMskSource", "HasKafkaServers": "KafkaServersSource"}
SECRET: Final = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_relayhub-AbCdEf"
OTHER_SECRET: Final = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:root-ca-AbCdEf"
KEY: Final = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
CLUSTER: Final = "arn:aws:kafka:eu-west-1:123456789012:cluster/pay/0a1b2c3d-4e5f-6a7b-8c9d-0e1f-2"

TOPIC: Final[Chosen] = {"KafkaTopic": "receipts", "KafkaStartingPosition": "LATEST"}
SCRAM: Final[Chosen] = {"KafkaAuth": "SASL_SCRAM_512_AUTH", "KafkaSecretArn": SECRET}
NETWORK: Final[Chosen] = {
    "KafkaSubnetId1": "subnet-0a1",
    "KafkaSubnetId2": "subnet-0b2",
    "KafkaSecurityGroupId": "sg-0c3",
}
SERVERS: Final[Chosen] = TOPIC | {"KafkaBootstrapServers": "b-1.example:9096,b-2.example:9096"}
MSK: Final[Chosen] = TOPIC | {"KafkaMskArn": CLUSTER}
# What makes a source, and which.
WHOLE: Final[dict[str, tuple[Chosen, str | None]]] = {
    "no Kafka": ({}, None),
    "servers with a secret": (SERVERS | SCRAM, "KafkaServersSource"),
    "servers in a network": (SERVERS | NETWORK, "KafkaServersSource"),
    "servers with both and a root": (
        SERVERS | SCRAM | NETWORK | {"KafkaServerRootCaSecretArn": OTHER_SECRET},
        "KafkaServersSource",
    ),
    "servers with a password": (
        SERVERS | SCRAM | {"KafkaAuth": "BASIC_AUTH"},
        "KafkaServersSource",
    ),
    "MSK that is open": (MSK, "KafkaMskSource"),
    "MSK by IAM": (MSK | {"KafkaAuth": "IAM"}, "KafkaMskSource"),
    "MSK with a secret and its key": (MSK | SCRAM | {"KafkaSecretKeyArn": KEY}, "KafkaMskSource"),
    "settings for another consumer": (
        {"KafkaKeyIsGuid": "true", "KafkaPartialBatches": "true"},
        None,
    ),
}
# What is refused, and the words of the refusal.
HALF: Final[dict[str, tuple[Chosen, str]]] = {
    "a topic without a cluster": (TOPIC, "KafkaTopic needs KafkaBootstrapServers or KafkaMskArn"),
    "a topic that nobody said where to begin in": (
        MSK | {"KafkaStartingPosition": ""},
        "KafkaTopic needs KafkaStartingPosition",
    ),
    "servers without a topic": (
        SERVERS | SCRAM | {"KafkaTopic": ""},
        "KafkaBootstrapServers needs KafkaTopic",
    ),
    "MSK without a topic": (MSK | {"KafkaTopic": ""}, "KafkaMskArn needs KafkaTopic"),
    "both clusters": (
        SERVERS | SCRAM | MSK,
        "Give KafkaBootstrapServers or KafkaMskArn, not both",
    ),
    "servers that anybody may write to": (
        SERVERS,
        "KafkaBootstrapServers needs KafkaSecretArn, KafkaSubnetId1, or both",
    ),
    "credentials without a secret": (
        MSK | {"KafkaAuth": "SASL_SCRAM_512_AUTH"},
        "This KafkaAuth needs KafkaSecretArn",
    ),
    "a secret of no use": (
        MSK | {"KafkaSecretArn": SECRET},
        "KafkaSecretArn needs the KafkaAuth that it is for",
    ),
    "a secret beside IAM": (
        MSK | {"KafkaAuth": "IAM", "KafkaSecretArn": SECRET},
        "KafkaSecretArn needs the KafkaAuth that it is for",
    ),
    "a secret without a topic": (SCRAM, "KafkaSecretArn needs KafkaTopic"),
    "IAM at a cluster of one's own": (
        SERVERS | NETWORK | {"KafkaAuth": "IAM"},
        "KafkaAuth: IAM is for KafkaMskArn",
    ),
    "a password at MSK": (MSK | SCRAM | {"KafkaAuth": "BASIC_AUTH"}, "With KafkaMskArn, KafkaAuth"),
    "SHA-256 at MSK": (
        MSK | SCRAM | {"KafkaAuth": "SASL_SCRAM_256_AUTH"},
        "With KafkaMskArn, KafkaAuth",
    ),
    "a key without a secret": (
        MSK | {"KafkaSecretKeyArn": KEY},
        "KafkaSecretKeyArn needs KafkaSecretArn",
    ),
    "a root for MSK": (
        MSK | {"KafkaServerRootCaSecretArn": OTHER_SECRET},
        "KafkaServerRootCaSecretArn needs KafkaBootstrapServers",
    ),
    "a subnet without a group": (
        SERVERS | {"KafkaSubnetId1": "subnet-0a1"},
        "KafkaSubnetId1 needs KafkaSecurityGroupId",
    ),
    "a group without a subnet": (
        SERVERS | SCRAM | {"KafkaSecurityGroupId": "sg-0c3"},
        "The first subnet is KafkaSubnetId1",
    ),
    "a second subnet alone": (
        SERVERS | SCRAM | {"KafkaSubnetId2": "subnet-0b2", "KafkaSecurityGroupId": "sg-0c3"},
        "The first subnet is KafkaSubnetId1",
    ),
    "a network for MSK": (MSK | NETWORK, "KafkaSubnetId1 needs KafkaBootstrapServers"),
}
# What a parameter takes, and what it does not.
PATTERNS: Final = {
    "KafkaBootstrapServers": (("", "b-1.example:9096", "10.0.0.7:9092"), ("b-1.example", "b:x")),
    "KafkaMskArn": (("", CLUSTER), ("pay", CLUSTER.replace(":cluster/", ":topic/"))),
    "KafkaTopic": (("", "receipts", "pay.in_2-x"), (".receipts", "pay/in", "r")),
    "KafkaConsumerGroup": (("relayhub", "pay/in-2"), ("", "a b", "a:b", "pay*")),
    "KafkaSecretArn": (("", SECRET), ("AmazonMSK_relayhub",)),
    "KafkaSecretKeyArn": (("", KEY), (KEY.replace(":key/", ":alias/"),)),
    "KafkaServerRootCaSecretArn": (("", OTHER_SECRET), ("root-ca",)),
    "KafkaSubnetId1": (("", "subnet-0a1"), ("subnet", "sg-0c3")),
    "KafkaSecurityGroupId": (("", "sg-0c3"), ("subnet-0a1",)),
}


def made(chosen: Chosen) -> dict[str, dict[str, Any]]:
    """Return the properties of the Kafka sources that these parameters make, by logical id."""
    return {
        source: chosen_of(properties(source), chosen)
        for condition, source in SOURCES.items()
        if holds(CONDITIONS[condition], chosen)
    }


@pytest.mark.parametrize(("chosen", "source"), WHOLE.values(), ids=WHOLE)
def test_a_whole_source_is_made_and_nothing_without_one(chosen: Chosen, source: str | None) -> None:
    """No rule refuses, and there is the one source, or none."""
    assert refusals(chosen) == []
    assert list(made(chosen)) == ([source] if source else [])
    assert holds(CONDITIONS["HasKafka"], chosen) is bool(source)


@pytest.mark.parametrize(("chosen", "words"), HALF.values(), ids=HALF)
def test_half_a_source_is_refused_in_words(chosen: Chosen, words: str) -> None:
    """Whoever forgot one of the parameters is told which, before anything is created."""
    assert [each for each in refusals(chosen) if each.startswith(words)] != []


@pytest.mark.parametrize("name", PATTERNS)
def test_a_parameter_takes_what_lambda_takes(name: str) -> None:
    """Empty means that there is none; a list's pattern is that of each of its members."""
    taken, refused = PATTERNS[name]
    pattern = PARAMETERS[name]["AllowedPattern"]
    assert [each for each in taken if not re.fullmatch(pattern, each)] == []
    assert [each for each in refused if re.fullmatch(pattern, each)] == []


@pytest.mark.parametrize(("condition", "source"), SOURCES.items(), ids=SOURCES.values())
def test_a_source_is_there_only_under_its_condition(condition: str, source: str) -> None:
    """A stack without Kafka deploys without either."""
    assert RESOURCES[source]["Condition"] == condition
    assert RESOURCES[source]["Type"] == "AWS::Lambda::EventSourceMapping"


@pytest.mark.parametrize("source", SOURCES.values())
def test_no_record_is_ever_given_up(source: str) -> None:
    """No destination (with one, endless retries become ten), no limit of tries or of age."""
    given_up = {
        *("DestinationConfig", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds"),
        *("BisectBatchOnFunctionError", "FilterCriteria", "Enabled"),
    }
    assert given_up & set(properties(source)) == set()


@pytest.mark.parametrize("place", ["TRIM_HORIZON", "LATEST"])
@pytest.mark.parametrize("chosen", [SERVERS | SCRAM, MSK], ids=["servers", "MSK"])
def test_a_source_reads_the_topic_as_the_group_from_where_it_was_told(
    chosen: Chosen, place: str
) -> None:
    """One topic, whose offsets the group keeps; where one without begins, somebody has chosen."""
    (source,) = made(chosen | {"KafkaStartingPosition": place}).values()
    assert source["FunctionName"] == {"Ref": "MessagesFunction"}
    assert source["Topics"] == [{"Ref": "KafkaTopic"}]
    assert source["StartingPosition"] == place
    assert PARAMETERS["KafkaStartingPosition"]["Default"] == ""
    (group,) = (each for name, each in source.items() if name.endswith("KafkaEventSourceConfig"))
    assert group == {"ConsumerGroupId": {"Ref": "KafkaConsumerGroup"}}


@pytest.mark.parametrize("source", SOURCES.values())
def test_a_batch_of_records_is_small_and_waits_for_nothing(source: str) -> None:
    """Records go to the core one after the other, and a payment gains nothing by waiting."""
    assert properties(source)["BatchSize"] == {"Ref": "KafkaBatchSize"}
    assert properties(source)["MaximumBatchingWindowInSeconds"] == {"Ref": "KafkaWindowS"}
    assert limits("KafkaBatchSize") == (1, 10, 100)
    assert limits("KafkaWindowS")[:2] == (0, 0)


def test_each_cluster_is_named_as_lambda_names_it() -> None:
    """Amazon MSK by its ARN, a cluster of one's own by its brokers."""
    (msk,), (servers,) = made(MSK).values(), made(SERVERS | SCRAM).values()
    assert msk["EventSourceArn"] == {"Ref": "KafkaMskArn"}
    endpoints = {"KafkaBootstrapServers": {"Ref": "KafkaBootstrapServers"}}
    assert servers["SelfManagedEventSource"] == {"Endpoints": endpoints}
    assert "SelfManagedEventSource" not in msk
    assert "EventSourceArn" not in servers


def test_a_cluster_of_ones_own_is_reached_with_all_that_was_given() -> None:
    """Credentials, the root of its certificates, each subnet, the group; nothing that is empty."""
    chosen = SERVERS | SCRAM | NETWORK | {"KafkaServerRootCaSecretArn": OTHER_SECRET}
    (source,) = made(chosen).values()
    assert source["SourceAccessConfigurations"] == [
        {"Type": {"Ref": "KafkaAuth"}, "URI": {"Ref": "KafkaSecretArn"}},
        {"Type": "SERVER_ROOT_CA_CERTIFICATE", "URI": {"Ref": "KafkaServerRootCaSecretArn"}},
        {"Type": "VPC_SUBNET", "URI": {"Fn::Sub": "subnet:${KafkaSubnetId1}"}},
        {"Type": "VPC_SUBNET", "URI": {"Fn::Sub": "subnet:${KafkaSubnetId2}"}},
        {
            "Type": "VPC_SECURITY_GROUP",
            "URI": {"Fn::Sub": "security_group:${KafkaSecurityGroupId}"},
        },
    ]
    (third,) = made(chosen | {"KafkaSubnetId3": "subnet-0d4"}).values()
    assert len(third["SourceAccessConfigurations"]) == 6


def test_msk_is_reached_with_its_secret_or_by_what_it_has() -> None:
    """Without a secret Lambda takes IAM if the cluster has it, so none is named."""
    (scram,) = made(MSK | SCRAM).values()
    access = {"Type": {"Ref": "KafkaAuth"}, "URI": {"Ref": "KafkaSecretArn"}}
    assert scram["SourceAccessConfigurations"] == [access]
    (iam,) = made(MSK | {"KafkaAuth": "IAM"}).values()
    assert "SourceAccessConfigurations" not in iam


@pytest.mark.parametrize("chosen", [SERVERS | SCRAM, MSK], ids=["servers", "MSK"])
def test_partial_answers_are_read_only_by_provisioned_pollers(chosen: Chosen) -> None:
    """Both come with the parameter that the function knows, and neither without it."""
    assert VARIABLES["KAFKA_PARTIAL_BATCHES"] == {"Ref": "KafkaPartialBatches"}
    assert PARAMETERS["KafkaPartialBatches"]["Default"] == "false"
    (plain,) = made(chosen).values()
    assert {"FunctionResponseTypes", "ProvisionedPollerConfig"} & set(plain) == set()
    (partial,) = made(chosen | {"KafkaPartialBatches": "true"}).values()
    assert partial["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    pollers = {"MinimumPollers": 1, "MaximumPollers": {"Ref": "KafkaPollersMax"}}
    assert partial["ProvisionedPollerConfig"] == pollers


def test_the_function_ends_before_lambda_gives_a_kafka_source_up() -> None:
    """Its timeout must be 14 minutes at most."""
    assert limits("MessagesTimeoutS")[2] <= 14 * 60


@pytest.mark.parametrize(
    ("chosen", "sids"),
    [
        ({}, set()),
        (SERVERS | SCRAM, {"KafkaSecret"}),
        (
            SERVERS | SCRAM | NETWORK | {"KafkaServerRootCaSecretArn": OTHER_SECRET},
            {"KafkaSecret", "KafkaRootCa", "KafkaNetwork"},
        ),
        (MSK, {"KafkaNetwork", "KafkaCluster", "KafkaBrokers"}),
        (
            MSK | SCRAM | {"KafkaSecretKeyArn": KEY},
            {"KafkaSecret", "KafkaSecretKey", "KafkaNetwork", "KafkaCluster", "KafkaBrokers"},
        ),
        (
            MSK | {"KafkaAuth": "IAM"},
            {
                *("KafkaNetwork", "KafkaCluster", "KafkaBrokers"),
                *("KafkaConnect", "KafkaTopic", "KafkaGroup"),
            },
        ),
    ],
    ids=["none", "servers", "network", "MSK", "MSK SCRAM", "MSK IAM"],
)
def test_the_role_has_of_kafka_what_its_cluster_needs(chosen: Chosen, sids: set[str]) -> None:
    """Nothing without Kafka, and no right of the one cluster for the other."""
    document = properties("MessagesRole")["Policies"][0]["PolicyDocument"]
    allowed = {each["Sid"] for each in chosen_of(document["Statement"], chosen)}
    assert {sid for sid in allowed if sid.startswith("Kafka")} == sids
    assert NO_VALUE not in chosen_of(document["Statement"], chosen)


def test_a_topics_name_makes_a_source_that_the_settings_know() -> None:
    """Whatever the parameter takes can be given its operation."""
    for topic in filter(None, PATTERNS["KafkaTopic"][0]):
        source = f"kafka:{topic}"
        made_of = settings.load(defaults() | {"SOURCE_OPERATIONS": json.dumps({source: "receipt"})})
        assert made_of.operation_of(source) == "receipt"

"""Sets through the API what the emulator leaves out of the template, as the template has it.

Two things are taken back: the emulator speaks plain HTTP, so policies that demand TLS would refuse
every answer and every message; and it does not know in which namespace a metric is written, so a
role that may write in the stack's alone could write none. It does not enforce encryption, lifecycle
rules or throttling at all: those are asserted on the template by a test, and nothing here pretends
that they work on this machine.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.emulator import Emulator


@dataclass(frozen=True)
class Values:
    """Reads a template's values under the parameters of one deployment."""

    conditions: Mapping[str, Any]
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, template: Mapping[str, Any], chosen: Mapping[str, str]) -> "Values":
        """Take the template's own defaults where nothing was chosen."""
        defaults = {
            name: str(each["Default"])
            for name, each in template.get("Parameters", {}).items()
            if "Default" in each
        }
        return cls(template.get("Conditions", {}), defaults | dict(chosen))

    def read(self, node: Any) -> Any:
        """Return the value, None for no value; raises ValueError for what is not known here."""
        match node:
            case {"Ref": "AWS::NoValue"}:
                return None
            case {"Ref": str(name)} if name in self.parameters:
                return self.parameters[name]
            case {"Fn::If": [str(name), yes, no]}:
                return self.read(yes if self._holds(self.conditions[name]) else no)
            case dict():
                raise ValueError(f"cannot read {node} here")
            case _:
                return node

    def _holds(self, condition: Any) -> bool:
        match condition:
            case {"Fn::Not": [inner]}:
                return not self._holds(inner)
            case {"Fn::Equals": [left, right]}:
                return str(self.read(left)) == str(self.read(right))
            case _:
                raise ValueError(f"cannot judge {condition} here")


def adjust(
    emulator: Emulator,
    template: Mapping[str, Any],
    names: Mapping[str, str],
    parameters: Mapping[str, str],
) -> tuple[str, ...]:
    """Set what was left out of each resource, and say what was set; `names` by logical id."""
    values = Values.of(template, parameters)
    said: list[str] = []
    for logical, resource in template["Resources"].items():
        if logical in names:  # Else its condition does not hold under these parameters.
            said += _adjust_one(emulator, values, names, logical, resource)
    return tuple(said)


def _adjust_one(
    emulator: Emulator,
    values: Values,
    names: Mapping[str, str],
    logical: str,
    resource: Mapping[str, Any],
) -> Iterator[str]:
    properties = resource.get("Properties", {})
    match resource["Type"]:
        case "AWS::DynamoDB::Table":
            yield from _adjust_table(emulator, names[logical], properties)
        case "AWS::Serverless::Function":
            reserved = values.read(properties.get("ReservedConcurrentExecutions"))
            yield from _adjust_function(emulator, names[logical], reserved)
        case "AWS::Lambda::EventSourceMapping":
            limit = values.read(properties.get("ScalingConfig", {}).get("MaximumConcurrency"))
            yield from _adjust_source(emulator, names[logical], limit)
        case "AWS::IAM::Role":
            yield from _allow_any_namespace(emulator, names[logical])
        case "AWS::S3::BucketPolicy":
            yield from _allow_plain_http(emulator, names[str(properties["Bucket"]["Ref"])])
        case "AWS::SQS::QueuePolicy":
            for queue in properties["Queues"]:
                yield from _allow_plain_http_to_queue(emulator, names[str(queue["Ref"])])
        case _:
            pass


def _adjust_table(emulator: Emulator, name: str, properties: Mapping[str, Any]) -> Iterator[str]:
    client = emulator.client("dynamodb")
    expiry = properties.get("TimeToLiveSpecification")
    if expiry:
        client.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
        yield f"{name}: rows expire by {expiry['AttributeName']}"
    recovery = properties.get("PointInTimeRecoverySpecification")
    if recovery:
        client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=recovery)
        yield f"{name}: point-in-time recovery"


def _adjust_function(emulator: Emulator, name: str, reserved: Any) -> Iterator[str]:
    if reserved is not None:
        emulator.client("lambda").put_function_concurrency(
            FunctionName=name, ReservedConcurrentExecutions=int(reserved)
        )
        yield f"{name}: at most {reserved} calls at once"


def _adjust_source(emulator: Emulator, uuid: str, limit: Any) -> Iterator[str]:
    """Give the limit as a number: the emulator keeps a parameter's text and then never delivers."""
    if limit is not None:
        client = emulator.client("lambda")
        found = client.update_event_source_mapping(
            UUID=uuid, ScalingConfig={"MaximumConcurrency": int(limit)}
        )
        yield f"{found['EventSourceArn'].rpartition(':')[2]}: at most {limit} deliveries at once"


def _allow_any_namespace(emulator: Emulator, role: str) -> Iterator[str]:
    client = emulator.client("iam")
    for name in client.list_role_policies(RoleName=role)["PolicyNames"]:
        policy = client.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        bound = [each for each in policy["Statement"] if _binds_namespace(each)]
        if not bound:
            continue
        for each in bound:
            del each["Condition"]
        client.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(policy))
        yield f"{role}: metrics of any namespace"


def _allow_plain_http(emulator: Emulator, bucket: str) -> Iterator[str]:
    client = emulator.client("s3")
    policy = json.loads(client.get_bucket_policy(Bucket=bucket)["Policy"])
    kept = [each for each in policy["Statement"] if not _demands_tls(each)]
    if len(kept) == len(policy["Statement"]):
        return
    if kept:
        client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy | {"Statement": kept}))
    else:
        client.delete_bucket_policy(Bucket=bucket)
    yield f"{bucket}: plain HTTP allowed"


def _allow_plain_http_to_queue(emulator: Emulator, url: str) -> Iterator[str]:
    client = emulator.client("sqs")
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    policy = json.loads(found["Attributes"]["Policy"])
    kept = [each for each in policy["Statement"] if not _demands_tls(each)]
    if len(kept) == len(policy["Statement"]):
        return
    rest = json.dumps(policy | {"Statement": kept}) if kept else ""
    client.set_queue_attributes(QueueUrl=url, Attributes={"Policy": rest})
    yield f"{url.rpartition('/')[2]}: plain HTTP allowed"


def _binds_namespace(statement: Mapping[str, Any]) -> bool:
    condition: Mapping[str, Any] = statement.get("Condition", {})
    return set(condition.get("StringEquals", {})) == {"cloudwatch:namespace"}


def _demands_tls(statement: Mapping[str, Any]) -> bool:
    return statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}

"""Bad weather of AWS below the SDK: a service that refuses a share of all requests.

The SDK signs, sends and reads as ever; what answers is this, the explorer's table or the emulator.
"""

from __future__ import annotations

import base64
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.core.models import botocore_stubber

from tests.explore.table import Table

Answer = tuple[int, bytes]
# As the hub's own clients are made: what is tried again is the hub's own decision.
_CONFIG: Final = Config(retries={"mode": "standard", "total_max_attempts": 1})
_REFUSALS: Final[dict[str, Answer]] = {
    "dynamodb": (400, b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}'),
    "s3": (503, b"<Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>"),
}


class _Raw(io.BytesIO):
    """A body as the SDK reads one."""

    def stream(self, amt: int = 65_536, **_: object) -> Iterator[bytes]:
        """Give the body in parts."""
        while part := self.read(amt):
            yield part


@dataclass
class Weather:
    """How often each service refuses, by a seeded chance."""

    chance: random.Random
    shares: dict[str, float]
    refused: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)

    def client(self, service: str, answer: Callable[[Any], Answer | None] | None = None) -> Any:
        """Return a client in this weather; `answer` stands for the emulator where it is given."""
        made = boto3.client(service, config=_CONFIG)  # type: ignore[call-overload]

        def respond(event_name: str, request: Any, **_: object) -> AWSResponse | None:
            told = self._refusal(service) or (answer(request) if answer else None)
            if told is None:
                return botocore_stubber(event_name, request)
            return AWSResponse(request.url, told[0], HTTPHeaders(), _Raw(told[1]))

        # Every handler of the event is called, whatever another answers: a refused request must
        # not reach the emulator.
        made.meta.events.unregister("before-send", botocore_stubber)
        made.meta.events.register("before-send", respond)
        return made

    def clear(self) -> None:
        """Let every request through from now on."""
        self.shares.clear()

    def _refusal(self, service: str) -> Answer | None:
        if self.chance.random() >= self.shares.get(service, 0):
            self.passed[service] += 1
            return None
        self.refused[service] += 1
        return _REFUSALS[service]


def table_answer(table: Table) -> Callable[[Any], Answer]:
    """Return what answers a DynamoDB request out of the table, in the service's own form."""

    def answer(request: Any) -> Answer:
        target = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        name = "".join(f"_{each.lower()}" if each.isupper() else each for each in target)[1:]
        asked = json.loads(request.body, object_hook=_decoded)
        try:
            return 200, _coded(getattr(table, name)(**asked))
        except ClientError as error:
            kind = {"__type": f"com.amazonaws.dynamodb.v20120810#{error.response['Error']['Code']}"}
            item = error.response.get("Item")
            return 400, _coded(kind | ({"Item": item} if item else {}))

    return answer


def _decoded(value: dict[str, Any]) -> dict[str, Any]:
    """Return an attribute's bytes as such; on the wire they are in base64."""
    is_bytes = value.keys() == {"B"} and isinstance(value["B"], str)
    return {"B": base64.b64decode(value["B"])} if is_bytes else value


def _coded(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, default=lambda value: base64.b64encode(value).decode()).encode()

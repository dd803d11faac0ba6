"""A fault proxy (microburst) between the functions and the emulator: refusals, lost replies.

Requests arrive at the emulator signed anew, by its administrator, since the proxy is another host:
behind it no role is enforced. What is read and what the tests themselves do does not go through it.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import boto3
import httpx
from botocore.config import Config

from local.emulator import REGION, ROOT
from local.ports import LOOPBACK, wait_until_listening
from local.stack_process import Child

_START_S: Final = 20.0
_CALL_S: Final = 10.0
_WARM_S: Final = 30
_WARMING: Final = {"dynamodb": "list_tables", "sqs": "list_queues", "s3": "list_buckets"}
_LOST_REPLY: Final = {"abort_bytes": 0}  # The request takes effect, and not one byte comes back.

Rule = Mapping[str, Any]


def refuses(operation: str, guid: str, *, times: int | None = None) -> dict[str, Any]:
    """Return a rule: the ledger refuses this operation for the GUID (throttled)."""
    error = {"code": "ProvisionedThroughputExceededException"}
    return _of(operation, guid, times) | {"error": error}


def loses_reply(operation: str, guid: str = "", *, times: int | None = None) -> dict[str, Any]:
    """Return a rule: the operation takes effect, and its reply is lost."""
    return _of(operation, guid, times) | {"response": _LOST_REPLY}


def _of(operation: str, guid: str, times: int | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"service": "dynamodb", "operation": operation}
    if guid:
        rule["body"] = f"(Item || Key).guid.S == '{guid}'"
    return rule if times is None else rule | {"times": times}


class FaultProxy:
    """A running proxy; without rules it hands everything through."""

    def __init__(self, child: Child, port: int) -> None:
        """Take over a child that will listen on the port."""
        self.child = child
        self.port = port
        self.endpoint = f"http://{LOOPBACK}:{port}"

    @classmethod
    def start(cls, program: Path, *, port: int, upstream: str, log: Path) -> Self:
        """Start it without waiting."""
        command: list[str | Path] = [
            *(program, "--host", LOOPBACK, "--port", str(port)),
            *("--upstream", upstream, "--resign"),
        ]
        env = {"PATH": os.defpath, "LANG": "C.UTF-8", **ROOT.as_environment()}
        return cls(Child.start("fault proxy", command, log=log, env=env, cwd=log.parent), port)

    def wait(self) -> None:
        """Return when it accepts requests; raises PortError."""
        wait_until_listening(self.port, alive=self.child.is_running, within_s=_START_S)

    def warm(self) -> None:
        """Let it load what it knows of each service, which takes longer than a function waits."""
        config = Config(region_name=REGION, read_timeout=_WARM_S, proxies={})
        session = boto3.Session(ROOT.key, ROOT.secret, region_name=REGION)
        make: Any = session.client
        for service, call in _WARMING.items():
            getattr(make(service, endpoint_url=self.endpoint, config=config), call)()

    def set_rules(self, rules: Iterable[Rule]) -> None:
        """Replace all rules; none lets everything through."""
        self._call("POST", "rules", list(rules))

    def fired(self) -> list[dict[str, Any]]:
        """Return the faults since the last call of `forget`, oldest first."""
        found = self._call("GET", "fired?limit=100000", None)
        return list(found["fired"] if isinstance(found, dict) else found)

    def forget(self) -> None:
        """Empty the list of faults."""
        self._call("DELETE", "fired", None)

    def _call(self, method: str, path: str, document: Any) -> Any:
        content = None if document is None else json.dumps(document)
        url = f"{self.endpoint}/_microburst/{path}"
        headers = {"Content-Type": "application/json"}
        with httpx.Client(trust_env=False, timeout=_CALL_S) as client:
            answer = client.request(method, url, content=content, headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else None

"""The operators' log: what a person is about to do, before it is done, and what came of it after.

The rule that it protects: what cannot be written down is not done. It holds GUIDs, states, codes
and reasons; no amount, no reference, no body.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from cli.aws_errors import explain
from cli.exits import CommandError

_NOT_IN_A_STREAM: Final = str.maketrans(":*", "__")


class Audit:
    """One command's lines in the operators' log group."""

    def __init__(self, client: Any, group: str, who: str, now_ms: Callable[[], int]) -> None:
        self._client = client
        self._group = group
        self._who = who
        self._now_ms = now_ms
        self._stream = ""

    def intend(self, act: str, **facts: Any) -> str:
        """Write what is about to be done; return the act's id. Raises CommandError: do nothing."""
        act_id = secrets.token_hex(8)
        fault = self._write({"act_id": act_id, "line": "intent", "act": act, **facts})
        if fault:
            raise CommandError(f"nothing was done, since the operators' log took no line: {fault}")
        return act_id

    def tell(self, act_id: str, outcome: str, **facts: Any) -> str | None:
        """Write what came of it; return why that could not be written, None if it was."""
        return self._write({"act_id": act_id, "line": "outcome", "outcome": outcome, **facts})

    def _write(self, line: dict[str, Any]) -> str | None:
        kept = {name: value for name, value in line.items() if value is not None}
        message = json.dumps({"by": self._who, **kept})
        try:
            answer = self._client.put_log_events(
                logGroupName=self._group,
                logStreamName=self._stream or self._make_stream(),
                logEvents=[{"timestamp": self._now_ms(), "message": message}],
            )
        except (BotoCoreError, ClientError) as error:
            return explain(error, "PutLogEvents")
        if answer.get("rejectedLogEventsInfo"):
            return "it takes no line of this time: is this machine's clock right?"
        return None

    def _make_stream(self) -> str:
        day = datetime.fromtimestamp(self._now_ms() / 1000, UTC).strftime("%Y/%m/%d")
        name = f"{day}/{self._who.translate(_NOT_IN_A_STREAM)}/{secrets.token_hex(4)}"
        self._client.create_log_stream(logGroupName=self._group, logStreamName=name)
        self._stream = name
        return name

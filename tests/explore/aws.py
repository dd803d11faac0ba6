"""The boto3 clients of DynamoDB and SQS, on the table and the queues of one world.

Each request is a point at which others may go on, and at which it may be refused, get lost before
or after it took effect, take effect late, or be the last thing that its function does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache
from typing import Any, Final

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.explore.rules import Rules
from tests.explore.scheduler import KILLED, KILLED_AFTER, Actor, Scheduler
from tests.explore.table import Table

WRITE_FAULTS: Final = (
    *(KILLED, KILLED_AFTER, "refused", "throttled"),
    *("lost", "reply_lost", "late"),
)
READ_FAULTS: Final = (KILLED, "refused", "lost")
SEND_FAULTS: Final = (KILLED, KILLED_AFTER, "lost", "reply_lost")
_REFUSALS: Final = {"refused": "AccessDeniedException", "throttled": "ThrottlingException"}
# Nobody switches in these set-ups: a read of the switches meets nobody, and is no point.
CONTROL: Final = {"guid": {"S": "!control"}}
_BAD_REQUEST: Final = 400
_SERVER_FAULT: Final = 500


@dataclass(eq=False)
class Message:
    """A message of a queue; nobody sees it while its holder lives."""

    body: str
    attributes: Mapping[str, Any]
    sent_ms: int
    holder: Actor | None = None

    @property
    def is_seen(self) -> bool:
        """Whether a receiver gets it now."""
        return self.holder is None or self.holder.is_over


@dataclass(eq=False)
class Aws:
    """What the hub's clients of one world stand on."""

    table: Table
    scheduler: Scheduler
    rules: Rules
    now_ms: Callable[[], int]
    reads_index_at_points: bool
    on_write: Callable[[], None]
    queues: dict[str, list[Message]] = field(default_factory=dict)
    late: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    lates: int = 0
    writes: int = 0

    # --- The clients ---

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Read a row."""
        return self._read("get_item", request)

    def query(self, **request: Any) -> dict[str, Any]:
        """Query the index."""
        return self._read("query", request)

    def scan(self, **request: Any) -> dict[str, Any]:
        """Scan the table."""
        return self._read("scan", request)

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Put a row."""
        return self._write("put_item", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Update a row."""
        return self._write("update_item", request)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        """Delete a row."""
        return self._write("delete_item", request)

    def send_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803 - boto3's own name
        MessageBody: str,  # noqa: N803 - the same
        MessageAttributes: Mapping[str, Any] | None = None,  # noqa: N803 - the same
    ) -> dict[str, Any]:
        """Send a message."""
        how = self.scheduler.point(f"send_message {QueueUrl}", SEND_FAULTS)
        if how != "lost":
            self.put_message(QueueUrl, MessageBody, MessageAttributes)
        if how == KILLED_AFTER:
            self.scheduler.stop_current()
        if how in {"lost", "reply_lost"}:
            raise ReadTimeoutError(endpoint_url="queue")
        return {}

    # --- The queues ---

    def put_message(
        self,
        queue: str,
        body: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        sent_ms: int | None = None,
    ) -> None:
        """Put a message into a queue; it bears the time of now, or that of its first sending."""
        sent_ms = self.now_ms() if sent_ms is None else sent_ms
        self.queues.setdefault(queue, []).append(Message(body, attributes or {}, sent_ms))

    def receive(self, queue: str, count: int) -> list[Message]:
        """Receive messages for the current actor."""
        found = [each for each in self.queues.get(queue, ()) if each.is_seen][:count]
        for each in found:
            each.holder = self.scheduler.current
        return found

    def acknowledge(self, queue: str, message: Message) -> None:
        """Delete a message that its receiver took; if that gets lost, it comes again."""
        if self.scheduler.point(f"delete_message {queue}", ("lost",)) != "lost":
            self.queues[queue].remove(message)

    # --- Requests to the table ---

    def apply_late(self, place: int) -> None:
        """Let a write take effect that its sender has given up."""
        call, operation, request = self.late.pop(place)
        self.scheduler.tell_of_environment(f"{call} takes effect")
        try:
            self._apply(operation, request)
        except ClientError:
            self.scheduler.tell(call, "too late")

    def _read(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        is_control = request.get("Key") == CONTROL
        if (operation == "get_item" and not is_control) or self.reads_index_at_points:
            call = f"{operation} {_place(request)}"
            how = self.scheduler.point(call, READ_FAULTS, about=_guid(request))
            if how == "refused":
                raise _refusal(how, self.now_ms())
            if how == "lost":
                raise ReadTimeoutError(endpoint_url="table")
        self.rules.looked()
        answer = getattr(self.table, operation)(**request)
        return {**answer, "ResponseMetadata": {"HTTPHeaders": _date(self.now_ms())}}

    def _write(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        call = f"{operation} {event_of(request) or _place(request)}"
        how = self.scheduler.point(call, WRITE_FAULTS, about=_guid(request))
        if how in _REFUSALS:
            raise _refusal(how, self.now_ms())
        if how in {"lost", "late"}:
            if how == "late":
                self.lates += 1
                late = f"late write {self.lates} ({call} {_guid(request)})"
                self.late.append((late, operation, request))
            raise ReadTimeoutError(endpoint_url="table")
        answer, refusal = self._apply_or_refuse(operation, request)
        if how == KILLED_AFTER:
            self.scheduler.stop_current()
        if how == "reply_lost":
            raise _server_fault()
        if refusal is not None:
            raise _conflict(refusal, self.now_ms())
        return {**answer, "ResponseMetadata": {"HTTPHeaders": _date(self.now_ms())}}

    def _apply_or_refuse(
        self, operation: str, request: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the answer, or else what the error says: an error kept would keep its frames."""
        try:
            return self._apply(operation, request), None
        except ClientError as error:
            self.scheduler.amend("the row is another")
            return {}, error.response  # type: ignore[return-value]

    def _apply(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        guid = (request.get("Key") or request["Item"])["guid"]["S"]
        self.rules.looked()
        self.writes += 1
        old = self.table.items.get(guid)
        answer: dict[str, Any] = getattr(self.table, operation)(**request)
        if not guid.startswith("!"):
            self.rules.written(guid, old, self.table.items.get(guid), _event(request))
            self.on_write()
        return answer


def event_of(request: Mapping[str, Any]) -> str | None:
    """Return the name of what a write does with a row; None for the project's own rows."""
    if found := _event(request):
        return found
    changes = request.get("UpdateExpression", "")
    if "#processing_at = " in changes:
        return "processing_seen"
    return "backed_off" if "due_at = " in changes else None


def _event(request: Mapping[str, Any]) -> str | None:
    """Return the step that the write adds to the history."""
    if "Item" in request:
        history = request["Item"].get("history", {"L": []})["L"]
    else:
        values = request.get("ExpressionAttributeValues", {}).values()
        history = [each for value in values for each in value.get("L", ())]
    return history[-1]["M"]["event"]["S"] if history else None


def _guid(request: Mapping[str, Any]) -> str:
    """Return the GUID that the request is about; none for the project's own rows and for many."""
    guid = (request.get("Key") or request.get("Item") or {}).get("guid", {}).get("S", "")
    return "" if guid.startswith("!") else str(guid)


def _place(request: Mapping[str, Any]) -> str:
    key = (request.get("Key") or request.get("Item") or {}).get("guid", {}).get("S", "")
    if not key:
        return "the index" if "IndexName" in request else "the table"
    return str(key.partition("#")[0]) if key.startswith("!") else "row"


@cache
def _date_text(second: int) -> str:
    return formatdate(second, usegmt=True)


def _date(ms: int) -> dict[str, str]:
    return {"date": _date_text(ms // 1000)}


def _refusal(how: str, now_ms: int) -> ClientError:
    response: Any = {
        "Error": {"Code": _REFUSALS[how], "Message": "refused"},
        "ResponseMetadata": {"HTTPStatusCode": _BAD_REQUEST, "HTTPHeaders": _date(now_ms)},
    }
    return ClientError(response, "operation")


def _conflict(response: dict[str, Any], now_ms: int) -> ClientError:
    response["ResponseMetadata"]["HTTPHeaders"] = _date(now_ms)
    return ClientError(response, "operation")  # type: ignore[arg-type]


def _server_fault() -> ClientError:
    """Return what the service says when it does not know itself what became of a request."""
    response: Any = {
        "Error": {"Code": "InternalServerError", "Message": "try again"},
        "ResponseMetadata": {"HTTPStatusCode": _SERVER_FAULT},
    }
    return ClientError(response, "operation")

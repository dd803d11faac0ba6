"""The four event handlers under spoilt events, on emulated AWS.

HTTP: always a whole response of the hub's own words. Messages: each record is taken, by a row or
put aside, and none comes again for what it holds. What is no batch or no schedule at all is refused
by an error that says so.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from aws_lambda_powertools.utilities.typing import LambdaContext
from hypothesis import HealthCheck, Phase, given, seed, settings

from functions.purger.handler import handler as purge_handler
from functions.relay.handler import answer
from functions.relay.handler import handler as relay_handler
from functions.relay.messages import NotTakenError, take_all
from functions.relay.messages import handler as messages_handler
from functions.reprocessor.handler import handler as reprocess_handler
from functions.resolver.handler import handler as resolve_handler
from relayhub.http_event import CANCEL, STATUS, SUBMIT, to_response
from relayhub.message_event import UnknownEventError
from relayhub.settings import SettingsError
from tests import openapi_kit
from tests.events import get_event, post_event
from tests.fuzz.mutations import spoilt
from tests.fuzz.tally import Tally
from tests.message_events import accepted_message, kafka_event, kafka_record, sqs_event, sqs_message
from tests.world import World

LEFT_MS: Final = 900_000
PLANTED: Final = "4111-1111"  # It stands in every body; no error may repeat it.
_BODY: Final = b'{"amount":100,"card":"4111-1111"}'
_KEYS: Final = {"statusCode", "headers", "body", "isBase64Encoded"}
_INSIDE: Final = ("Traceback", 'File "', "botocore", "Error(", "object has no", "not subscriptable")
_ROUTES: Final = {
    SUBMIT: ("/transactions", "POST"),
    STATUS: ("/transactions/{guid}", "GET"),
    CANCEL: ("/transactions/{guid}/cancel", "POST"),
}


@dataclass(frozen=True)
class Context:
    """What the platform tells a function of itself."""

    function_name: str = "function"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still live."""
        return LEFT_MS


CONTEXT: Final = cast("LambdaContext", Context())


def _http_samples() -> list[dict[str, Any]]:
    """Return calls as the gateway hands them over: signed, with a token, of every route."""
    token = {"authorizer": {"jwt": {"claims": {"sub": "app", "scope": "x"}, "scopes": ["x"]}}}
    cancelled = {"routeKey": CANCEL, "rawPath": "/transactions/G-1/cancel"}
    elsewhere = {"routeKey": "$default", "rawPath": "/transactions/G-1/x"}
    named = b'{"guid":"G-2","card":"4111-1111"}'
    prefer = {"prefer": "respond-async", "delivery": "deferred"}
    until = {"valid-until": "2030-01-31T18:30:00+09:00", "x-operation": "transfer"}
    return [
        post_event("G-1", _BODY),
        post_event("G-1", _BODY, is_text=True),
        post_event(None, named, is_text=True, headers=until),
        post_event("G-3", _BODY, headers=prefer),
        post_event("G-4", b"0200\xff", headers={"content-type": "application/octet-stream"}),
        {**post_event("G-5", _BODY), "requestContext": token},
        get_event("G-1"),
        get_event("G-1") | cancelled,
        post_event("G-1", _BODY) | elsewhere,
    ]


def _batch_samples() -> list[dict[str, Any]]:
    """Return batches of SQS and Kafka."""
    old = {"first-sent-at": "1799999990000", "x-operation": "transfer"}
    text = _BODY.decode()
    return [
        sqs_event(sqs_message("G-1", text)),
        sqs_event(sqs_message("G-1", text), sqs_message("G-2", text, attributes=old)),
        sqs_event(sqs_message("G-3", text, queue="a.fifo"), accepted_message("G-1")),
        kafka_event([kafka_record("G-1", _BODY)]),
        kafka_event(
            [kafka_record("G-1", _BODY), kafka_record(None, b'{"guid":"G-2"}')],
            [kafka_record("G-3", _BODY, key=None, headers=[("Delivery", b"interactive")])],
        ),
        kafka_event([kafka_record("G-4", _BODY, headers=[("trace", b"\xff")])], source="aws:kafka"),
    ]


def _hint_samples() -> list[dict[str, Any]]:
    hints = ('{"guid":"G-1","attempt":1}', '{"guid":"G-2"}', '{"guid":"G-3","attempt":0}')
    records = [
        {"messageId": f"m-{at}", "body": body, "eventSource": "aws:sqs"}
        for at, body in enumerate(hints)
    ]
    return [{"Records": records[:1]}, {"Records": records}]


def _run_samples() -> list[dict[str, Any]]:
    """Return what a schedule or a person hands to a function that runs by itself."""
    scheduled = {
        "version": "0",
        "source": "aws.scheduler",
        "detail-type": "Scheduled Event",
        "detail": {},
        "resources": ["arn:aws:scheduler:eu-west-1:1:schedule/a/b"],
    }
    return [{}, scheduled, {"dry_run": True}, {"dry_run": True, "min_age_s": 90}]


@dataclass
class Bench:
    """A hub on emulated AWS, and what the fuzz has seen of it."""

    world: World
    tally: Tally = field(default_factory=Tally)

    def http(self, event: Any) -> None:
        """Hand over one HTTP event: a response of the hub's own words, whatever it holds."""
        calls = len(self.world.dynamo.calls), len(self.world.core.sent)
        try:
            reply = to_response(answer(self.world.hub, event, self.world.clock() + 25_000))
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self._found("http", f"raised {type(error).__name__}", event)
            return
        self.tally.saw(f"http {reply['statusCode']}")
        told = self._response("http", event, reply)
        made = len(self.world.dynamo.calls), len(self.world.core.sent)
        if told.get("code") == "E905" and calls != made and "Valid-Until" not in told["detail"]:
            self._found("http", "E905 after the ledger or the core was called", event)

    def deployed_http(self, event: Any) -> None:
        """Hand it to the function itself, whose core is not there."""
        try:
            reply = relay_handler(event, CONTEXT)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self._found("http function", f"raised {type(error).__name__}", event)
            return
        self.tally.saw(f"http function {reply['statusCode']}")
        self._response("http function", event, reply)

    def batch(self, event: Any) -> None:
        """Hand over a batch twice: every record is taken, and nothing is sent twice."""
        for _ in range(2):
            self._taken(
                "batch",
                event,
                lambda: take_all(self.world.hub, event, self.world.clock() + LEFT_MS),
            )
        sent = Counter(each.guid for each in self.world.core.sent)
        if sent and max(sent.values()) > 1:
            self._found("batch", "sent to the core twice", event)

    def deployed_batch(self, event: Any) -> None:
        """Hand it to the message function itself."""
        self._taken("batch function", event, lambda: messages_handler(event, CONTEXT))

    def hints(self, event: Any) -> None:
        """Hand a batch of hints, or what is none, to the reprocessor."""
        self._taken("hints", event, lambda: reprocess_handler(event, CONTEXT))

    def schedule(self, event: Any) -> None:
        """Run the functions that run by themselves."""
        self._taken("resolver", event, lambda: resolve_handler(event, CONTEXT))
        self._taken("purger", event, lambda: purge_handler(event, CONTEXT))

    def _response(self, what: str, event: Any, reply: Mapping[str, Any]) -> dict[str, Any]:
        shape = _shape_faults(reply)
        told = {} if shape else json.loads(base64.b64decode(reply["body"]))
        for fault in shape or _word_faults(event, reply, told):
            self._found(what, fault, event)
        return told

    def _taken(self, what: str, event: Any, run: Callable[[], dict[str, Any]]) -> None:
        try:
            taken = run()
        except (UnknownEventError, SettingsError) as refusal:
            self.tally.saw(f"{what} refused")
            if len(str(refusal)) < 40 or not _is_clean(str(refusal)):
                self._found(what, f"an unclear refusal: {refusal}", event)
            return
        except NotTakenError as error:
            self._found(what, f"a batch that comes again: {error}", event)
            return
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self._found(what, f"raised {type(error).__name__}", event)
            return
        self.tally.saw(f"{what} taken")
        if taken.get("batchItemFailures"):
            self._found(what, "a record that comes again", event)
        if not _is_json(taken):
            self._found(what, "an answer that is no JSON", event)

    def _found(self, what: str, fault: str, event: Any) -> None:
        self.tally.found(f"{what}: {fault}", json.dumps(event, default=str))


def _is_json(value: Any) -> bool:
    try:
        return bool(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return False


def _is_clean(text: str) -> bool:
    return PLANTED not in text and not any(word in text for word in _INSIDE)


def _shape_faults(reply: Mapping[str, Any]) -> list[str]:
    """Return what keeps the gateway from taking the response."""
    if set(reply) != _KEYS or not _is_json(reply):
        return ["no whole response"]
    lines = [*reply["headers"], *reply["headers"].values()]
    checks = {
        "no HTTP status": type(reply["statusCode"]) is int and 200 <= reply["statusCode"] < 600,
        "no header line": all(isinstance(each, str) and each.isprintable() for each in lines),
        "no base64": reply["isBase64Encoded"] is True and isinstance(reply["body"], str),
    }
    return [fault for fault, holds in checks.items() if not holds]


def _word_faults(event: Any, reply: Mapping[str, Any], told: dict[str, Any]) -> list[str]:
    """Return what is wrong with the words, by docs/openapi.yaml where it has the route."""
    status, kind = reply["statusCode"], reply["headers"]["Content-Type"]
    route = event.get("routeKey") if isinstance(event, dict) else None
    path, method = _ROUTES.get(route if isinstance(route, str) else "", (None, ""))
    faults = [] if _is_clean(json.dumps(told)) else ["the answer shows the inside"]
    if told.get("code") == "E901":
        faults.append("an event that cannot be read is told as in doubt")
    if path is None:
        is_refusal = told.get("code") == "E905" and status in {403, 404, 405}
        return faults if is_refusal else [*faults, f"another path is told {status}"]
    schema = openapi_kit.schema_of(path, method, status, kind)
    if schema is None:
        return [*faults, f"{method} {path} {status} {kind} is not written down"]
    named = {name.lower() for name in reply["headers"]} - {"content-type"}
    faults += [f"{method} {path} {status}: {each}" for each in openapi_kit.faults(schema, told)[:1]]
    unknown = named - openapi_kit.headers_of(path, method, status)
    return faults + [f"{method} {path} {status}: the header {name}" for name in sorted(unknown)]


PARTS: Final[Mapping[str, tuple[Callable[[Bench, Any], None], list[dict[str, Any]], float]]] = {
    "http": (Bench.http, _http_samples(), 0.36),
    "http-function": (Bench.deployed_http, _http_samples(), 0.1),
    "batch": (Bench.batch, _batch_samples(), 0.34),
    "batch-function": (Bench.deployed_batch, _batch_samples(), 0.06),
    "hints": (Bench.hints, _hint_samples(), 0.1),
    "schedule": (Bench.schedule, _run_samples(), 0.04),
}


def run(bench: Bench, part: str, *, cases: int, seed_of_run: int) -> None:
    """Hand so many spoilt events of one part to its handler."""
    hand_over, samples, _ = PARTS[part]

    @seed(seed_of_run)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(event=spoilt(samples, kept="requestContext"))
    def play(event: Any) -> None:
        bench.tally.cases += 1
        hand_over(bench, event)

    play()

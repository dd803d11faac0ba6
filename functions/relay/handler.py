"""The relay's HTTP function: event -> flow -> response."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub.flows import cancel, relay
from relayhub.http_event import CANCEL, STATUS, Call, read_call, to_response
from relayhub.hub import Hub, build
from relayhub.message import (
    AlreadyOverError,
    MalformedError,
    MessageRules,
    check_guid,
    read_submission,
)
from relayhub.replies import Reply, of_code
from relayhub.states import Code
from relayhub.telemetry import fault, logger, metrics

hub = build()


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one HTTP API event; whatever goes wrong inside is told as "not confirmed" (E901)."""
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    return to_response(answer(hub, event, dead_at_ms))


def answer(hub: Hub, event: dict[str, Any], dead_at_ms: int) -> Reply:
    """Return the reply to the event."""
    started_ms, call, reply = hub.now_ms(), None, None
    try:
        call = read_call(event, hub.settings.channel_claim)
        reply = call if isinstance(call, Reply) else _serve(hub, call, dead_at_ms)
    except MalformedError as error:
        reply = of_code(Code.E905, None, status=error.status, detail=str(error))
    except Exception as error:  # noqa: BLE001 - the edge: the request may have left, so E901
        fault(error)
        reply = of_code(Code.E901, None)
    hub.note("answered", code=reply.code, status=reply.status, elapsed_ms=hub.now_ms() - started_ms)
    return reply


def _serve(hub: Hub, call: Call, dead_at_ms: int) -> Reply:
    channel = hub.settings.channel_name(call.identity)
    if call.route == STATUS:
        return relay.status(hub, check_guid(call.guid), channel)
    if call.route == CANCEL:
        return cancel.run(hub, check_guid(call.guid), channel)
    rules = MessageRules(
        hub.settings.body_bytes_max, hub.settings.fingerprint_fields, hub.settings.delivery
    )
    try:
        request = read_submission(
            headers=call.headers,
            body=call.body,
            is_text=call.is_text,
            channel=channel,
            rules=rules,
            now_ms=hub.now_ms(),
        )
    except AlreadyOverError as over:
        reply = relay.resume(hub, over.submission, dead_at_ms)
        if reply is None:
            raise
        return reply
    return relay.submit(hub, request, dead_at_ms)

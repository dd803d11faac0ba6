"""The relay's HTTP function: event -> flow -> response."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub.flows import accept, cancel, relay
from relayhub.http_event import (
    STATUS,
    SUBMIT,
    Call,
    prefers_async,
    read_call,
    read_request,
    to_response,
)
from relayhub.hub import Hub, build
from relayhub.message import (
    AlreadyOverError,
    MalformedError,
    Submission,
    check_guid,
    guid_of,
    key_of,
)
from relayhub.replies import Reply, named, of_code
from relayhub.states import Code, Delivery
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
    started_ms, guid = hub.now_ms(), None
    try:
        call = read_call(event, hub.settings.channel_claim)
        if isinstance(call, Reply):
            reply = call
        elif call.route == SUBMIT:
            request, over = read_request(call, hub.settings, hub.now_ms())
            guid = request.guid
            reply = _submit(hub, call, request, over, dead_at_ms)
        else:
            channel = hub.settings.channel_name(call.identity)
            guid = key_of(check_guid(call.guid), channel, hub.settings.guid_scope)
            act = relay.status if call.route == STATUS else cancel.run
            reply = act(hub, guid, channel)
    except MalformedError as error:
        reply = of_code(Code.E905, guid, status=error.status, detail=str(error))
    except Exception as error:  # noqa: BLE001 - the edge: the request may have left, so E901
        fault(error, guid=guid)
        reply = of_code(Code.E901, guid)
    elapsed_ms = hub.now_ms() - started_ms
    hub.note("answered", guid=guid, code=reply.code, status=reply.status, elapsed_ms=elapsed_ms)
    return named(reply, guid_of(guid, hub.settings.guid_scope)) if guid else reply


def _submit(
    hub: Hub, call: Call, request: Submission, over: AlreadyOverError | None, dead_at_ms: int
) -> Reply:
    if over is None:
        # Where a customer waits, the hub sends nothing later: the preference is not applied.
        is_async = prefers_async(call) and request.delivery is Delivery.DEFERRED
        submit = accept.submit if is_async else relay.submit
        return submit(hub, request, dead_at_ms)
    known = relay.resume(hub, request, dead_at_ms)
    if known is None:
        raise over
    return known

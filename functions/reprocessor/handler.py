"""The reprocessor's function: hints from the dead-letter queue, and the sweep on a schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub import telemetry
from relayhub.flows import reprocess
from relayhub.hint_event import failures, read_batch, read_hint
from relayhub.hub import Hub, build
from relayhub.message import MalformedError
from relayhub.message_event import UnknownEventError
from relayhub.upkeep import UpkeepError

hub = build()


@telemetry.logger.inject_lambda_context(clear_state=True)
@telemetry.metrics.log_metrics
@telemetry.wordless(UpkeepError, UnknownEventError)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take a batch of hints, or sweep when the event brings none. Raises UnknownEventError."""
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    records = read_batch(event)
    if records is not None:
        return failures([each["messageId"] for each in records if not take(hub, each, dead_at_ms)])
    swept = reprocess.sweep(hub, dead_at_ms)
    telemetry.swept(swept)
    return vars(swept)


def take(hub: Hub, record: dict[str, Any], dead_at_ms: int) -> bool:
    """Take one message; whatever is wrong with it harms no other. False: it must come again."""
    guid = None
    try:
        hint = read_hint(record.get("body"))
        guid = hint.guid
        taken = reprocess.handle(hub, hint, dead_at_ms)
    except MalformedError as error:
        hub.note("hint_rejected", reason=str(error))
        return hub.hints.put_aside(str(record.get("body")), str(error)) is None
    except Exception as error:  # noqa: BLE001 - the edge of one record
        telemetry.fault(error, guid=guid)
        return False
    hub.note("hint", guid=guid, taken=taken)
    return taken is not reprocess.Taken.GIVEN_BACK

"""The relay's message function: SQS and Kafka events -> flow -> what must come again."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub.flows import intake
from relayhub.hub import Hub, build
from relayhub.message_event import (
    Asked,
    Record,
    UnknownEventError,
    partial_answer,
    read,
    read_batch,
)
from relayhub.telemetry import fault, logger, metrics, wordless

hub = build()


class NotTakenError(Exception):
    """Records of a batch whose source takes no partial answer must come again, with the rest."""


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
@wordless(NotTakenError, UnknownEventError)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the records in order; raises NotTakenError or UnknownEventError for a whole batch."""
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    return take_all(hub, event, dead_at_ms)


def take_all(hub: Hub, event: dict[str, Any], dead_at_ms: int) -> dict[str, Any]:
    """Take what can be; in a lane with an order nothing is taken after what was not."""
    batch = read_batch(event, hub.settings)
    stopped: set[str | None] = set()
    given_back: list[Record] = []
    for record in batch.records:
        if record.lane not in stopped and take(hub, record, dead_at_ms):
            continue
        given_back.append(record)
        stopped |= {record.lane} - {None}
    intake.hasten(hub, given_back, dead_at_ms)
    if given_back and not batch.takes_part:
        raise NotTakenError(
            f"{len(given_back)} of {len(batch.records)} records come again with their batch,"
            f" the first of them {dict(given_back[0].origin)}; the log says why"
        )
    return partial_answer(given_back)


def take(hub: Hub, record: Record, dead_at_ms: int) -> bool:
    """Take one record; whatever is wrong with it harms no other. False: it must come again."""
    asked = _read(hub, record)
    try:
        return intake.take(hub, asked, dead_at_ms) is not intake.Taken.GIVEN_BACK
    except Exception as error:  # noqa: BLE001 - the edge of one record
        fault(error, guid=asked.guid)
        intake.give_back(hub, asked, type(error).__name__)
        return False


def _read(hub: Hub, record: Record) -> Asked:
    """Return what the record asks for; one that breaks the reading is put aside, not given back.

    Nothing was claimed for it yet, and it would break the reading each time it comes.
    """
    try:
        return read(record, hub.settings, hub.now_ms())
    except Exception as error:  # noqa: BLE001 - the edge of one record
        fault(error, guid=None)
        return Asked(record, fault=f"The record could not be read ({type(error).__name__}).")

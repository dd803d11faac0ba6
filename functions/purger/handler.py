"""The purger's function, daily: what is done and past its time goes, the rest is counted."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub import telemetry
from relayhub.flows import purge
from relayhub.hub import build
from relayhub.message_event import UnknownEventError
from relayhub.run_event import read_run
from relayhub.upkeep import UpkeepError

hub = build()


@telemetry.logger.inject_lambda_context(clear_state=True)
@telemetry.metrics.log_metrics
@telemetry.wordless(UpkeepError, UnknownEventError)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Sweep within the time; `{"dry_run": true}` only counts. Raises UnknownEventError."""
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    is_dry = read_run(event).is_dry
    report = purge.run(hub, dead_at_ms, dry_run=is_dry)
    if not is_dry:
        telemetry.purged(report)
    return vars(report)

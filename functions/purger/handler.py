"""The purger's function, daily: what is done and past its time goes, the rest is counted."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub import telemetry
from relayhub.flows import purge
from relayhub.hub import build

hub = build()


@telemetry.logger.inject_lambda_context(clear_state=True)
@telemetry.metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Sweep within the time; `{"dry_run": true}` only counts."""
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    report = purge.run(hub, dead_at_ms, dry_run=event.get("dry_run") is True)
    telemetry.purged(report)
    return vars(report)

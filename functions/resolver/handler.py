"""The resolver's function, on a schedule: what became of the rows in doubt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub import telemetry
from relayhub.flows import resolve
from relayhub.hub import Hub, build
from relayhub.settings import checked

hub = build()


@telemetry.logger.inject_lambda_context(clear_state=True)
@telemetry.metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Handle what is due; the report is the result, for whoever invoked it by hand.

    By hand it takes `{"min_age_s": 90, "dry_run": true}`; a smaller age than may be is refused.
    """
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    report = resolve.run(_as_asked(event), dead_at_ms, dry_run=event.get("dry_run") is True)
    telemetry.resolved(report)
    return vars(report)


def _as_asked(event: dict[str, Any]) -> Hub:
    """Return the hub under the age that the event asks for. Raises SettingsError."""
    if "min_age_s" not in event:
        return hub
    return replace(hub, settings=checked(replace(hub.settings, min_age_s=int(event["min_age_s"]))))

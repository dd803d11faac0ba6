"""The resolver's function, on a schedule: what became of the rows in doubt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relayhub import dynamo, gauges, telemetry
from relayhub.flows import circuit, resolve, survey
from relayhub.hub import Hub, build
from relayhub.message_event import UnknownEventError
from relayhub.run_event import Run, read_run
from relayhub.settings import SettingsError, checked
from relayhub.surveys import Surveys
from relayhub.upkeep import UpkeepError

hub = build()
surveys = Surveys(dynamo.make_client(), hub.settings.table_name)
monitor = gauges.Gauges(gauges.make_client(), telemetry.metrics.namespace)
_LOOK_SHARE = 3  # A look at all that is open may take this part of the time, as one third.


@telemetry.logger.inject_lambda_context(clear_state=True)
@telemetry.metrics.log_metrics
@telemetry.wordless(UpkeepError, SettingsError, UnknownEventError)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Handle what is due; the report is the result, for whoever invoked it by hand.

    By hand it takes `{"min_age_s": 90, "dry_run": true}`; a smaller age than may be is refused.
    """
    dead_at_ms = context.get_remaining_time_in_millis() + hub.now_ms()
    asked = read_run(event)
    if not asked.is_dry:
        # First, and for a part of the time only: a core in trouble uses up the rest.
        look(hub.now_ms() + context.get_remaining_time_in_millis() // _LOOK_SHARE)
    report = resolve.run(_as_asked(asked), dead_at_ms, dry_run=asked.is_dry)
    if not asked.is_dry:
        hub.controls.bind_scope(hub.settings.guid_scope)
        telemetry.resolved(report)
    return vars(report)


def look(until_ms: int) -> None:
    """Tell the alarms what is open now, and how much money is in doubt."""
    found = survey.run(hub, surveys, until_ms)
    telemetry.surveyed(found, core_is_closed=circuit.is_closed(hub))
    fault = monitor.put(survey.gauges(found))
    if fault:
        hub.note("gauges_lost", reason=fault)


def _as_asked(asked: Run) -> Hub:
    """Return the hub under the age that the run asks for. Raises SettingsError."""
    if asked.min_age_s is None:
        return hub
    return replace(hub, settings=checked(replace(hub.settings, min_age_s=asked.min_age_s)))

"""`relayhub core`, `hold-job`, `release-job`: switches that work within seconds, by no deploy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from cli.command import Here
from cli.desk import open_desk, telling
from cli.exits import CommandError, Exit
from cli.functions import Runs, invoke_until_complete, plural
from cli.operator import Operator
from cli.options import OperatorName, Reason
from cli.screen import Screen
from cli.stack import Output
from relayhub.controls import CACHE_MS, Job, Switch, Switches
from relayhub.times import rfc3339

_WITHIN = "within 5 s"
JobName = Annotated[Job, typer.Argument(metavar="JOB", help="resolver or reprocessor.")]


def close_core(here: Here, *, reason: Reason, operator: OperatorName = None) -> Exit:
    """Close the core for a planned stop: within 5 s nothing is sent, and nothing falls into doubt.

    The relay answers E902 at once, deferred rows wait, resolver and reprocessor ask and send
    nothing. What is on its way is let finish. Only `core open` ends it.
    """
    who = Operator.at(here, operator, reason)
    switch = Switch(who.person.name, who.reason, here.now_ms())
    found = _read(who)

    def run() -> bool:
        return who.desk.controls.close_core(switch)

    if found.core is not None and found.core.probe_at is None:
        raise CommandError(f"the core is closed already: {_by(found.core)}", Exit.REFUSED)
    if not _switched(who, "core close", run):
        raise CommandError("another person has closed the core meanwhile", Exit.REFUSED)
    return _end(here, f"the core is closed: {_WITHIN} nothing is sent any more", {"core": "closed"})


def open_core(
    here: Here,
    *,
    reason: Reason,
    operator: OperatorName = None,
    sweep: Annotated[
        bool, typer.Option(help="Have what waits sent at once, by the reprocessor's sweep.")
    ] = True,
) -> Exit:
    """Open the core again, whoever closed it, and have the rows that waited sent.

    The functions send again within 5 s. The sweep hints at the rows that are due by then; the rest
    follows by its schedule.
    """
    who = Operator.at(here, operator, reason)
    if _read(who).core is None:
        raise CommandError("the core is open already", Exit.REFUSED)
    # Whether this call, its first try, or another person opened it: it was closed, and is not now.
    _switched(who, "core open", who.desk.controls.open_core)
    runs = _sweep(here) if sweep else None
    hinted = None if runs is None else runs.total("hinted")
    told = "" if hinted is None else f"; {plural(hinted, 'row')} hinted at"
    end = _end(
        here,
        f"the core is open: {_WITHIN} requests are sent again{told}",
        {"core": "open", "hinted": hinted},
    )
    return tell_held(here, Job.REPROCESSOR) if runs is not None and runs.held else end


def core_status(here: Here) -> Exit:
    """Show the switches: the core and the jobs, who set them, why and when."""
    with telling():
        switches = open_desk(here).controls.read()
    if here.screen.as_json:
        here.screen.document(
            {
                "core": "open" if switches.core is None else "closed",
                "closed": None if switches.core is None else _closed(switches.core, switches),
                "held": {str(job): _document(each) for job, each in switches.held.items()},
                "strikes": switches.strikes,
            }
        )
        return Exit.DONE
    if switches.core is None:
        here.screen.say("the core is open", "green")
    tell_switches(here.screen, switches)
    if switches.strikes:
        calls = plural(switches.strikes, "call")
        here.screen.say(f"{calls} in a row brought no answer")
    return Exit.DONE


def hold_job(here: Here, job: JobName, *, reason: Reason, operator: OperatorName = None) -> Exit:
    """Let a job do nothing, from its next look at the switches on, until it is released."""
    who = Operator.at(here, operator, reason)
    switch = Switch(who.person.name, who.reason, here.now_ms())
    if not _switched(who, f"hold-job {job}", lambda: who.desk.controls.hold_job(job, switch)):
        held = _read(who).held.get(job)
        told = f": {_by(held)}" if held else ""
        raise CommandError(f"the {job} is held already{told}", Exit.REFUSED)
    end = _end(here, f"the {job} is held: {_WITHIN} it does nothing more", {str(job): "held"})
    try:
        sentence = _nobody_asks(_read(who))
    except CommandError as error:
        sentence = f"the {job} is held, but what else is switched off cannot be read: {error}"
    if sentence:
        here.screen.note(sentence)
    return end


def release_job(here: Here, job: JobName, *, reason: Reason, operator: OperatorName = None) -> Exit:
    """Let a held job go on."""
    who = Operator.at(here, operator, reason)
    if job not in _read(who).held:
        raise CommandError(f"the {job} is not held", Exit.REFUSED)
    _switched(who, f"release-job {job}", lambda: who.desk.controls.release_job(job))
    return _end(here, f"the {job} is released", {str(job): "released"})


def tell_switches(screen: Screen, switches: Switches) -> None:
    """Print what is closed or held, if anything is."""
    if switches.core is not None:
        screen.say(f"the core is CLOSED: {_by(switches.core)}", "bold red")
        if switches.core.probe_at is not None:
            _tell_probe(screen, switches.core, switches)
    for job, switch in switches.held.items():
        screen.say(f"the {job} is HELD: {_by(switch)}", "bold red")
    if switches.core is None and (sentence := _nobody_asks(switches)):
        screen.say(sentence, "bold red")


def tell_held(here: Here, job: Job) -> Exit:
    """Tell that a run did nothing, who holds the job, and how it is released; return the end."""
    how = f"`relayhub release-job {job}` lets it go on"
    try:
        with telling():
            held = open_desk(here).controls.read().held.get(job)
    except CommandError as error:
        here.screen.note(
            f"the {job} is held, and did nothing; {how}; by whom is not known: {error}"
        )
        return Exit.PARTLY
    if held is None:
        here.screen.note(
            f"the {job} did nothing: it was held until now, or could not read the switches; give"
            " the command again"
        )
    else:
        here.screen.note(f"the {job} is held, and did nothing: {_by(held)}; {how}")
    return Exit.PARTLY


def _tell_probe(screen: Screen, core: Switch, switches: Switches) -> None:
    if sentence := _nobody_asks(switches):
        screen.say(sentence, "bold red")
    else:
        asked = f"asked from {rfc3339(core.probe_at or 0)} on"
        screen.say(f"it opens by itself when an inquiry is answered, {asked}")


def _asked_by(switches: Switches) -> list[str]:
    """Return the jobs that ask a core which the hub has closed."""
    return [str(job) for job in Job if job not in switches.held]


def _nobody_asks(switches: Switches) -> str | None:
    """Say that a core which the hub closes stays closed; None where a job asks it, or nobody may.

    What a person closed is asked by nobody in any case.
    """
    if _asked_by(switches) or (switches.core is not None and switches.core.probe_at is None):
        return None
    which = "the core that the hub closed" if switches.core else "a core that the hub closes"
    return (
        f"both jobs are held, so nobody asks {which}: it stays closed until `relayhub release-job`"
        " or `relayhub core open`"
    )


def _read(who: Operator) -> Switches:
    with telling():
        return who.desk.controls.read()


def _switched(who: Operator, act: str, run: Callable[[], bool]) -> bool:
    return who.on_record(act, run, lambda done: {"switched": done})


def _sweep(here: Here) -> Runs | None:
    # The reprocessor may know the old word for as long as it keeps what it read.
    here.sleep(CACHE_MS / 1000 + 0.5)
    try:
        return invoke_until_complete(
            *(here, Output.REPROCESSOR, {}),
            doing="sweeping",
            moved=lambda report: report.get("hinted", 0) > 0,
        )
    except CommandError as error:
        here.screen.note(f"the sweep failed, its schedule does it within a minute: {error}")
        return None


def _end(here: Here, sentence: str, document: dict[str, Any]) -> Exit:
    if here.screen.as_json:
        here.screen.document(document)
    else:
        here.screen.say(sentence)
    return Exit.DONE


def _by(switch: Switch) -> str:
    return f"by {switch.by} since {rfc3339(switch.at)} ({switch.reason})"


def _closed(core: Switch, switches: Switches) -> dict[str, Any]:
    asked_by = [] if core.probe_at is None else _asked_by(switches)
    return {**_document(core), "asked_by": asked_by}


def _document(switch: Switch) -> dict[str, Any]:
    probe_at = None if switch.probe_at is None else rfc3339(switch.probe_at)
    return {
        "by": switch.by,
        "reason": switch.reason,
        "at": rfc3339(switch.at),
        "asked_from": probe_at,
    }

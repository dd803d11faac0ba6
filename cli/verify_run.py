"""What `relayhub verify` does: reach the relay and the core, play, show, and end in a code."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import boto3
import httpx
import typer
from botocore.exceptions import BotoCoreError

from cli.aws_errors import explain
from cli.exits import CommandError, Exit
from cli.screen import Screen
from cli.verify import LocalRelay
from local.core_client import CoreControl, ServerError
from local.stack import StackError
from local.stack_process import ending_in_order
from verify import catalogue, report
from verify.core import Core
from verify.plants import Plant
from verify.plants.hub import hub_plant
from verify.plants.naive import naive_plant
from verify.plants.powertools import powertools_plant
from verify.play import Limits, Table
from verify.run import Outcome, Runner, make_pool
from verify.scenario import Need, Scenario
from verify.wire import Caller, SigV4

_LOGS: Final = Path(__file__).resolve().parent.parent / ".local" / "logs" / "verify"
_REFUSED_STATUSES: Final = frozenset({401, 403})

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Where:
    """The relay, the core's control port and the identities, as the options say."""

    url: str
    core: str
    local: LocalRelay | None
    sigv4: bool
    region: str | None
    profiles: tuple[str | None, str | None]
    headers: tuple[tuple[str, ...], tuple[str, ...]]
    answer_s: float


@dataclass(frozen=True)
class Asked:
    """What is to be played, and how patiently; no names mean all."""

    only: tuple[str, ...]
    settle_s: float
    late_s: float
    clients: int


@dataclass(frozen=True)
class Reached:
    """A relay that answers, by one identity or two, and its core."""

    name: str
    relay: Caller
    second: Caller | None
    control_url: str
    plant: Plant | None = None


def end(where: Where, asked: Asked, *, show: bool, as_json: bool) -> Exit:
    """Do what was asked for, and return the exit code; errors are one sentence on stderr."""
    screen = Screen(as_json=as_json)
    try:
        if show:
            return _show_catalogue(screen)
        _check(where, asked)
        with ending_in_order(), ExitStack() as owned, screen.working("starting") as tell:
            reached = owned.enter_context(_reached(where, tell))
            outcomes, missing = _grade(reached, asked, owned, tell)
        return _show(screen, reached.name, outcomes, missing)
    except CommandError as error:
        screen.fail(str(error))
        return error.code
    except (StackError, ServerError, httpx.HTTPError) as error:
        screen.fail(f"{type(error).__name__}: {error}")
        return Exit.FAILED
    except KeyboardInterrupt:
        screen.fail("interrupted; the core was left without faults")
        return Exit.INTERRUPTED


def _check(where: Where, asked: Asked) -> None:
    unknown = catalogue.unknown(asked.only)
    if unknown:
        known = "`relayhub verify --list` names them"
        raise CommandError(f"--only {unknown[0]}: there is no such scenario; {known}", Exit.REFUSED)
    if where.local is not None and (where.url or where.core):
        raise CommandError("--local starts its own relay and core: no --url, --core", Exit.REFUSED)
    if where.local is None and not (where.url and where.core):
        raise CommandError(
            "name the relay by --url and its core by --core, or use --local", Exit.REFUSED
        )


@contextmanager
def _reached(where: Where, tell: Tell) -> Iterator[Reached]:
    if where.local is not None:
        with _plant(where.local, tell) as plant:
            yield Reached(plant.name, plant.relay, plant.second, plant.control_url, plant)
        return
    relay = _caller(where, 0)
    has_second = any((where.profiles[1], where.headers[1]))
    second = _caller(where, 1) if has_second else None
    try:
        _probe(relay)
        yield Reached(where.url, relay, second, where.core)
    finally:
        relay.close()
        if second:
            second.close()


def _plant(relay: LocalRelay, tell: Tell) -> AbstractContextManager[Plant]:
    match relay:
        case LocalRelay.HUB:
            return hub_plant(_LOGS, tell)
        case LocalRelay.NAIVE:
            return naive_plant(_LOGS, tell)
        case LocalRelay.POWERTOOLS:
            return powertools_plant(_LOGS, tell)


def _caller(where: Where, which: int) -> Caller:
    lines = [_line(each) for each in where.headers[which]]
    signing = None
    if where.sigv4 or where.profiles[which]:
        signing = _signing(where.profiles[which], where.region)
    return Caller(where.url, headers=lines, signing=signing, within_s=where.answer_s)


def _line(option: str) -> tuple[str, str]:
    name, mark, value = option.partition("=")
    if not (name and mark):
        raise CommandError(f"the header {option!r}: write NAME=VALUE", Exit.REFUSED)
    return name, value


def _signing(profile: str | None, region: str | None) -> SigV4:
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
        found = session.get_credentials()
    except BotoCoreError as error:
        raise CommandError(explain(error, "signing"), Exit.REFUSED) from error
    if found is None:
        raise CommandError("no AWS credentials were found to sign with", Exit.REFUSED)
    if not session.region_name:
        raise CommandError("no AWS region is set: name it by --region", Exit.REFUSED)
    return SigV4(found, session.region_name)


def _probe(relay: Caller) -> None:
    answer = relay.send("GET", "/transactions/verify-probe")
    if answer.status == 0:
        raise CommandError(f"nobody answers at {relay.url}", Exit.REFUSED)
    if answer.status in _REFUSED_STATUSES:
        raise CommandError(
            f"{relay.url} refuses this caller ({answer.status}): sign by --sigv4, or name headers",
            Exit.REFUSED,
        )


def _grade(
    reached: Reached, asked: Asked, owned: ExitStack, tell: Tell
) -> tuple[list[Outcome], Counter[Need]]:
    control = CoreControl(reached.control_url)
    owned.callback(control.close)
    try:
        control.health()
    except (httpx.HTTPError, ValueError) as error:
        said = f"no local core answers at {reached.control_url} ({type(error).__name__})"
        raise CommandError(said, Exit.REFUSED) from error
    limits = Limits(asked.settle_s, asked.late_s, asked.clients)
    if reached.plant:
        limits = replace(limits, clients=min(limits.clients, reached.plant.clients))
    scenarios = catalogue.chosen(
        asked.only,
        has_second=reached.second is not None,
        has_processes=reached.plant is not None,
    )
    if not scenarios:
        raise CommandError("none of these scenarios can be played on this relay", Exit.REFUSED)
    return _played(reached, control, limits, scenarios, tell), _missing(asked, scenarios)


def _played(
    reached: Reached,
    control: CoreControl,
    limits: Limits,
    scenarios: Sequence[Scenario],
    tell: Tell,
) -> list[Outcome]:
    core = Core(control)
    core.clear()
    with make_pool(limits) as pool:
        table = Table(
            run_id=secrets.token_hex(4),
            relay=reached.relay,
            second=reached.second,
            core=core,
            limits=limits,
            pool=pool,
            plant=reached.plant,
        )
        return Runner(table, on_scenario=tell).run(scenarios)


def _missing(asked: Asked, played: Sequence[Scenario]) -> Counter[Need]:
    return Counter() if asked.only else catalogue.left_out(played)


def _show(screen: Screen, relay: str, outcomes: list[Outcome], missing: Counter[Need]) -> Exit:
    verdict = report.last_line(outcomes)
    if screen.as_json:
        screen.document(
            report.document(outcomes, relay, {str(need): count for need, count in missing.items()})
        )
        typer.echo(verdict, err=True)
    else:
        screen.table(report.HEADS, report.rows(outcomes))
        for need, count in missing.items():
            screen.note(f"{count} scenarios were not played: they need {need}")
        doubled = report.doubled(outcomes)
        screen.say(f"{relay}: the core executed {doubled} GUIDs more than once")
        screen.say(verdict)
    return Exit.DONE if report.passed(outcomes) == len(outcomes) else Exit.FAILED


def _show_catalogue(screen: Screen) -> Exit:
    if screen.as_json:
        keys = ("id", "name", "expects", "case", "need")
        rows = [{key: getattr(each, key) for key in keys} for each in catalogue.ALL]
        screen.document({"scenarios": rows})
    else:
        heads = ("scenario", "what happens", "what is right")
        screen.table(heads, [(each.id, each.name, each.expects) for each in catalogue.ALL])
    return Exit.DONE

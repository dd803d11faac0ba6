"""Starts the stack's processes in order and ends them in the reverse order, whatever happens."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from local.channels import (
    Channel,
    Identity,
    allow,
    channel_for,
    create_identity,
    invoke_statement,
)
from local.emulator import Emulator
from local.fault_proxy import FaultProxy
from local.ports import LOOPBACK, PortError, free_ports, is_listening, wait_until_listening
from local.stack_deploy import Deployed, DeployError, Deployment, template_of
from local.stack_operator import operator_statement
from local.stack_process import Child

ROOT: Final = Path(__file__).resolve().parent.parent
CHANNELS: Final = ("atm", "app")
OPERATOR: Final = "operator"
API: Final = "AWS::ApiGatewayV2::Api"
# For those who do not want to wait 20 s for each answer that never comes, and minutes for each
# doubt to be believed. Their relations hold: the relay's timeout holds the core's deadline, the
# margin (4 s) and a second or two for a machine that is busy.
SHORT_LIMITS: Final[Mapping[str, str]] = {
    "CoreDeadlineS": "3",
    "CoreConnectS": "2",
    "RelayTimeoutS": "9",
    "CoreLongestS": "4",
    "ClockSkewS": "1",
    "MinAgeS": "5",
    "NotFoundApartS": "1",
    "InquiryBackoffMinS": "1",
    "InquiryBackoffMaxS": "5",
    "ProbeS": "2",
    "UnknownAgeMs": "1000",
    # Runs by hand meet those of the schedule; that both are safe at once is what is shown.
    "ResolverConcurrency": "-1",
}
# Where the local core's requests say which money moves.
MONEY: Final = {"amount": "/amount", "currency": "/currency", "reference": "/reference"}
_CORE_START_S: Final = 15.0
# Each process of a function unpacks its zip: 400 files. On a disk, unpacking takes five times as
# long, and deleting them all at the end took 38 s once. Below 1 GB it could get full: a container
# often has 64 MB there.
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
_STATE_BYTES_MIN: Final = 1 << 30


class StackError(Exception):
    """The stack could not be started; the message says what to do, or names the log."""


@dataclass(frozen=True)
class StackConfig:
    """How to start a stack: where everything is, which ports (None: free ones), which limits."""

    build: Path = ROOT / ".aws-sam" / "build"
    sam_python: Path = ROOT / ".venv-sam" / "bin" / "python"
    ministack: Path = ROOT / ".venv-stack" / "bin" / "ministack"
    fault_proxy: Path = ROOT / ".venv" / "bin" / "microburst"
    logs: Path = ROOT / ".local" / "logs"
    port: int | None = None
    core_port: int | None = None
    core_control_port: int | None = None
    # Whether a fault proxy stands between the functions and AWS; then no role is enforced.
    has_faults: bool = False
    # The template's parameters that differ from its defaults. CoreUrl, ChannelNames and, for the
    # local core's bodies, MoneyFields are added.
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parts:
    """What was started."""

    emulator: Emulator
    core: Child
    core_url: str
    control_url: str
    journal: Path
    deployed: Deployed
    identities: Mapping[str, Identity]
    timings_s: Mapping[str, float]
    faults: FaultProxy | None = None


@contextmanager
def started(config: StackConfig, on_step: Callable[[str], None]) -> Iterator[Parts]:
    """Start everything, yield it, and end it; raises StackError."""
    with ExitStack() as owned:
        try:
            parts = _start(config, owned, _Clock(on_step))
        except (PortError, DeployError) as error:
            raise StackError(str(error)) from error
        yield parts


class _Clock:
    """Says each step as it begins and keeps how long it took; seconds."""

    def __init__(self, on_step: Callable[[str], None]) -> None:
        self.timings_s: dict[str, float] = {}
        self._on_step = on_step

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._on_step(name)
        begun = time.monotonic()
        yield
        self.timings_s[name] = time.monotonic() - begun


def _start(config: StackConfig, owned: ExitStack, clock: _Clock) -> Parts:
    _check(config)
    port, core_port, control_port = _ports(config)
    state = _make_state()
    owned.callback(shutil.rmtree, state, ignore_errors=True)
    journal = config.logs / "core-journal.jsonl"
    with clock.step("emulator and core"):
        faults = _start_faults(config, owned, port) if config.has_faults else None
        emulator = Emulator.start(
            config.ministack,
            port=port,
            state=state,
            log=config.logs / "emulator.log",
            for_functions=faults.endpoint if faults else "",
        )
        owned.callback(emulator.child.stop)
        core = _start_core(config, core_port, control_port, journal)
        owned.callback(core.stop)
        _wait(emulator, core, (core_port, control_port))
        if faults:
            faults.warm()
    with clock.step("identities"):
        identities = {name: create_identity(emulator, name) for name in (*CHANNELS, OPERATOR)}
    core_url = f"http://{LOOPBACK}:{core_port}"
    with clock.step("sam deploy"):
        deployed = _deploy(config, emulator, state, core_url, identities)
    with clock.step("permissions"):
        _permit(emulator, deployed, identities)
    with clock.step("first call"):
        _call_once(channel_for(identities[CHANNELS[0]], deployed.only(API), port))
    control_url = f"http://{LOOPBACK}:{control_port}"
    return Parts(
        emulator,
        core,
        core_url,
        control_url,
        journal,
        deployed,
        identities,
        clock.timings_s,
        faults,
    )


def _start_faults(config: StackConfig, owned: ExitStack, upstream_port: int) -> FaultProxy:
    faults = FaultProxy.start(
        config.fault_proxy,
        port=free_ports(1)[0],
        upstream=f"http://{LOOPBACK}:{upstream_port}",
        log=config.logs / "fault-proxy.log",
    )
    owned.callback(faults.child.stop)
    faults.wait()
    return faults


def _make_state() -> Path:
    """Make the folder for everything that ends with the stack, in memory if there is room."""
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _STATE_BYTES_MIN
    return Path(tempfile.mkdtemp(prefix="relayhub-", dir=_MEMORY if has_room else None))


def _check(config: StackConfig) -> None:
    for path in (config.sam_python, config.ministack):
        if not path.exists():
            raise StackError(f"{path} is missing: run `make setup`")
    if not (config.build / "template.yaml").exists():
        raise StackError(f"nothing is built in {config.build}: run `make build`")


def _ports(config: StackConfig) -> tuple[int, int, int]:
    wanted = (config.port, config.core_port, config.core_control_port)
    for port in wanted:
        if port is not None and is_listening(port):
            raise StackError(
                f"port {port} on {LOOPBACK} is taken: stop what uses it, or name another"
            )
    chosen = [port or free for port, free in zip(wanted, free_ports(len(wanted)), strict=True)]
    return chosen[0], chosen[1], chosen[2]


def _start_core(config: StackConfig, port: int, control_port: int, journal: Path) -> Child:
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.unlink(missing_ok=True)
    command: list[str | Path] = [
        *(sys.executable, "-m", "local.core"),
        *("--port", str(port), "--control-port", str(control_port), "--journal", journal),
    ]
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    return Child.start("core", command, log=config.logs / "core.log", env=env, cwd=ROOT)


def _wait(emulator: Emulator, core: Child, core_ports: tuple[int, ...]) -> None:
    try:
        emulator.wait()
        for port in core_ports:
            wait_until_listening(port, alive=core.is_running, within_s=_CORE_START_S)
    except PortError as error:
        logs = "\n".join(f"{each.log} ends in:\n{each.tail()}" for each in (emulator.child, core))
        raise StackError(f"{error}\n{logs}") from error


def _deploy(
    config: StackConfig,
    emulator: Emulator,
    state: Path,
    core_url: str,
    identities: Mapping[str, Identity],
) -> Deployed:
    names = {identities[name].user_id: name for name in CHANNELS}
    own = {
        "CoreUrl": core_url,
        "ChannelNames": json.dumps(names, separators=(",", ":")),
        "MoneyFields": json.dumps(MONEY, separators=(",", ":")),
    }
    known = template_of(config.build)["Parameters"]
    parameters = {name: value for name, value in own.items() if name in known}
    return Deployment(
        python=config.sam_python,
        build=config.build,
        log=config.logs / "deploy.log",
        parameters=parameters | dict(config.parameters),
    ).run(emulator, state)


def _permit(emulator: Emulator, deployed: Deployed, identities: Mapping[str, Identity]) -> None:
    api_id = deployed.only(API)
    for name in CHANNELS:
        allow(emulator, identities[name], [invoke_statement(api_id)])
    allow(emulator, identities[OPERATOR], [operator_statement()])


def _call_once(channel: Channel) -> None:
    """Ask for a state that nobody knows; raises StackError when the relay does not even start."""
    reply = channel.status("first-call")
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        said = reply.body.decode(errors="replace")
        raise StackError(f"the relay does not answer: status {reply.status}, {said}")

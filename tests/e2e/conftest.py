"""One local stack for all end-to-end tests of a worker, and a core without faults for each."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from local.channels import Channel
from local.core_client import CoreControl
from local.stack import SHORT_LIMITS, Stack, StackConfig
from local.stack_process import ending_in_order
from local.stack_start import ROOT

LOGS = ROOT / ".local" / "logs" / "e2e"
SESSION = LOGS / f"session-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
MONEY = {"MoneyFields": '{"amount":"/amount","currency":"/currency"}'}


def _is_built() -> bool:
    """Say whether the zips are there and as new as what they are made of."""
    template = StackConfig().build / "template.yaml"
    folders = (ROOT / "relayhub", ROOT / "functions", ROOT / "requirements")
    sources = [path for folder in folders for path in folder.rglob("*.*") if path.suffix != ".pyc"]
    sources += [ROOT / "template.yaml", ROOT / "Makefile"]
    return template.exists() and template.stat().st_mtime >= max(
        path.stat().st_mtime for path in sources
    )


@pytest.fixture(scope="session")
def built() -> None:
    """Build the functions' zips, unless that was done."""
    if not _is_built():
        subprocess.run(["make", "build"], cwd=ROOT, check=True)  # noqa: S607


@pytest.fixture(scope="session")
def stack(built: None) -> Iterator[Stack]:
    """Return the running stack; its logs are in .local/logs/e2e."""
    del built
    config = StackConfig(logs=SESSION, parameters={**SHORT_LIMITS, **MONEY})
    with ending_in_order(), Stack.running(config) as running:
        yield running


@pytest.fixture(scope="session")
def core_control(stack: Stack) -> Iterator[CoreControl]:
    """Return the client of the core's control port."""
    control = CoreControl(stack.control_url)
    yield control
    control.close()


@pytest.fixture
def core(core_control: CoreControl) -> Iterator[CoreControl]:
    """Return the core's control; the core has no faults before and after."""
    core_control.clear()
    yield core_control
    core_control.clear()


@pytest.fixture
def atm(stack: Stack) -> Channel:
    """Return a channel."""
    return stack.atm


@pytest.fixture
def app(stack: Stack) -> Channel:
    """Return another channel."""
    return stack.app

"""A pytest plugin that writes down which tests failed, and how; a test counts that fails twice.

One that fails and then passes met the machine and not the mutant. Each failure is one line of JSON:
the test, its phase ("collect" for a file that could not even be read), and the error's first line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol  # As pytest-rerunfailures does: there is no other way.

PLACE: Final = "MUTANTS_WITNESS"  # The variable that names the file.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run the test; if it fails, once more, and let the second run count."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
        if report.failed:
            _write(report.nodeid, str(report.when), report.longrepr)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write down a file that could not be read: that is no test's verdict."""
    if report.failed:
        _write(report.nodeid, "collect", report.longrepr)


def _write(test: str, phase: str, shown: object) -> None:
    crash = getattr(shown, "reprcrash", None)
    error = str(crash.message if crash else shown).strip().partition("\n")[0]
    with Path(os.environ[PLACE]).open("a") as file:
        file.write(json.dumps({"test": test, "phase": phase, "error": error}) + "\n")

"""A run that proves nothing fails, whatever the test runner's exit code was."""

from pathlib import Path

import pytest

from tools import closing

PASSED = '<testcase classname="t" name="a"/>'
FAILED = '<testcase classname="t" name="b"><failure message="no"/></testcase>'
BROKEN = '<testcase classname="t" name="c"><error message="no"/></testcase>'
EXCUSED = '<testcase classname="t" name="d"><skipped message="needs Linux"/></testcase>'
SKIPPED = '<testcase classname="t" name="e"><skipped message="no time"/></testcase>'


def report(folder: Path, *cases: str) -> str:
    """Write a report of the cases, and return its path."""
    path = folder / "report.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return str(path)


@pytest.mark.parametrize(
    ("cases", "line", "code"),
    [
        pytest.param([PASSED], "tests: 1 passed, 0 failed, 0 skipped", 0, id="passed"),
        pytest.param([PASSED, EXCUSED], "tests: 1 passed, 0 failed, 1 skipped", 0, id="excused"),
        pytest.param([PASSED, FAILED], "tests: 1 passed, 1 failed, 0 skipped", 1, id="failed"),
        pytest.param([PASSED, BROKEN], "tests: 1 passed, 1 failed, 0 skipped", 1, id="error"),
        pytest.param([PASSED, SKIPPED], "tests: 1 passed, 0 failed, 1 skipped", 1, id="skipped"),
        pytest.param([EXCUSED], "tests: 0 passed, 0 failed, 1 skipped", 1, id="only-skipped"),
        pytest.param([], "tests: 0 passed, 0 failed, 0 skipped", 1, id="nothing"),
    ],
)
def test_the_closing_line_counts_and_judges(
    cases: list[str], line: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a run in which something passed, nothing failed and no skip lacks a reason is good."""
    assert closing.main([report(tmp_path, *cases)]) == code
    assert capsys.readouterr().out.splitlines()[-1] == line


def test_a_missing_report_fails_the_run(tmp_path: Path) -> None:
    """A suite that did not run is not a suite that passed."""
    assert closing.main([report(tmp_path, PASSED), str(tmp_path / "absent.xml")]) == 1


def test_an_empty_report_fails_beside_a_full_one(tmp_path: Path) -> None:
    """Tests of one suite do not stand in for those of another."""
    (tmp_path / "other").mkdir()
    assert closing.main([report(tmp_path, PASSED), report(tmp_path / "other")]) == 1

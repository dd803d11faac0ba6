"""What a person is told when something is wrong: one sentence, what to do, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ReadTimeoutError,
    TokenRetrievalError,
)
from typer.testing import CliRunner

from cli.app import app
from tests.emulated import FaultyClient, client, fails
from tests.integration.cli_kit import PURGER, Terminal, make_stack
from tests.world import World

COMMANDS = (
    *(("resolve",), ("reprocess",), ("reprocess", "G-1"), ("purge",)),
    ("redrive-messages",),
)


def client_error(code: str, message: str = "because") -> ClientError:
    """Return what boto3 raises when AWS refuses an invoke."""
    return ClientError({"Error": {"Code": code, "Message": message}}, "Invoke")


@pytest.fixture
def terminal(world: World) -> Terminal:
    """Return a command line at a stack whose functions give what a test says."""
    make_stack(world.queue_url)
    return Terminal(world.clock)


def purged(terminal: Terminal, outcome: Any) -> tuple[int, str]:
    """Run a purge whose function gives the outcome; return the exit code and the one line."""
    terminal.functions.functions[PURGER] = [outcome]
    result = terminal.run("purge")
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "Traceback" not in line
    return result.exit_code, line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (client_error("AccessDeniedException"), "docs/cli.md lists the permissions"),
        (client_error("ExpiredTokenException"), "does not accept these credentials"),
        (client_error("UnrecognizedClientException"), "does not accept these credentials"),
        (client_error("TooManyRequestsException"), "try again in a minute"),
        (
            client_error("ResourceNotFoundException"),
            "AWS answered with an error: Invoke: ResourceNotFound",
        ),
        (ReadTimeoutError(endpoint_url="https://aws"), "it is safe to ask again"),
        (TokenRetrievalError(provider="sso", error_msg="old"), "log in to AWS again"),
        (BotoCoreError(), "invoke failed"),
    ],
    ids=["denied", "expired", "unknown key", "busy", "gone", "no answer", "logged out", "other"],
)
def test_an_error_of_aws_is_one_sentence_that_says_what_to_do(
    terminal: Terminal, error: Exception, said: str
) -> None:
    """Exit code 1, nothing on stdout, no traceback."""
    code, line = purged(terminal, error)
    assert code == 1
    assert said in line


def test_an_error_with_line_breaks_is_still_one_line(terminal: Terminal) -> None:
    """Some of AWS's messages have several lines; a log takes one."""
    _, line = purged(terminal, client_error("Odd", "one\n  two\n"))
    assert "Odd: one two" in line


@pytest.mark.parametrize("result", [b"", b"null", b"[]", b"{broken", b"\xff"])
def test_what_is_no_report_is_told(terminal: Terminal, result: bytes) -> None:
    """Another function behind the name, or another version."""
    code, line = purged(terminal, result)
    assert code == 1
    assert f"the function {PURGER} gave no report" in line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("the table cannot be read"), "failed (the table cannot be read)"),
        (RuntimeError("Task timed out after 60.00 seconds"), "reached its time limit"),
        (RuntimeError(""), "failed (RuntimeError)"),
    ],
    ids=["raised", "timed out", "silent"],
)
def test_a_function_that_failed_is_told_with_its_log(
    terminal: Terminal, error: Exception, said: str
) -> None:
    """Its own message, that it is safe to run again, and where to read more."""

    def function(_: dict[str, Any]) -> None:
        raise error

    terminal.functions.functions[PURGER] = function
    result = terminal.run("purge")
    assert result.exit_code == 1
    assert said in result.stderr
    assert f"aws logs tail /aws/lambda/{PURGER}" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_interrupt_ends_the_command_and_tells_what_runs_on(terminal: Terminal) -> None:
    """Ctrl-C stops the waiting, not the function."""
    code, line = purged(terminal, KeyboardInterrupt())
    assert code == 130
    assert "runs on to its end" in line


def test_a_fault_of_the_program_itself_is_a_sentence_too(terminal: Terminal) -> None:
    """Whatever it is: no traceback, since its values could be a customer's."""
    code, line = purged(terminal, {"scanned": "many", "complete": True})
    assert code == 1
    assert "relayhub itself is at fault (ValueError" in line


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_stack_that_is_not_there_is_refused(
    world: World, terminal: Terminal, words: tuple[str, ...]
) -> None:
    """The name may be wrong, or the account, or the region."""
    del world
    result = terminal.run(*words, "--stack", "another")
    assert result.exit_code == 2
    assert "there is no stack another in this account and region" in result.stderr
    assert terminal.functions.calls == []


def test_a_stack_of_something_else_is_told(world: World) -> None:
    """It lacks what the template promises."""
    make_stack(world.queue_url, without="PurgerFunctionName", name="older")
    result = Terminal(world.clock).run("purge", "--stack", "older")
    assert result.exit_code == 1
    assert "the stack older has no output PurgerFunctionName" in result.stderr


def test_a_stack_that_may_not_be_looked_at_is_told(terminal: Terminal) -> None:
    """The first call that a command makes may be denied like any other."""
    terminal.clients["cloudformation"] = faulty = FaultyClient(client("cloudformation"))
    faulty.faults["describe_stacks"] = [fails(client_error("AccessDenied"))]
    result = terminal.run("purge")
    assert result.exit_code == 1
    assert "docs/cli.md" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stack", "a b"), "is no name of a stack"),
        (("--stack", ""), "is no name of a stack"),
        (("--endpoint-url", "127.0.0.1:4566"), "write http://HOST:PORT"),
        (("--endpoint-url", "ftp://x"), "write http://HOST:PORT"),
        (("--endpoint-url", "http://x/path"), "write http://HOST:PORT"),
        (("--endpoint-url", "http://a_b..c:x"), "--endpoint-url"),
        (("--profile", "nobody"), "`aws configure list-profiles`"),
        (("--region", "no where"), "no where"),
    ],
    ids=["stack", "no stack", "no scheme", "ftp", "path", "no host", "profile", "region"],
)
def test_an_option_that_cannot_be_is_bad_usage(words: tuple[str, ...], said: str) -> None:
    """Exit code 2, before anything is asked of AWS."""
    result = CliRunner().invoke(app, ["purge", *words])
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("AWS_DEFAULT_REGION", "no AWS region is set"),
        ("AWS_SECRET_ACCESS_KEY", "no AWS credentials were found"),
    ],
)
def test_a_machine_without_aws_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str, said: str
) -> None:
    """No profile, no variables: the sentence names both ways."""
    monkeypatch.delenv(missing)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    result = CliRunner().invoke(app, ["purge"])
    assert result.exit_code in {1, 2}
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1

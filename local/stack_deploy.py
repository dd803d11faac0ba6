"""Deploys what `make build` built, by the SAM CLI, to the emulator; then adds what it leaves out.

The template is not changed for this machine: the command is the one that deploys to AWS, only the
endpoint differs. The emulator ignores a few properties; they are read from the built template and
set through the API, so that they stay in one place.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from local.emulator import REGION, ROOT, Emulator
from local.stack_adjust import adjust
from local.stack_process import Child

STACK_NAME: Final = "relayhub"
# SAM brings the zips here. A bucket of its own spares the stack that --resolve-s3 would create.
_UPLOADS: Final = "relayhub-local-uploads"
_DEPLOY_S: Final = 120
# SAM's own default is to look every 5 s, which is most of the time that a local deploy takes.
_POLL_S: Final = "0.05"
_STATUS_COMPLETE: Final = "CREATE_COMPLETE"


class DeployError(Exception):
    """The template could not be deployed; the message holds the end of the log."""


@dataclass(frozen=True)
class Deployed:
    """What the stack is made of: physical names by logical ids, and which type each is of."""

    names: Mapping[str, str]
    types: Mapping[str, str]
    outputs: Mapping[str, str]
    adjusted: tuple[str, ...] = ()

    def only(self, kind: str) -> str:
        """Return the name of the stack's only resource of a type; raises DeployError."""
        found = self.all_of(kind)
        if len(found) != 1:
            raise DeployError(f"expected one {kind} in the stack, found {len(found)}")
        return next(iter(found.values()))

    def all_of(self, kind: str) -> dict[str, str]:
        """Return the names of all resources of a type, by logical id."""
        return {each: name for each, name in self.names.items() if self.types[each] == kind}


@dataclass(frozen=True)
class Deployment:
    """One deployment: from which build, by which SAM CLI, with which parameters."""

    python: Path
    build: Path
    log: Path
    parameters: Mapping[str, str]

    def run(self, emulator: Emulator, state: Path) -> Deployed:
        """Deploy, and return what there is now; raises DeployError."""
        emulator.client("s3").create_bucket(
            Bucket=_UPLOADS, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        # An empty configuration: the project's own asks questions and names another bucket.
        config = state / "samconfig.toml"
        config.write_text("version = 0.1\n")
        child = Child.start(
            "sam deploy",
            self._command(config),
            log=self.log,
            env=_environment(emulator, state),
            cwd=state,
        )
        self._finish(child)
        deployed = _describe(emulator)
        template = template_of(self.build)
        return replace(
            deployed, adjusted=adjust(emulator, template, deployed.names, self.parameters)
        )

    def _command(self, config: Path) -> list[str | Path]:
        overrides = [
            f"ParameterKey={name},ParameterValue={_quoted(value)}"
            for name, value in self.parameters.items()
        ]
        chosen: list[str | Path] = ["--parameter-overrides", *overrides] if overrides else []
        return [
            *(self.python, "-m", "samcli", "deploy"),
            *("--stack-name", STACK_NAME, "--config-file", config),
            *("--template-file", self.build / "template.yaml", "--s3-bucket", _UPLOADS),
            *("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"),
            *("--no-confirm-changeset", "--no-progressbar", "--disable-rollback"),
            *chosen,
        ]

    def _finish(self, child: Child) -> None:
        try:
            code = child.wait(_DEPLOY_S)
        except subprocess.TimeoutExpired:
            raise DeployError(f"sam deploy took over {_DEPLOY_S} s; see {self.log}") from None
        finally:
            child.stop()
        if code:
            raise DeployError(
                f"sam deploy ended with exit code {code}; {self.log} ends in:\n{child.tail()}"
            )


def template_of(build: Path) -> dict[str, Any]:
    """Return the built template, its intrinsic functions in their long form."""
    document = yaml.safe_load((build / "template.yaml").read_text())
    if not isinstance(document, dict):
        raise DeployError(f"{build / 'template.yaml'} is no template")
    return document


def _quoted(value: str) -> str:
    """Return a parameter's value as SAM's own parser reads it back."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _environment(emulator: Emulator, state: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(state),
        "TMPDIR": str(state),
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_DEFAULT_REGION": REGION,
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": _POLL_S,
        **ROOT.as_environment(),
    }


def _describe(emulator: Emulator) -> Deployed:
    client = emulator.client("cloudformation")
    stack = client.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
    if stack["StackStatus"] != _STATUS_COMPLETE:
        raise DeployError(f"the stack is {stack['StackStatus']}")
    resources = client.describe_stack_resources(StackName=STACK_NAME)["StackResources"]
    return Deployed(
        names={each["LogicalResourceId"]: each["PhysicalResourceId"] for each in resources},
        types={each["LogicalResourceId"]: each["ResourceType"] for each in resources},
        outputs={each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())},
    )

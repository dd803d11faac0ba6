"""Writes what SAM makes of the template, so that cfn-lint sees the resources that are deployed.

Runs in the SAM environment. It may import samtranslator and the standard library only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class _NoPolicies:
    """Stands in for the list of managed policies that SAM would ask IAM for."""

    def load(self) -> dict[str, str]:
        """Return no policy: the template writes its roles out."""
        return {}


def transformed(source: str, parameters: Mapping[str, str]) -> Any:
    """Return the plain CloudFormation template that SAM makes of the source and the parameters."""
    template = yaml_parse(source)
    # SAM takes code from S3 only; any address will do, nothing is uploaded.
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    # No other value is possible then: so the linter knows which conditions hold.
    for name, value in parameters.items():
        template["Parameters"][name] |= {"AllowedValues": [value], "Default": value}
    return transform(template, dict(parameters), _NoPolicies())


def main(source: str, target: str, *overrides: str) -> None:
    """Transform one file into another; the overrides are parameters, as `Name=value`."""
    parameters = dict(each.split("=", 1) for each in overrides)
    result = json.dumps(transformed(Path(source).read_text(), parameters), indent=2, default=str)
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(result + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

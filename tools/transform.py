"""Writes what SAM makes of the template, so that cfn-lint sees the resources that are deployed.

Runs in the SAM environment. It may import samtranslator and the standard library only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class _NoPolicies:
    """Stands in for the list of managed policies that SAM would ask IAM for."""

    def load(self) -> dict[str, str]:
        """Return no policy: the template writes its roles out."""
        return {}


def transformed(source: str) -> Any:
    """Return the plain CloudFormation template that SAM makes of the source."""
    template = yaml_parse(source)
    # SAM takes code from S3 only; any address will do, nothing is uploaded.
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    return transform(template, {}, _NoPolicies())


def main(source: str, target: str) -> None:
    """Transform one file into another."""
    result = json.dumps(transformed(Path(source).read_text()), indent=2, default=str)
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(result + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What every test stands on: its environment, and a hub on emulated AWS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.environment import ENVIRONMENT
from tests.world import World, aws

__all__ = ["ENVIRONMENT", "aws"]


@pytest.fixture
def world(aws: None) -> World:
    """Return a hub on emulated AWS with a scripted core and a clock that stands still."""
    del aws
    return World()


@pytest.fixture
def make_world(aws: None) -> Callable[..., World]:
    """Return a maker of such a hub under other settings."""
    del aws

    def make(**changes: Any) -> World:
        return World(**changes)

    return make

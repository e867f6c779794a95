"""Kafka's directories for the tests of the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import kafka_tiered as kafka_tiered
from tests.remote.fsck.world import World, make_world


@pytest.fixture
def world(kafka_tiered: Path, tmp_path: Path) -> World:
    return make_world(kafka_tiered, tmp_path)

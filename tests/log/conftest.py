from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import kafka_classic as kafka_classic
from tests.golden import kafka_tiered as kafka_tiered
from tests.golden import kafka_unclean as kafka_unclean
from tests.log.harness import LogHarness


@pytest.fixture
def harness(tmp_path: Path) -> LogHarness:
    """An empty log with default settings."""
    made = LogHarness(tmp_path / "data")
    made.create()
    return made

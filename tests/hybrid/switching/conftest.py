"""Switches stay where they are as long as the test wants."""

from __future__ import annotations

import pytest

from strandline.remote.manager.copying import CopyTask
from strandline.remote.manager.jobs import Look


@pytest.fixture(autouse=True)
def nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes stay on the disk, so that their topics stay MIGRATING. A module whose tests copy them overrides this."""
    monkeypatch.setattr(CopyTask, "look", lambda _: Look.IDLE)

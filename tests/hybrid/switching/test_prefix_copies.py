"""The prefix of a switched partition goes to remote storage at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.controlplane.values import MigrationState
from strandline.hybrid.remote.topics import is_open_tier
from tests.hybrid.switching.world import switching_broker


@pytest.fixture
def nothing_is_copied() -> None:
    """These tests are about copies."""


async def test_a_prefix_is_copied_without_waiting_for_the_next_regular_look(tmp_path: Path) -> None:
    """That would be an hour later. By default, whoever switches a small topic would wait for 30 seconds."""
    async with switching_broker(tmp_path) as one:
        await one.create("orders", records=1)
        tier, replica = one.broker.tiered.storage, one.replica("orders")
        assert is_open_tier(tier)
        replica.log.roll()
        tier.manager.reconsider(replica.id)
        await one.until(lambda: tier.remote_bytes(replica) > 0)
        await one.append("orders")
        await one.flag("orders", is_diskless=True)
        await one.until(lambda: (known := one.known("orders")) is not None and known.state is MigrationState.HYBRID)
        known = one.known("orders")
        assert known is not None
        assert (known.b0, known.tiered_high, known.problem) == (2, 1, "")

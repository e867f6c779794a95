"""Levels of features: which changes are legal, and what holds in a cluster that never chose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.errors import InvalidRequest, InvalidUpdateVersion
from strandline.metadata import FeatureUpgrade, FeatureWish, features
from strandline.metadata.features import (
    GROUP_VERSION,
    METADATA_VERSION,
    REPLICATED,
    SUPPORTED_FEATURES,
    TRANSACTION_VERSION,
    announced_features,
    finalized_level,
)
from strandline.metadata.image import FeatureSupport
from tests.metadata.cluster import Cluster, open_cluster, registration

UP, SAFE, UNSAFE = FeatureUpgrade.UPGRADE, FeatureUpgrade.SAFE_DOWNGRADE, FeatureUpgrade.UNSAFE_DOWNGRADE


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "ANNOUNCED_FEATURES", tuple(SUPPORTED_FEATURES))


async def update(cluster: Cluster, *wishes: tuple[str, int, int], validate_only: bool = False) -> None:
    wanted = [FeatureWish(name=name, level=level, upgrade=upgrade) for name, level, upgrade in wishes]
    await cluster.controller.update_features(wanted, validate_only)


async def test_a_new_cluster_records_only_what_is_not_the_default() -> None:
    async with open_cluster() as cluster:
        assert cluster.image.administered.feature_levels == {METADATA_VERSION: REPLICATED}
        assert (finalized_level(cluster.image, TRANSACTION_VERSION), finalized_level(cluster.image, GROUP_VERSION)) == (
            2,
            1,
        )


@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
async def test_a_level_goes_down_and_up_again(kind: FeatureUpgrade) -> None:
    async with open_cluster() as cluster:
        await update(cluster, (TRANSACTION_VERSION, 0, kind))
        assert finalized_level(cluster.image, TRANSACTION_VERSION) == 0
        await update(cluster, (TRANSACTION_VERSION, 1, UP))
        assert finalized_level(cluster.image, TRANSACTION_VERSION) == 1


@pytest.mark.parametrize(
    "wish",
    [
        (TRANSACTION_VERSION, 1, UP),
        (TRANSACTION_VERSION, 3, UP),
        (TRANSACTION_VERSION, -1, SAFE),
        (GROUP_VERSION, 0, 0),
        (GROUP_VERSION, 0, 4),
        ("metadata.version", 1, UP),
    ],
)
async def test_illegal_levels_are_refused_with_everything_else_in_the_request(wish: tuple[str, int, int]) -> None:
    async with open_cluster() as cluster:
        other = GROUP_VERSION if wish[0] != GROUP_VERSION else TRANSACTION_VERSION
        before = cluster.image
        with pytest.raises(InvalidUpdateVersion):
            await update(cluster, (other, 0, SAFE), wish)
        assert cluster.image is before


async def test_going_up_is_no_downgrade() -> None:
    async with open_cluster() as cluster:
        await update(cluster, (GROUP_VERSION, 0, SAFE))
        with pytest.raises(InvalidUpdateVersion):
            await update(cluster, (GROUP_VERSION, 1, UNSAFE))


async def test_what_changes_nothing_writes_nothing() -> None:
    async with open_cluster() as cluster:
        before = cluster.image
        await update(cluster, (GROUP_VERSION, 1, UP), (TRANSACTION_VERSION, 2, SAFE))
        await update(cluster, (GROUP_VERSION, 0, SAFE), validate_only=True)
        assert cluster.image is before
        with pytest.raises(InvalidRequest):
            await update(cluster, (GROUP_VERSION, 0, SAFE), (GROUP_VERSION, 0, SAFE))


async def test_only_what_is_announced_can_be_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "ANNOUNCED_FEATURES", (GROUP_VERSION,))
    assert announced_features() == {GROUP_VERSION: SUPPORTED_FEATURES[GROUP_VERSION]}
    async with open_cluster() as cluster:
        with pytest.raises(InvalidUpdateVersion):
            await update(cluster, (TRANSACTION_VERSION, 1, SAFE))


async def test_every_registered_broker_has_to_support_the_level() -> None:
    async with open_cluster() as cluster:
        known = (FeatureSupport(TRANSACTION_VERSION, 0, 1), FeatureSupport(METADATA_VERSION, REPLICATED, REPLICATED))
        old = replace(registration(2), features=known)
        await cluster.controller.register_broker(old)
        await update(cluster, (TRANSACTION_VERSION, 1, SAFE))
        await update(cluster, (GROUP_VERSION, 0, SAFE))  # a feature that a broker does not know is at 0 for it
        for wish in ((TRANSACTION_VERSION, 2, UP), (GROUP_VERSION, 1, UP)):
            with pytest.raises(InvalidUpdateVersion, match="Broker 2"):
                await update(cluster, wish)
        await cluster.controller.unregister_broker(2)
        await update(cluster, (TRANSACTION_VERSION, 2, UP))

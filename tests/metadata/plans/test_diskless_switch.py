"""Every way to ask an existing topic to become diskless, or to stop being diskless, is refused, by one rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from strandline.errors import InvalidConfig
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    ConfigResource,
    ConfigResourceType,
)
from strandline.metadata.plans.diskless_switch import DISKLESS_FLAG, with_diskless_flag
from tests.metadata.cluster import open_cluster

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
ON, OFF = {DISKLESS_FLAG: "true"}, {DISKLESS_FLAG: "false"}
TIERED = {"remote.storage.enable": "true"}
TIERING = {"remote.log.storage.system.enable": "true"}


def altered(value: str | None) -> ConfigAlteration:
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    return ConfigAlteration(resource=TOPIC, changes=(ConfigChange(DISKLESS_FLAG, operation, value),))


def replaced(**values: str) -> ConfigReplacement:
    return ConfigReplacement(resource=TOPIC, values={name.replace("_", "."): value for name, value in values.items()})


@pytest.mark.parametrize("validate_only", [False, True], ids=["for good", "validated"])
@pytest.mark.parametrize(
    ("before", "wish"),
    [
        ({}, altered("true")),
        (OFF, altered("true")),
        (TIERED, altered("true")),
        ({"cleanup.policy": "compact"}, altered("true")),
        (ON, altered("false")),
        (ON, altered(None)),
        ({}, replaced(diskless_enable="true")),
        (TIERED, replaced(diskless_enable="true")),
        (TIERED, replaced(diskless_enable="true", remote_storage_enable="true")),
        (ON, replaced(diskless_enable="false")),
    ],
)
async def test_the_flag_of_a_topic_is_not_changed(
    before: Mapping[str, str], wish: ConfigAlteration | ConfigReplacement, *, validate_only: bool
) -> None:
    async with open_cluster(properties=TIERING) as cluster:
        await cluster.create("t", configs=before)
        if isinstance(wish, ConfigAlteration):
            (answer,) = await cluster.controller.alter_configs([wish], validate_only=validate_only)
        else:
            (answer,) = await cluster.controller.replace_configs([wish], validate_only=validate_only)
        assert isinstance(answer, InvalidConfig)
        assert str(answer).startswith("diskless.enable of t cannot be changed: ")
        assert cluster.image.topic_overrides("t") == before


@pytest.mark.parametrize(
    ("before", "ask"),
    [
        ({}, lambda: altered("false")),
        ({}, lambda: altered(None)),
        (OFF, lambda: altered(None)),
        (ON, lambda: altered("TRUE")),
    ],
)
async def test_the_value_that_it_has_may_be_written_in_another_way(
    before: Mapping[str, str], ask: Callable[[], ConfigAlteration]
) -> None:
    async with open_cluster() as cluster:
        await cluster.create("t", configs=before)
        assert await cluster.controller.alter_configs([ask()]) == [None]


def test_a_replacement_without_the_flag_keeps_it() -> None:
    assert with_diskless_flag(ON, {"retention.ms": "5"}) == {**ON, "retention.ms": "5"}
    assert with_diskless_flag(ON, OFF) == OFF
    assert with_diskless_flag({}, {"retention.ms": "5"}) == {"retention.ms": "5"}

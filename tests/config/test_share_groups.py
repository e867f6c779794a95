"""Settings of the members of share groups: limits of the broker, and what a group may set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.config.describe import ConfigSource, describe_group
from strandline.config.group import validate_group_overrides
from strandline.config.groups import GroupSettings
from strandline.config.settings import Settings
from strandline.config.share_groups import ShareGroupSettings, share_membership
from strandline.errors import InvalidConfig


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"group_share_session_timeout_ms": 70_000},
            r"group\.share\.session\.timeout\.ms must be from .*\(45000\) to .*\(60000\), but is 70000",
        ),
        ({"group_share_heartbeat_interval_ms": 1}, r"group\.share\.heartbeat\.interval\.ms must be from"),
        ({"group_share_assignment_interval_ms": 20_000}, r"group\.share\.assignment\.interval\.ms must be from"),
        (
            {"group_share_heartbeat_interval_ms": 50_000, "group_share_max_heartbeat_interval_ms": 50_000},
            r"group\.share\.session\.timeout\.ms \(45000\) must be greater than",
        ),
    ],
)
def test_settings_that_contradict_each_other(changes: dict[str, Any], sentence: str) -> None:
    ShareGroupSettings().check()
    with pytest.raises(InvalidConfig, match=sentence):
        replace(ShareGroupSettings(), **changes).check()


def test_what_a_group_sets_is_kept_within_the_limits_of_the_broker() -> None:
    settings = ShareGroupSettings()
    assert share_membership({}, settings).share_session_timeout_ms == 45_000
    config = share_membership(
        {"share.session.timeout.ms": "50000", "share.heartbeat.interval.ms": "1", "other": "x"}, settings
    )
    assert (config.share_session_timeout_ms, config.share_heartbeat_interval_ms) == (50_000, 5000)
    assert config.share_assignment_interval_ms == 1000


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"share.session.timeout.ms": "1000"}, r"share\.session\.timeout\.ms must be from 45000 to 60000"),
        ({"share.heartbeat.interval.ms": "many"}, r"share\.heartbeat\.interval\.ms must be"),
        ({"share.sessions": "1"}, r"share\.sessions is not a group setting"),
    ],
)
def test_what_a_group_may_not_set(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        validate_group_overrides(overrides, GroupSettings(), ShareGroupSettings())


def test_a_session_is_longer_than_the_pause_between_heartbeats() -> None:
    settings = replace(ShareGroupSettings(), group_share_max_heartbeat_interval_ms=50_000)
    with pytest.raises(InvalidConfig, match=r"share\.session\.timeout\.ms \(45000\) must be greater than"):
        validate_group_overrides({"share.heartbeat.interval.ms": "50000"}, GroupSettings(), settings)
    validate_group_overrides(
        {"share.heartbeat.interval.ms": "50000", "share.session.timeout.ms": "60000"}, GroupSettings(), settings
    )


def test_groups_are_described_with_the_settings_of_the_broker_behind_their_own() -> None:
    settings = Settings.from_properties({"group.share.heartbeat.interval.ms": "6000"})
    entries = {one.name: one for one in describe_group(settings, {"share.session.timeout.ms": "50000"})}
    own, inherited = entries["share.session.timeout.ms"], entries["share.heartbeat.interval.ms"]
    assert (own.value, own.source) == ("50000", ConfigSource.DYNAMIC_GROUP_CONFIG)
    assert (inherited.value, inherited.source) == ("6000", ConfigSource.STATIC_BROKER_CONFIG)
    assert "consumer.session.timeout.ms" in entries


def test_a_setting_that_only_groups_have_shows_its_default_behind_its_own() -> None:
    """As Kafka 4.3.1 does; kafka-configs prints these synonyms."""
    name = "share.auto.offset.reset"
    for overrides, values in (({}, ["latest"]), ({name: "earliest"}, ["earliest", "latest"])):
        (entry,) = describe_group(Settings.from_properties({}), overrides, [name])
        assert [one.value for one in entry.synonyms] == values
        assert entry.synonyms[-1].source is ConfigSource.DEFAULT_CONFIG

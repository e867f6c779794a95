"""Settings of one share group: limits of the broker, and where a group begins to read."""

from __future__ import annotations

import pytest

from strandline.config import Settings
from strandline.config.share_group import (
    ShareGroupConfig,
    reset_age_ms,
    share_group_config,
    validate_share_group_overrides,
)
from strandline.config.sharing import ShareSettings
from strandline.errors import InvalidConfig


def test_a_group_has_the_settings_of_the_broker_but_for_its_own() -> None:
    broker = ShareSettings(group_share_record_lock_duration_ms=20_000)
    assert share_group_config({}, ShareSettings()) == ShareGroupConfig()
    found = share_group_config({"share.delivery.count.limit": "3", "share.isolation.level": "read_committed"}, broker)
    assert (found.share_record_lock_duration_ms, found.share_delivery_count_limit) == (20_000, 3)
    assert found.reads_committed


def test_a_value_beyond_the_limits_of_the_broker_counts_as_the_limit_and_cannot_be_set() -> None:
    overrides = {"share.record.lock.duration.ms": "90000"}
    assert share_group_config(overrides, ShareSettings()).share_record_lock_duration_ms == 60_000
    with pytest.raises(InvalidConfig, match=r"must be from 15000 to 60000"):
        validate_share_group_overrides(overrides, ShareSettings())


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("latest", 0),
        ("EARLIEST", None),
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2M3.5S", 86_523_500),
        ("by_duration:PT0S", 0),
    ],
)
def test_where_a_group_begins_to_read(text: str, age: int | None) -> None:
    assert reset_age_ms(text) == age
    validate_share_group_overrides({"share.auto.offset.reset": text}, ShareSettings())


@pytest.mark.parametrize("text", ["", "none", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H"])
def test_where_no_group_can_begin(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"share\.auto\.offset\.reset must be"):
        validate_share_group_overrides({"share.auto.offset.reset": text}, ShareSettings())


def test_unknown_names_and_contradictions_are_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"did you mean share\.isolation\.level"):
        validate_share_group_overrides({"share.isolation.levels": "x"}, ShareSettings())
    with pytest.raises(InvalidConfig, match=r"group\.share\.record\.lock\.duration\.ms must be from"):
        Settings.from_properties({"group.share.record.lock.duration.ms": "2000"})

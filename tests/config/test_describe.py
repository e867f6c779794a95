"""DescribeConfigs: values, sources, and synonyms in Kafka's order."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from strandline.config import Settings
from strandline.config.declare import SettingKind
from strandline.config.describe import (
    ConfigEntry,
    ConfigSource,
    describe_broker,
    describe_cluster_default,
    describe_topic,
)
from strandline.config.settings import DATA_PLACES


def _one(entries: Iterable[ConfigEntry], name: str) -> ConfigEntry:
    (entry,) = [entry for entry in entries if entry.name == name]
    return entry


def _synonyms(entry: ConfigEntry) -> list[tuple[str, str | None, str]]:
    return [(synonym.name, synonym.value, synonym.source.name) for synonym in entry.synonyms]


def test_a_topic_setting_lists_every_place_it_could_come_from() -> None:
    settings = Settings.from_properties({"log.segment.bytes": "2000000"}).with_dynamic(
        {"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"}
    )
    entry = _one(describe_topic(settings, {"segment.bytes": "5000000"}), "segment.bytes")
    assert (entry.value, entry.source, entry.kind) == ("5000000", ConfigSource.DYNAMIC_TOPIC_CONFIG, SettingKind.INT)
    assert _synonyms(entry) == [
        ("segment.bytes", "5000000", "DYNAMIC_TOPIC_CONFIG"),
        ("log.segment.bytes", "4000000", "DYNAMIC_BROKER_CONFIG"),
        ("log.segment.bytes", "3000000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("log.segment.bytes", "2000000", "STATIC_BROKER_CONFIG"),
        ("log.segment.bytes", "1073741824", "DEFAULT_CONFIG"),
    ]


def test_a_default_says_so() -> None:
    entry = _one(describe_topic(Settings.from_properties({}), {}), "segment.bytes")
    assert entry.source is ConfigSource.DEFAULT_CONFIG
    assert not entry.read_only
    assert _synonyms(entry) == [("log.segment.bytes", "1073741824", "DEFAULT_CONFIG")]


def test_a_value_that_comes_from_another_unit_has_no_synonyms_as_in_kafka() -> None:
    settings = Settings.from_properties({"log.retention.hours": "1"})
    entry = _one(describe_topic(settings, {}), "retention.ms")
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", ConfigSource.DEFAULT_CONFIG, ())


def test_other_units_follow_the_one_that_wins() -> None:
    settings = Settings.from_properties({"log.retention.ms": "5", "log.retention.minutes": "6"})
    assert _synonyms(_one(describe_topic(settings, {}), "retention.ms")) == [
        ("log.retention.ms", "5", "STATIC_BROKER_CONFIG"),
        ("log.retention.minutes", "6", "STATIC_BROKER_CONFIG"),
        ("log.retention.hours", "168", "DEFAULT_CONFIG"),
    ]


def test_names_choose_entries_and_unknown_ones_are_left_out() -> None:
    settings = Settings.from_properties({})
    assert [entry.name for entry in describe_topic(settings, {}, ["retention.ms", "nope", "cleanup.policy"])] == [
        "cleanup.policy",
        "retention.ms",
    ]
    assert [entry.name for entry in describe_broker(settings, ["node.id"])] == ["node.id"]


def test_internal_settings_are_shown_only_where_they_are_set() -> None:
    settings = Settings.from_properties({})
    assert "internal.segment.bytes" not in {entry.name for entry in describe_topic(settings, {})}
    entry = _one(describe_topic(settings, {"internal.segment.bytes": "9"}), "internal.segment.bytes")
    assert entry.value == "9"
    assert "log.initial.task.delay.ms" not in {entry.name for entry in describe_broker(settings)}


def test_a_broker_tells_what_can_be_changed_and_hides_what_is_secret() -> None:
    url = "postgresql://me:pa55word@host/db"
    entries = describe_broker(Settings.from_properties({"strandline.metadata.url": url, "log.roll.ms": "4"}))
    assert _one(entries, "node.id").read_only
    assert not _one(entries, "log.segment.bytes").read_only
    secret = _one(entries, "strandline.metadata.url")
    assert (secret.value, secret.is_sensitive, secret.kind) == (None, True, SettingKind.PASSWORD)
    assert all("pa55word" not in str(entry) for entry in entries)
    assert _synonyms(_one(entries, "log.roll.ms")) == [
        ("log.roll.ms", "4", "STATIC_BROKER_CONFIG"),
        ("log.roll.hours", "168", "DEFAULT_CONFIG"),
    ]


@pytest.mark.parametrize("name", sorted(DATA_PLACES - {"strandline.metadata.url"}))
def test_places_below_the_data_directory_are_described_as_they_are(name: str) -> None:
    place = {"log.dirs": "/d/logs", "strandline.objects.url": "file:///d/objects", "rsm.config.url": "file:///d/remote"}
    entry = _one(describe_broker(Settings.from_properties({"strandline.data.dir": "/d"})), name)
    assert (entry.value, entry.source) == (place[name], ConfigSource.STATIC_BROKER_CONFIG)
    assert _synonyms(entry)[0] == (name, place[name], "STATIC_BROKER_CONFIG")
    entry = _one(describe_broker(Settings.from_properties({})), name)
    assert entry.source is ConfigSource.DEFAULT_CONFIG


def test_an_address_with_a_password_that_the_data_directory_stands_for_is_not_shown() -> None:
    entry = _one(describe_broker(Settings.from_properties({"strandline.data.dir": "/d"})), "strandline.metadata.url")
    assert (entry.value, entry.source) == (None, ConfigSource.STATIC_BROKER_CONFIG)


def test_the_cluster_default_has_only_settings_that_are_set() -> None:
    settings = Settings.from_properties({"log.roll.ms": "4"}).with_dynamic(
        {"log.roll.ms": "5"}, {"log.roll.ms": "6", "log.segment.bytes": "3000000"}
    )
    (entry,) = describe_cluster_default(settings)
    assert (entry.name, entry.value, _synonyms(entry)) == (
        "log.roll.ms",
        "5",
        [("log.roll.ms", "5", "DYNAMIC_DEFAULT_BROKER_CONFIG")],
    )
    assert describe_cluster_default(settings, ["log.segment.bytes"]) == []


def test_every_entry_explains_itself() -> None:
    settings = Settings.from_properties({})
    for entry in (*describe_broker(settings), *describe_topic(settings, {})):
        assert entry.documentation.endswith(".")

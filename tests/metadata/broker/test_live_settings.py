"""The settings of a broker follow the metadata, which may say what this version cannot use."""

from __future__ import annotations

from dataclasses import replace

from strandline.config import Settings
from strandline.metadata import EMPTY_IMAGE, ConfigResource, ConfigResourceType, MetadataImage
from strandline.metadata.broker.live_settings import LiveSettings

STATIC = Settings.from_properties({"log.retention.ms": "1000"})
NAME = "log.retention.ms"


class Newest:
    """`Images` with one that tests exchange."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE

    def say(self, **of_brokers: str) -> None:
        """What the metadata says: `all` of every broker, `broker_1` of that one; `topic` of a topic."""
        resources = {
            "all": ConfigResource(ConfigResourceType.BROKER, ""),
            "broker_1": ConfigResource(ConfigResourceType.BROKER, "1"),
            "topic": ConfigResource(ConfigResourceType.TOPIC, "t"),
        }
        names = {"topic": "retention.ms"}
        configs = {resources[key]: {names.get(key, NAME): value} for key, value in of_brokers.items()}
        self.image = replace(EMPTY_IMAGE, configs=configs)


def test_the_properties_hold_until_the_metadata_is_followed() -> None:
    images = Newest()
    settings = LiveSettings(STATIC, 1, images)
    images.say(all="2000")
    assert settings.current() is STATIC
    assert settings.follow() == ()
    assert settings.current() is settings.now
    assert settings.topic_config("t").retention_ms == 2000


def test_what_is_said_of_this_broker_goes_before_what_is_said_of_all() -> None:
    images = Newest()
    images.say(all="2000", broker_1="3000")
    mine, other = LiveSettings(STATIC, 1, images), LiveSettings(STATIC, 2, images)
    mine.follow()
    other.follow()
    assert [one.topic_config("t").retention_ms for one in (mine, other)] == [3000, 2000]


def test_a_topic_has_its_own_settings_as_soon_as_the_metadata_has_them() -> None:
    images = Newest()
    settings = LiveSettings(STATIC, 1, images)
    images.say(topic="4000")
    assert settings.topic_config("t").retention_ms == 4000
    assert settings.topic_config("u").retention_ms == 1000


def test_a_change_of_something_else_changes_no_settings() -> None:
    images = Newest()
    images.say(all="2000")
    settings = LiveSettings(STATIC, 1, images)
    settings.follow()
    before = settings.now
    images.say(all="2000", topic="5000")
    assert settings.follow() == ()
    assert settings.now is before


def test_a_setting_that_cannot_be_used_is_told_and_the_others_hold() -> None:
    images = Newest()
    images.say(all="nothing", broker_1="3000")
    settings = LiveSettings(STATIC, 1, images)
    (sentence,) = settings.follow()
    assert NAME in sentence
    assert settings.topic_config("t").retention_ms == 3000

"""Whether a topic that exists may become diskless, or stop being diskless: in this version, neither.

The only place that refuses a change of the flag. Every request that changes settings of a topic passes here first:
IncrementalAlterConfigs and AlterConfigs, with validate_only or without. Not here: which other settings a diskless topic
may have (`config.rules`), and what a new topic is (`ConfigRules.new_topic_overrides`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.config import TopicConfig
from strandline.errors import InvalidConfig

DISKLESS_FLAG: Final = "diskless.enable"


def check_diskless_switch(topic: str, before: TopicConfig, after: TopicConfig) -> None:
    """Raise InvalidConfig if the change from `before` to `after` switches the topic to or from diskless."""
    if before.diskless_enable != after.diskless_enable:
        is_now = "diskless" if before.diskless_enable else "not diskless"
        raise InvalidConfig(
            f"{DISKLESS_FLAG} of {topic} cannot be changed: in this version a topic is diskless, or not, from its "
            f"creation on, and this one is {is_now}."
        )


def with_diskless_flag(before: Mapping[str, str], replacement: Mapping[str, str]) -> dict[str, str]:
    """The overrides that AlterConfigs asks for when it replaces `before`.

    It names all settings that the topic shall have. Clients that do not know the flag leave it out: that keeps the flag
    as it is.
    """
    kept = {DISKLESS_FLAG: before[DISKLESS_FLAG]} if DISKLESS_FLAG in before else {}
    return kept | dict(replacement)

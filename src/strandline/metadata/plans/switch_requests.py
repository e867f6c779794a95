"""The part of a change of settings that the control plane takes part in, in the transaction that writes the change.

A switch that was requested has a row in the control plane until it is finished or aborted. The row is written, and
taken away, together with `diskless.enable`; whether a topic is on its way is known from the row alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config import TopicConfig
from strandline.errors import StrandlineError
from strandline.metadata.effects import (
    AbortSwitch,
    CheckTiering,
    CheckUncleanElections,
    Effect,
    RepeatSwitch,
    RequestSwitch,
)
from strandline.metadata.image import TopicImage
from strandline.metadata.plans.diskless_switch import Switch


def topic_effects(
    topic: TopicImage, switch: Switch, before: TopicConfig, after: TopicConfig, *, obstacle: StrandlineError | None
) -> Sequence[Effect]:
    """What is written, or looked up, together with a change of a topic's settings.

    `obstacle` is why the topic could not start to become diskless now, from the metadata.
    """
    topic_id, name, partitions = topic.topic_id, topic.name, len(topic.partitions)
    match switch:
        case Switch.START:
            return (RequestSwitch(topic_id=topic_id, topic=name, partitions=partitions),)
        case Switch.ABORT:
            return (AbortSwitch(topic_id=topic_id, topic=name),)
    effects: list[Effect] = []
    is_diskless = before.diskless_enable and after.diskless_enable
    if is_diskless and after.unclean_leader_election_enable and not before.unclean_leader_election_enable:
        effects.append(CheckUncleanElections(topic_id=topic_id, topic=name))
    if is_diskless and after.remote_storage_enable and not before.remote_storage_enable:
        effects.append(CheckTiering(topic_id=topic_id, topic=name))
    if switch is Switch.REPEAT:
        effects.append(RepeatSwitch(topic_id=topic_id, topic=name, partitions=partitions, obstacle=obstacle))
    return effects

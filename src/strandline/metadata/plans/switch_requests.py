"""The part of a change of settings that the control plane decides, in the transaction that writes the change.

A switch that was requested has a row in the control plane until it is finished or aborted. The row is written, and
taken away, together with `diskless.enable`; whether a topic is on its way is known from the row alone.
"""

from __future__ import annotations

from strandline.config import TopicConfig
from strandline.controlplane.switch_requests import abort_migration, migrating_topics, request_migration
from strandline.errors import InvalidConfig, InvalidRequest, StrandlineError
from strandline.metadata.image import MetadataImage, TopicImage
from strandline.metadata.plans.diskless_switch import DISKLESS_FLAG, TIERING_FLAG, UNCLEAN_FLAG, Switch
from strandline.metadata.requests import WrittenTogether
from strandline.sql import Transaction


def topic_change(
    topic: TopicImage, switch: Switch, before: TopicConfig, after: TopicConfig, *, obstacle: StrandlineError | None
) -> WrittenTogether | None:
    """What is written, or looked up, together with a change of a topic's settings; None if there is nothing.

    `obstacle` is why the topic could not start to become diskless now, from the metadata.
    """
    match switch:
        case Switch.START:
            return _started(topic)
        case Switch.ABORT:
            return _aborted(topic)
    is_diskless = before.diskless_enable and after.diskless_enable
    is_made_unclean = is_diskless and after.unclean_leader_election_enable and not before.unclean_leader_election_enable
    is_made_tiered = is_diskless and after.remote_storage_enable and not before.remote_storage_enable
    if switch is Switch.NONE and not is_made_unclean and not is_made_tiered:
        return None

    async def together(tx: Transaction) -> None:
        is_migrating = topic.topic_id in await migrating_topics(tx)
        if is_migrating and is_made_unclean:
            raise InvalidConfig(
                f"{UNCLEAN_FLAG} of {topic.name} cannot become true while the topic becomes diskless. Try again when "
                "diskless.migration.state is not MIGRATING."
            )
        if is_made_tiered and not is_migrating:
            raise InvalidConfig(
                f"{TIERING_FLAG} of {topic.name} cannot become true: a diskless topic is not tiered in this version."
            )
        if switch is Switch.REPEAT and not is_migrating:
            await request_migration(tx, topic.topic_id, topic.name, len(topic.partitions), is_flagged=True)
            if obstacle is not None and topic.topic_id in await migrating_topics(tx):
                raise obstacle

    return together


def _started(topic: TopicImage) -> WrittenTogether:
    async def together(tx: Transaction) -> None:
        await request_migration(tx, topic.topic_id, topic.name, len(topic.partitions), is_flagged=False)

    return together


def _aborted(topic: TopicImage) -> WrittenTogether:
    async def together(tx: Transaction) -> None:
        was_requested = topic.topic_id in await migrating_topics(tx)
        partition = await abort_migration(tx, topic.topic_id)
        if partition is not None:
            raise InvalidConfig(
                f"{DISKLESS_FLAG} of {topic.name} cannot become false: partition {partition} is diskless already, and "
                "there is no way back. To have the records in a classic topic, copy them into a new one."
            )
        if not was_requested:  # its logs in the control plane are about to be made, or wait to be switched again
            raise InvalidConfig(
                f"{DISKLESS_FLAG} of {topic.name} cannot become false: the topic is not on its way from classic to "
                "diskless. One that was created diskless stays so; to have classic partitions, create another topic."
            )

    return together


def unclean_by_default(image: MetadataImage) -> WrittenTogether:
    """For a change that makes unclean elections the default: refused while it would hold for a topic on its way."""

    async def together(tx: Transaction) -> None:
        for topic_id in await migrating_topics(tx):
            topic = image.topics_by_id.get(topic_id)
            if topic is not None and _follows_default(image, topic):
                raise InvalidRequest(
                    f"{UNCLEAN_FLAG} cannot become true for all topics while {topic.name} becomes diskless. Set "
                    f"{UNCLEAN_FLAG}=false on that topic, or try again when its diskless.migration.state is not "
                    "MIGRATING."
                )

    return together


def _follows_default(image: MetadataImage, topic: TopicImage) -> bool:
    return image.topic_overrides(topic.name).get(UNCLEAN_FLAG, "true").strip().lower() != "false"

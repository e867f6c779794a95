"""What a broker has to learn from the control plane before it follows the metadata."""

from __future__ import annotations

import logging
from collections.abc import Set
from typing import Final, Protocol
from uuid import UUID

from strandline.clock import Clock
from strandline.hybrid.kinds import PartitionKinds
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

_PAUSES_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class OrderedTopics(Protocol):
    """What is asked of the control plane."""

    async def diskless_topic_ids(self) -> Set[UUID]:
        """The topics that it has given offsets to. Raises SqlError."""


async def learn_ordered_topics(kinds: PartitionKinds, topics: OrderedTopics, clock: Clock) -> None:
    """Find out which topics the control plane orders: they are diskless, whatever a setting says. Raises SqlError."""
    for pause in _PAUSES_S:
        try:
            kinds.learn(await topics.diskless_topic_ids())
            return
        except SqlError as error:
            if not error.retriable:
                raise
            logger.warning("the control plane cannot be read, trying again in %g s: %s", pause, error)
            await clock.sleep(pause)
    kinds.learn(await topics.diskless_topic_ids())

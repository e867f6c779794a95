"""Creates the topic of remote log metadata as soon as this broker has something to tier."""

from __future__ import annotations

import asyncio
import logging

from strandline.clock import Clock
from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.hybrid.remote.store_check import RemoteIdentity
from strandline.metadata import ActiveController, MetadataLoader, wanted_topic
from strandline.model import REMOTE_LOG_METADATA_TOPIC

logger = logging.getLogger(__name__)


class MetadataTopicCreation:
    """`need.set` says that there is a tiered replica; nothing happens before."""

    def __init__(
        self,
        settings: Settings,
        loader: MetadataLoader,
        controller: ActiveController,
        need: asyncio.Event,
        clock: Clock,
    ) -> None:
        self._settings, self._loader, self._controller = settings, loader, controller
        self._need, self._clock = need, clock

    async def run(self, identity: RemoteIdentity | None) -> None:
        """Create it, once the storage is recorded. Says so now and then if the controller refuses."""
        tiers, clock = self._settings.tiers, self._clock
        pause = tiers.rlmm_config_remote_log_metadata_initialization_retry_interval_ms / 1000
        patience = tiers.rlmm_config_remote_log_metadata_initialization_retry_max_timeout_ms / 1000
        await self._need.wait()
        if identity is not None:  # until then nothing can be copied; its watch says why
            await identity.wait_settled()
        complain_at = clock.monotonic() + patience
        while REMOTE_LOG_METADATA_TOPIC not in self._loader.image.topics:
            wanted = wanted_topic(REMOTE_LOG_METADATA_TOPIC, self._settings, self._loader.image)
            try:
                (answer,) = await self._controller.create_topics([wanted])
            except StrandlineError as error:
                answer = error
            if not isinstance(answer, StrandlineError):
                return
            if clock.monotonic() >= complain_at:
                logger.error("nothing can be tiered, %s cannot be created: %s", REMOTE_LOG_METADATA_TOPIC, answer)
                complain_at = clock.monotonic() + patience
            await clock.sleep(pause)

"""What deleted topics leave in the control plane, and its removal, which is the controller's work."""

from __future__ import annotations

import logging

from strandline.controlplane import TopicDeletion, WalFileList
from strandline.metadata import MetadataLoader

logger = logging.getLogger(__name__)


class Leftovers:
    """Logs of deleted topics, and files whose objects are not deleted yet."""

    def __init__(self, topics: TopicDeletion, files: WalFileList, loader: MetadataLoader) -> None:
        self._topics, self._files, self._loader = topics, files, loader

    async def are_there(self) -> bool:
        """Whether the control plane has any logs or files. Raises SqlError."""
        return bool(await self._topics.topic_ids() or await self._files.files_after(0, 1))

    async def remove(self) -> None:
        """Delete the logs of deleted topics in the control plane. Raises SqlError.

        The metadata is read after the control plane: a topic is in the metadata before any broker creates its logs, so
        no existing topic looks deleted, even to a broker that has been deposed as controller without knowing it.
        """
        known = await self._topics.topic_ids()
        if not known:
            return
        await self._loader.catch_up()
        gone = known - self._loader.image.topics_by_id.keys()
        if gone:
            await self._topics.delete_topics(gone)
            logger.info("removed %d deleted topics from the control plane", len(gone))

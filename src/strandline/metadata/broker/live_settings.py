"""The settings of one broker as they are now: its properties, and above them what the metadata says."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config import Settings, TopicConfig
from strandline.metadata.image import Images
from strandline.model import BrokerId


class LiveSettings:
    """Those of the properties until `follow` is called for the first time."""

    def __init__(self, static: Settings, node_id: BrokerId, images: Images) -> None:
        self.now = self._static = static
        self._node_id, self._images = node_id, images

    def current(self) -> Settings:
        """The settings, for components that ask each time."""
        return self.now

    def topic_config(self, topic: str) -> TopicConfig:
        """What holds for a topic now."""
        return self.now.topic_config(self._images.image.topic_overrides(topic))

    def follow(self) -> Sequence[str]:
        """Take over what the metadata says now. Sentences about what is not used of it, if anything has changed."""
        image = self._images.image
        cluster, own = image.cluster_default_overrides(), image.broker_overrides(self._node_id)
        if cluster == self.now.cluster_default and own == self.now.per_broker:
            return ()
        self.now = self._static.with_dynamic(cluster, own)
        return self.now.rejected

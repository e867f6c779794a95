"""What an implementation of `RemoteLogMetadataManager` is given to start with."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.remote.plugins import PluginContext
from strandline.remote.topic_based.topic import MetadataTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPluginContext(PluginContext):
    """The broker, and its metadata topic for those who want to use it."""

    metadata_topic: MetadataTopic

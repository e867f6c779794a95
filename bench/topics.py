"""Create and delete topics with a real client, and wait until the broker leads every partition."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from bench.probe import is_answering, is_serving

_PATIENCE_SECONDS: Final = 120.0


class Topics:
    """Topics of one broker."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka.admin import AdminClient

        self._host, _, port = bootstrap.rpartition(":")
        self._port = int(port)
        # The broker is stopped under this client on purpose: it need not complain about it on the terminal.
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def create(self, partitions_by_topic: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create topics with one replica; returns when the leader of each partition serves it."""
        from confluent_kafka.cimpl import NewTopic

        wanted = [
            NewTopic(name, partitions, 1, config=dict(config or {})) for name, partitions in partitions_by_topic.items()
        ]
        for future in self._admin.create_topics(wanted, request_timeout=_PATIENCE_SECONDS).values():
            future.result()
        deadline = time.perf_counter() + _PATIENCE_SECONDS
        while not self._is_served(partitions_by_topic):
            if time.perf_counter() > deadline:
                raise TimeoutError(f"Not all partitions have a leader: {', '.join(partitions_by_topic)}")
            time.sleep(0.02)

    def _is_served(self, partitions_by_topic: Mapping[str, int]) -> bool:
        return is_answering(self._host, self._port, topics=partitions_by_topic) and all(
            is_serving(self._host, self._port, name, partitions) for name, partitions in partitions_by_topic.items()
        )

    def configure(self, names: Iterable[str], config: Mapping[str, str]) -> None:
        """Change settings of topics, all of them at once."""
        from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
        from confluent_kafka.admin._resource import ResourceType

        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        wanted = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries) for name in names]
        for future in self._admin.incremental_alter_configs(wanted, request_timeout=_PATIENCE_SECONDS).values():
            future.result()

    def delete(self, names: Iterable[str]) -> None:
        for future in self._admin.delete_topics(list(names), request_timeout=_PATIENCE_SECONDS).values():
            future.result()

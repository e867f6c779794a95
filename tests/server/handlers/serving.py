"""A broker whose topics are all classic: there is nothing to wait for, and each is served by its leader."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from strandline.errors import StrandlineError
from strandline.metadata import TopicImage
from strandline.server.handlers.configs.alter import AlterConfigsHandler
from strandline.server.handlers.configs.loggers import BrokerLoggers
from tests.metadata.cluster import Cluster
from tests.metadata.switching import EMPTY


class AllServed:
    """`ServedTopics` without diskless topics."""

    async def wait_served(self, topics: Collection[str]) -> None:
        return None

    def why_not_creatable(self, topic: str, configs: Mapping[str, str | None]) -> StrandlineError | None:
        return None

    def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
        return topic

    @property
    def view_version(self) -> int:
        return 0


class AllClassic:
    """`MigrationStates` without diskless topics."""

    async def of_topics(self, topics: Collection[TopicImage]) -> Mapping[str, str]:
        return {topic.name: "N/A" for topic in topics}


def alter_configs_handler(cluster: Cluster) -> AlterConfigsHandler:
    return AlterConfigsHandler(cluster.controller, cluster.loader, BrokerLoggers(), checks=EMPTY, states=AllClassic())

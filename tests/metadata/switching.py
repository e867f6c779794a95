"""What tests of the switch from classic to diskless ask a controller, and what they look at afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from strandline.controlplane.switch_requests import migrating_topics
from strandline.errors import StrandlineError
from strandline.metadata import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigReplacement,
    ConfigResource,
    ConfigResourceType,
    TopicImage,
)
from strandline.metadata.plans.configs import ConfigWish
from tests.metadata.cluster import Cluster

ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownContents:
    """`SwitchChecks` over logs and stores whose state is given."""

    non_empty: Sequence[int] = ()
    problem: str | None = None
    refusal: StrandlineError | None = None

    async def non_empty_partitions(self, topic: TopicImage) -> Sequence[int]:
        return self.non_empty

    def tiered_problem(self) -> str | None:
        return self.problem

    def diskless_problem(self, topic: str) -> StrandlineError | None:
        return self.refusal


EMPTY = KnownContents()


def topic_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, name)


def set_to(resource: str | ConfigResource, values: dict[str, str | None]) -> ConfigAlteration:
    """Set some settings, or remove those whose value is None, of a topic or another resource."""
    if isinstance(resource, str):
        resource = topic_resource(resource)
    changes = [
        ConfigChange(key, ConfigOperation.DELETE if value is None else ConfigOperation.SET, value)
        for key, value in values.items()
    ]
    return ConfigAlteration(resource=resource, changes=changes)


def replaced_by(topic: str, values: dict[str, str]) -> ConfigReplacement:
    return ConfigReplacement(resource=topic_resource(topic), values=values)


async def ask(
    cluster: Cluster, wish: ConfigWish, checks: KnownContents = EMPTY, *, validate_only: bool = False
) -> StrandlineError | None:
    """The controller's answer."""
    if isinstance(wish, ConfigReplacement):
        (answer,) = await cluster.controller.replace_configs([wish], validate_only, checks)
    else:
        (answer,) = await cluster.controller.alter_configs([wish], validate_only, checks)
    return answer


async def requested(cluster: Cluster) -> list[UUID]:
    """The topics whose switch is requested, in order."""
    async with cluster.sql.transaction() as tx:
        return list(await migrating_topics(tx))

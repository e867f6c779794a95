"""Which metrics a client is asked to push, and how often: the sum of all subscriptions that match it.

The settings of subscriptions are in the metadata. They are parsed when they change, not for each request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from crc32c import crc32c

from strandline.config.client_metrics import ALL_METRICS, DEFAULT_INTERVAL_MS, client_metrics_config
from strandline.errors import InvalidConfig
from strandline.metadata import ConfigResourceType, Images, Overrides, configs_of

logger = logging.getLogger(__name__)

_INT32: Final = 1 << 32

ClientAttributes: TypeAlias = Mapping[str, str | None]


class Subscription(NamedTuple):
    """What one client is asked for. Its id is another one when anything of it changes."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


class _Rule(NamedTuple):
    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Any]

    def is_about(self, client: ClientAttributes) -> bool:
        return all(
            (text := client.get(attribute)) is not None and pattern.fullmatch(text) is not None
            for attribute, pattern in self.patterns.items()
        )


class Subscriptions:
    """The subscriptions of the newest metadata."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._configs: Mapping[str, Overrides] | None = None
        self._rules: Sequence[_Rule] = ()

    def of(self, instance_id: UUID, client: ClientAttributes) -> Subscription:
        """What this client is asked for now."""
        rules = [rule for rule in self._current() if rule.is_about(client)]
        metrics = tuple(sorted({name for rule in rules for name in rule.metrics}))
        if ALL_METRICS in metrics:
            metrics = (ALL_METRICS,)
        interval_ms = min((DEFAULT_INTERVAL_MS, *(rule.interval_ms for rule in rules)))
        return Subscription(_subscription_id(instance_id, metrics, interval_ms), metrics, interval_ms)

    def _current(self) -> Sequence[_Rule]:
        configs = configs_of(self._images.image, ConfigResourceType.CLIENT_METRICS)
        if configs is not self._configs:
            self._rules = tuple(_rules(configs))
            self._configs = configs
        return self._rules


def _rules(configs: Mapping[str, Overrides]) -> list[_Rule]:
    rules = []
    for name, overrides in configs.items():
        try:
            config = client_metrics_config(overrides)
            rules.append(_Rule(config.metrics, config.interval_ms, config.patterns))
        except InvalidConfig as error:  # it was checked when it was set, by another version
            logger.warning("the subscription %s to metrics of clients is not used: %s", name, error)
    return rules


def _subscription_id(instance_id: UUID, metrics: tuple[str, ...], interval_ms: int) -> int:
    """A CRC of what is asked for, mixed with the client's id, as the KIP says. 32 bits with a sign."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    halves = (instance_id.int >> 64) ^ instance_id.int
    mixed = (checksum ^ (halves >> 32) ^ halves) % _INT32
    return mixed - _INT32 if mixed >= _INT32 // 2 else mixed

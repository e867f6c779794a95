"""Rules for changing broker settings while the broker runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.config.declare import Dynamic
from strandline.config.names import unknown_name
from strandline.config.settings import BROKER_DECLARATIONS, Settings
from strandline.errors import InvalidConfig, InvalidRequest

DYNAMIC_NAMES: Final = frozenset(
    name for name, declaration in BROKER_DECLARATIONS.items() if declaration.dynamic is not Dynamic.READ_ONLY
)


def validate_broker_overrides(overrides: Mapping[str, str], settings: Settings, *, is_cluster_default: bool) -> None:
    """Check the whole set of dynamic settings that a broker, or the cluster default, is to have.

    Raises InvalidRequest, which is Kafka's answer to dynamic broker settings that cannot be applied,
    for a name that is unknown, read-only or per-broker (in a cluster default), and for an illegal value.
    """
    for name, text in overrides.items():
        _check_name(name, is_cluster_default=is_cluster_default)
        try:
            BROKER_DECLARATIONS[name].parse(text)
        except InvalidConfig as error:
            raise InvalidRequest(str(error)) from error
    default = overrides if is_cluster_default else settings.cluster_default
    own = settings.per_broker if is_cluster_default else overrides
    rejected = settings.with_dynamic(default, own).rejected
    if rejected:
        raise InvalidRequest(" ".join(rejected))


def _check_name(name: str, *, is_cluster_default: bool) -> None:
    declaration = BROKER_DECLARATIONS.get(name)
    if declaration is None:
        raise InvalidRequest(str(unknown_name(name, DYNAMIC_NAMES, what="a setting of the broker")))
    if declaration.dynamic is Dynamic.READ_ONLY:
        raise InvalidRequest(
            f"{name} cannot be changed while the broker runs; set it in the file and restart the broker."
        )
    if is_cluster_default and declaration.dynamic is Dynamic.PER_BROKER:
        raise InvalidRequest(f"{name} belongs to one broker: it cannot be changed for all brokers at once.")

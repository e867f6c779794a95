"""Settings that the broker hands on: to the storage of tiered topics (`rsm.config.*`) and to its description
(`rlmm.config.*`).

Another prefix may be chosen for either (`remote.log.storage.manager.impl.prefix` and
`remote.log.metadata.manager.impl.prefix`). The built-in ones take the names that are declared in `config.tiers`;
another class takes any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from strandline.config.declare import declarations_of
from strandline.config.names import unknown_name
from strandline.config.tiers import METADATA_PREFIX, STORAGE_PREFIX, TierSettings

V = TypeVar("V")

_DECLARED: Final = declarations_of(TierSettings)


class _Receiver(NamedTuple):
    """Somebody to whom settings are handed on."""

    prefix: str
    """What the names begin with unless the setting `prefix_name` says otherwise."""
    prefix_name: str
    class_name: str
    also: tuple[str, ...] = ()
    """Further families of names that the built-in one takes, behind the prefix."""


_RECEIVERS: Final = (
    _Receiver(
        STORAGE_PREFIX,
        "remote.log.storage.manager.impl.prefix",
        "remote.log.storage.manager.class.name",
        also=("storage.s3.", "storage.aws."),  # the storage takes and checks them without inkless. before, too
    ),
    _Receiver(
        METADATA_PREFIX,
        "remote.log.metadata.manager.impl.prefix",
        "remote.log.metadata.manager.class.name",
        # Kafka's clients inside RemoteLogMetadataManager: files of real clusters have them, and here are none.
        also=("remote.log.metadata.common.client.", "remote.log.metadata.producer.", "remote.log.metadata.consumer."),
    ),
)


def handed_on(properties: Mapping[str, V], prefix: str) -> dict[str, V]:
    """What begins with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def under_declared_names(properties: Mapping[str, str]) -> dict[str, str]:
    """The same settings, where another prefix was chosen under the names that are declared."""
    found = dict(properties)
    for receiver in _RECEIVERS:
        prefix = _prefix_of(receiver, properties)
        for tail, text in handed_on(properties, prefix).items():
            if receiver.prefix + tail in _DECLARED:
                found[receiver.prefix + tail] = text
    return found


def is_handed_on(name: str, properties: Mapping[str, str]) -> bool:
    """Whether a setting that the broker does not know belongs to somebody who may know it.

    Raises InvalidConfig for a name that the built-in receiver does not know.
    """
    for receiver in _RECEIVERS:
        prefix = _prefix_of(receiver, properties)
        if not name.startswith(prefix):
            continue
        tail = name.removeprefix(prefix)
        if receiver.class_name in properties or receiver.prefix + tail in _DECLARED or tail.startswith(receiver.also):
            return True
        known = [prefix + tail for tail in handed_on(_DECLARED, receiver.prefix)]
        raise unknown_name(name, known, what="a setting of the broker")
    return False


def _prefix_of(receiver: _Receiver, properties: Mapping[str, str]) -> str:
    return properties.get(receiver.prefix_name) or receiver.prefix

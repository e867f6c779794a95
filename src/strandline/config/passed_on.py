"""Settings that the broker hands on to the RemoteStorageManager (`rsm.config.*`) and to the RemoteLogMetadataManager
(`rlmm.config.*`) of tiered topics.

Another prefix may be chosen for either (`remote.log.storage.manager.impl.prefix` and
`remote.log.metadata.manager.impl.prefix`). The built-in classes accept the names that are declared in `config.remote`;
other classes accept any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from strandline.config.declare import declarations_of
from strandline.config.names import unknown_name
from strandline.config.remote import METADATA_PREFIX, STORAGE_PREFIX, TierSettings

V = TypeVar("V")

_DECLARED: Final = declarations_of(TierSettings)


class _Receiver(NamedTuple):
    """A plugin that settings are handed on to."""

    prefix: str
    """The prefix of its settings, unless the setting `prefix_name` names another one."""
    prefix_name: str
    class_name: str
    also: tuple[str, ...] = ()
    """Further families of names that the built-in class accepts, behind the prefix."""


_RECEIVERS: Final = (
    _Receiver(
        STORAGE_PREFIX,
        "remote.log.storage.manager.impl.prefix",
        "remote.log.storage.manager.class.name",
        also=("storage.s3.", "storage.aws."),  # the storage also accepts and checks them without inkless. in front
    ),
    _Receiver(
        METADATA_PREFIX,
        "remote.log.metadata.manager.impl.prefix",
        "remote.log.metadata.manager.class.name",
        # Settings of the Kafka clients inside Kafka's RemoteLogMetadataManager: files of real clusters have them.
        # The interval is the KIP's; partitions are deleted every remote.log.manager.task.interval.ms.
        also=(
            "remote.log.metadata.common.client.",
            "remote.log.metadata.producer.",
            "remote.log.metadata.consumer.",
            "remote.partition.remover.task.interval.ms",
        ),
    ),
)


def handed_on(properties: Mapping[str, V], prefix: str) -> dict[str, V]:
    """The settings whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def under_declared_names(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings, with those under a chosen prefix also under their declared names."""
    found = dict(properties)
    for receiver in _RECEIVERS:
        prefix = _prefix_of(receiver, properties)
        for tail, text in handed_on(properties, prefix).items():
            if receiver.prefix + tail in _DECLARED:
                found[receiver.prefix + tail] = text
    return found


def is_handed_on(name: str, properties: Mapping[str, str]) -> bool:
    """Whether a setting that the broker does not know belongs to a plugin.

    Raises InvalidConfig for a name that the built-in plugin does not know.
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

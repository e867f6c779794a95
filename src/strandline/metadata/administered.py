"""What administrators keep in the metadata beside topics and settings: quotas of clients, SCRAM credentials, features.

A value of an image, and how records change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


class QuotaOwner(NamedTuple):
    """One part of a quota entity: a user, a client id or an address. None: all those without a quota of their own."""

    type: str
    name: str | None


QuotaEntity: TypeAlias = tuple[QuotaOwner, ...]
"""Whom a quota is for, by one or two of its properties, in the order of their types."""

Quotas: TypeAlias = Mapping[str, float]


def quota_entity(parts: Mapping[str, str | None]) -> QuotaEntity:
    """The entity with these names, by type."""
    return tuple(QuotaOwner(kind, parts[kind]) for kind in sorted(parts))


class ScramMechanism(IntEnum):
    """The mechanisms of SCRAM. Kafka's numbers."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def digest(self) -> str:
        """The name of its hash function in `hashlib`."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"


class ScramOwner(NamedTuple):
    """Whose credential it is, and for which mechanism."""

    user: str
    mechanism: ScramMechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """What a server needs to check a password of RFC 5802. Its keys never appear in a log: they are not in its text."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Administered:
    """The part of an image that this module is about. `feature_levels` holds the levels that were ever set."""

    quotas: Mapping[QuotaEntity, Quotas] = field(default_factory=dict)
    credentials: Mapping[ScramOwner, ScramCredential] = field(default_factory=dict)
    feature_levels: Mapping[str, int] = field(default_factory=dict)


NOTHING_ADMINISTERED: Final = Administered()


class AdministeredBuilder:
    """Changes a copy, made at the first change: many records cost one copy."""

    __slots__ = ("_credentials", "_feature_levels", "_is_changed", "_old", "_quotas")

    def __init__(self, old: Administered) -> None:
        self._old, self._is_changed = old, False
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}
        self._credentials: dict[ScramOwner, ScramCredential] = {}
        self._feature_levels: dict[str, int] = {}

    def _change(self) -> None:
        if not self._is_changed:
            self._quotas = {entity: dict(values) for entity, values in self._old.quotas.items()}
            self._credentials = dict(self._old.credentials)
            self._feature_levels = dict(self._old.feature_levels)
            self._is_changed = True

    def set_quota(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Set one quota, or remove it (None). An entity without quotas is not kept."""
        self._change()
        values = self._quotas.setdefault(entity, {})
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
        if not values:
            del self._quotas[entity]

    def set_credential(self, owner: ScramOwner, credential: ScramCredential | None) -> None:
        """Set a credential, or remove it (None)."""
        self._change()
        if credential is None:
            self._credentials.pop(owner, None)
        else:
            self._credentials[owner] = credential

    def set_feature_level(self, name: str, level: int) -> None:
        """Give a feature a level."""
        self._change()
        self._feature_levels[name] = level

    def build(self) -> Administered:
        """The result; the same object if nothing has changed."""
        if not self._is_changed:
            return self._old
        return Administered(quotas=self._quotas, credentials=self._credentials, feature_levels=self._feature_levels)

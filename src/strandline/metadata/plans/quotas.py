"""Quotas of clients: which changes are legal, and which entities a filter finds. Kafka's rules.

An entity is a user, a client id, both of them, or an address. Users and client ids have four quotas, an address has
one. Quotas are stored only; nothing enforces them yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from strandline.errors import InvalidRequest, StrandlineError, UnsupportedVersion
from strandline.metadata.administered import CLIENT_ID, IP, USER, QuotaEntity, Quotas, quota_entity
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import ClientQuotaRecord, MetadataRecord
from strandline.metadata.requests import Plan

# Quotas travel as floating-point numbers: the largest one that fits into 64 bits arrives as 2**63, and Kafka takes it.
_INT32_MAX: Final = float(2**31 - 1)
_INT64_MAX: Final = float(2**63 - 1)
_ANY: Final = float("inf")
_TOLERANCE: Final = 1e-6  # as large as in Kafka

_OF_CLIENTS: Final = {
    "producer_byte_rate": _INT64_MAX,
    "consumer_byte_rate": _INT64_MAX,
    "request_percentage": _ANY,
    "controller_mutation_rate": _ANY,
}
_OF_ADDRESSES: Final = {"connection_creation_rate": _INT32_MAX}
_TYPES: Final = (USER, CLIENT_ID, IP)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaAlteration:
    """Quotas of one entity to set, or to remove (None). Kept as it was asked for: the types may be unknown."""

    entity: Sequence[tuple[str, str | None]]
    changes: Sequence[tuple[str, float | None]]


class QuotaMatch(IntEnum):
    """How a filter looks at one type of an entity. Kafka's numbers."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFilterPart:
    """What a filter says about one type. The number of the match may be unknown."""

    type: str
    match: int
    name: str | None


def plan_quotas(image: MetadataImage, wishes: Sequence[QuotaAlteration]) -> Plan[list[StrandlineError | None]]:
    """Change quotas. Each entity is changed as a whole or not at all; the answer is None for a change.

    An entity that is named more than once is not changed: it is not clear which of its alterations counts.
    """
    records: list[MetadataRecord] = []
    answers: list[StrandlineError | None] = []
    times = Counter(frozenset(wish.entity) for wish in wishes)
    for wish in wishes:
        try:
            entity = _checked_entity(wish)
            if times[frozenset(wish.entity)] > 1:
                raise InvalidRequest(f"The quota entity {_shown(entity)} is named more than once.")
            records += _records(entity, image.administered.quotas.get(entity, {}), _checked_changes(entity, wish))
        except StrandlineError as error:
            answers.append(error)
        else:
            answers.append(None)
    return Plan(records, answers)


def _shown(entity: QuotaEntity) -> str:
    return ", ".join(f"{owner.type}={'<default>' if owner.name is None else owner.name}" for owner in entity)


def _checked_entity(wish: QuotaAlteration) -> QuotaEntity:
    if not wish.entity:
        raise InvalidRequest("A quota entity needs a user, a client-id or an ip.")
    parts = dict(wish.entity)
    if len(parts) != len(wish.entity):
        raise InvalidRequest("A quota entity has each type at most once.")
    for kind, name in wish.entity:
        if kind not in _TYPES:
            raise InvalidRequest(f"There are no quotas by {kind!r}, only by user, client-id and ip.")
        if name == "":
            raise InvalidRequest(f"The {kind} of a quota entity is empty. The default entity has no name at all.")
    if IP in parts and len(parts) > 1:
        raise InvalidRequest("Quotas of an ip cannot be combined with a user or a client-id.")
    return quota_entity(parts)


def _checked_changes(entity: QuotaEntity, wish: QuotaAlteration) -> Mapping[str, float | None]:
    changes = dict(wish.changes)
    if len(changes) != len(wish.changes):
        raise InvalidRequest(f"A quota of {_shown(entity)} is named more than once.")
    limits: Mapping[str, float] = _OF_ADDRESSES if entity[0].type == IP else _OF_CLIENTS
    for key, value in changes.items():
        if value is not None:
            _check_value(key, value, limits)
    return changes


def _check_value(key: str, value: float, limits: Mapping[str, float]) -> None:
    if key not in limits:
        raise InvalidRequest(f"There is no quota {key!r} for this entity, only {', '.join(limits)}.")
    if not 0.0 < value < _ANY:
        raise InvalidRequest(f"The quota {key} is {value}; it must be a number greater than 0.")
    if limits[key] == _ANY:
        return
    if value > limits[key]:
        raise InvalidRequest(f"The quota {key} is {value}; it can be {limits[key]:.0f} at most.")
    if value % 1.0 > _TOLERANCE:
        raise InvalidRequest(f"The quota {key} is {value}; it must be a whole number.")


def _records(entity: QuotaEntity, now: Quotas, changes: Mapping[str, float | None]) -> Iterator[ClientQuotaRecord]:
    for key, value in changes.items():
        if now.get(key) != value:
            yield ClientQuotaRecord(entity=entity, key=key, value=value)


def matching_quotas(
    image: MetadataImage, parts: Sequence[QuotaFilterPart], *, strict: bool
) -> Mapping[QuotaEntity, Quotas]:
    """The quotas of the entities that a filter finds. A strict filter wants no other types in an entity.

    Raises InvalidRequest, and UnsupportedVersion for a type that is not known.
    """
    wanted: dict[str, QuotaFilterPart] = {}
    for part in parts:
        _check_filter(part)
        if part.type in wanted:
            raise InvalidRequest(f"The filter names {part.type} more than once.")
        wanted[part.type] = part
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequest("A filter by ip cannot be combined with one by user or client-id.")
    return {
        entity: quotas
        for entity, quotas in image.administered.quotas.items()
        if _is_found(entity, wanted) and (not strict or len(entity) == len(wanted))
    }


def _check_filter(part: QuotaFilterPart) -> None:
    if not part.type:
        raise InvalidRequest("The filter has a part without a type.")
    if part.type not in _TYPES:
        raise UnsupportedVersion(f"There are no quotas by {part.type!r}, only by user, client-id and ip.")
    if part.match not in (QuotaMatch.EXACT, QuotaMatch.DEFAULT, QuotaMatch.ANY):
        raise InvalidRequest(f"There is no match of type {part.match}.")
    if part.match == QuotaMatch.EXACT and part.name is None:
        raise InvalidRequest(f"The filter wants one {part.type} exactly, and does not say which.")
    if part.match != QuotaMatch.EXACT and part.name is not None:
        raise InvalidRequest(f"The filter names a {part.type}, and does not want an exact match.")


def _is_found(entity: QuotaEntity, wanted: Mapping[str, QuotaFilterPart]) -> bool:
    names = {owner.type: owner.name for owner in entity}
    return all(
        part.type in names and (part.match == QuotaMatch.ANY or names[part.type] == part.name)
        for part in wanted.values()
    )

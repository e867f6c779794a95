"""SCRAM credentials of users: set and removed by Kafka's rules.

A client sends the salted password; only the two keys that RFC 5802 derives from it are kept, as in Kafka, so that
reading the metadata is not enough to log in. Nothing checks passwords yet.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from strandline.admin_errors import (
    DuplicateResource,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from strandline.errors import StrandlineError
from strandline.metadata.administered import ScramCredential, ScramMechanism, ScramOwner
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import ScramCredentialRecord
from strandline.metadata.requests import Plan

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramDeletion:
    """A credential to remove. The number of the mechanism may be unknown."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramUpsertion:
    """A credential to set, new or instead of another one."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


def plan_credentials(
    image: MetadataImage, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> Plan[dict[str, StrandlineError | None]]:
    """Change credentials. The answers are by user: one that is named twice is not changed at all."""
    changes: list[ScramDeletion | ScramUpsertion] = [*deletions, *upsertions]
    times = Counter(change.user for change in changes)
    answers: dict[str, StrandlineError | None] = {}
    records: list[ScramCredentialRecord] = []
    for change in changes:
        answers[change.user] = None
        try:
            if times[change.user] > 1 and change.user:
                raise DuplicateResource(f"The request changes credentials of user {change.user} more than once.")
            records.append(_record(image, change))
        except StrandlineError as error:
            answers[change.user] = error
    return Plan(records, answers)


def _record(image: MetadataImage, change: ScramDeletion | ScramUpsertion) -> ScramCredentialRecord:
    if not change.user:
        raise UnacceptableCredential("A credential needs the name of a user.")
    if change.mechanism not in ScramMechanism.__members__.values():
        raise UnsupportedSaslMechanism(f"There is no SCRAM mechanism with the number {change.mechanism}.")
    owner = ScramOwner(change.user, ScramMechanism(change.mechanism))
    if isinstance(change, ScramUpsertion):
        return ScramCredentialRecord(owner=owner, credential=_credential(owner.mechanism, change))
    if owner not in image.administered.credentials:
        raise ResourceNotFound(f"User {change.user} has no credential for {owner.mechanism.name}.")
    return ScramCredentialRecord(owner=owner, credential=None)


def _credential(mechanism: ScramMechanism, wish: ScramUpsertion) -> ScramCredential:
    if not MIN_ITERATIONS <= wish.iterations <= MAX_ITERATIONS:
        raise UnacceptableCredential(
            f"The credential of user {wish.user} has {wish.iterations} iterations; "
            f"it needs {MIN_ITERATIONS} to {MAX_ITERATIONS}."
        )
    if not wish.salted_password:
        raise UnacceptableCredential(f"The credential of user {wish.user} has an empty salted password.")
    client_key = hmac.digest(wish.salted_password, b"Client Key", mechanism.digest)
    return ScramCredential(
        salt=wish.salt,
        stored_key=hashlib.new(mechanism.digest, client_key).digest(),
        server_key=hmac.digest(wish.salted_password, b"Server Key", mechanism.digest),
        iterations=wish.iterations,
    )

"""The errors that clients get when the control plane refuses a request or is not available."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.controlplane import Refusal, trouble_for_clients
from strandline.errors import InvalidConfig, KafkaStorageError, NotLeaderOrFollower, OffsetOutOfRange, StrandlineError
from strandline.health import Health
from strandline.model import BrokerId
from strandline.objects import ObjectStoreError
from strandline.sql import SqlError


def error_of(refusal: Refusal, sentence: str) -> StrandlineError:
    """The error of a refused request about one partition, other than a commit."""
    match refusal:
        case Refusal.UNKNOWN_LOG:
            return NotLeaderOrFollower(sentence)
        case Refusal.OFFSET_OUT_OF_RANGE:
            return OffsetOutOfRange(sentence)
        case _:
            return KafkaStorageError(f"{sentence} ({refusal.name}).")


@contextmanager
def storage_errors(what: object) -> Iterator[None]:
    """Turn errors of the database and the object store into those upon which clients retry."""
    sentence = f"Diskless storage is not available for {what} at the moment"
    try:
        yield
    except SqlError as error:
        raise trouble_for_clients(error, sentence) from error
    except ObjectStoreError as error:
        raise KafkaStorageError(f"{sentence}: {error}") from error


def uncreatable(topic: str, health: Health, node_id: BrokerId) -> StrandlineError | None:
    """The error for a new diskless topic if the object store is away and never worked since the start of the broker."""
    status = health.status()
    if health.has_worked or not status.is_away:
        return None
    reason = status.problem
    return InvalidConfig(
        f"diskless.enable=true cannot be used for {topic}: {status.what} has not been of use since the start of broker "
        f"{node_id}. {reason}"
    )

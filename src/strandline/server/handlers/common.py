"""What several handlers share: where they read the cluster's metadata, and how they speak of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from strandline.config import Settings
from strandline.errors import StrandlineError
from strandline.metadata.image import MetadataImage
from strandline.model import INTERNAL_TOPICS
from strandline.wire.errors import ErrorCode, error_code_of

# Kafka's numbers of operations, as bits: what everybody may do as long as there is no authorizer.
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = (1 << bit for bit in range(3, 9))
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (1 << bit for bit in range(9, 13))
TOPIC_OPERATIONS: Final = _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
CLUSTER_OPERATIONS: Final = (
    _CREATE | _ALTER | _DESCRIBE | _CLUSTER_ACTION | _DESCRIBE_CONFIGS | _ALTER_CONFIGS | _IDEMPOTENT_WRITE
)
GROUP_OPERATIONS: Final = _READ | _DELETE | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
OPERATIONS_NOT_ASKED: Final = -(1 << 31)

CurrentSettings: TypeAlias = Callable[[], Settings]


class ImageSource(Protocol):
    """Who holds the newest image of the metadata: the loader."""

    @property
    def image(self) -> MetadataImage:
        """The newest image."""


def is_internal(topic: str) -> bool:
    """Whether a topic belongs to the brokers and not to users."""
    return topic in INTERNAL_TOPICS


def outcome(result: object) -> tuple[ErrorCode, str | None]:
    """Error code and message of one item: an error, or anything else for success."""
    if isinstance(result, StrandlineError):
        return error_code_of(result), str(result)
    return ErrorCode.NONE, None

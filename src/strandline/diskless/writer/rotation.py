"""When the batches that have gathered become the next WAL object. Pure decisions.

Nothing waits while the pipe is empty; while objects are on their way, batches gather, so that under load objects are
large and few. Not here: what is uploaded (`uploads`) and in which order it is committed (`commit_order`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.config.diskless import DisklessSettings

MEBIBYTE: Final = 1024 * 1024

# Which part of a full object is worth an upload at once beside one other, and beside more; and which after a while.
# Objects cost processor time, most of it per object: one for each request of a producer with five of 1 MB in flight
# cost twice as much as one for two of them, and the producer got less far.
_AT_ONCE: Final = (4, 1)
_SOON: Final = 16
# How long that while is, beside one other and beside more: which part of the time that uploads take, but some seconds
# at least. On a store that takes 50 ms, what is not worth an upload at once must not wait for the one before.
_OF_AN_UPLOAD: Final = (4, 2)
_LEAST_WAIT: Final = 0.008
# Timers are no finer: what is left of an interval when one ends is not worth another.
_GRAIN: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """How much the writer takes, and for how long it tries."""

    max_bytes: int = 8 * MEBIBYTE
    """Of one object, unless a single batch is larger."""
    max_batches: int = 4096
    """Of one object and of one commit: what follows a commit runs on the event loop and must not hold it up."""
    commit_interval: float = 0.25
    """Seconds for which batches gather at most, if they may be uploaded then."""
    parallel_uploads: int = 8
    upload_attempts: int = 3
    upload_backoff: float = 0.01
    """Seconds before the second attempt; each further pause is twice as long."""
    max_pending_bytes: int = 128 * MEBIBYTE
    """Gathered and on their way together. Beyond it batches are refused."""
    patience: float = 30.0
    """Seconds after which an upload is not tried again, and after an upload those for which a commit is."""

    @classmethod
    def from_settings(cls, settings: DisklessSettings, *, let_in_bytes: int) -> WriterLimits:
        """What the settings of the broker say. With `let_in_bytes` of unanswered requests it reads no more of them."""
        max_bytes = settings.inkless_produce_buffer_max_bytes
        uploads = settings.inkless_produce_upload_thread_pool_size
        return cls(
            max_bytes=max_bytes,
            commit_interval=settings.inkless_produce_commit_interval_ms / 1000,
            parallel_uploads=uploads,
            upload_attempts=settings.inkless_produce_max_upload_attempts,
            upload_backoff=settings.inkless_produce_upload_backoff_ms / 1000,
            # Far more than is let in: producers of a slow store wait in their connections, and are not refused.
            max_pending_bytes=2 * let_in_bytes,
        )


class Gathered(NamedTuple):
    """What waits to be rotated."""

    byte_count: int
    batch_count: int
    seconds: float
    """Since the oldest of the batches came."""


class Pipe(NamedTuple):
    """How many objects are on their way, by stage."""

    uploading: int
    """Rotated and not uploaded yet; some may wait for others to be uploaded."""
    uploaded: int
    """Waiting for the commit before theirs."""
    committing: int


class RotationRules:
    """Decides when to rotate."""

    def __init__(self, limits: WriterLimits) -> None:
        self._max_bytes = limits.max_bytes
        self._max_batches = limits.max_batches
        self._interval = limits.commit_interval
        self._uploads = limits.parallel_uploads

    def must_rotate_before(self, batch_bytes: int, *, byte_count: int, batch_count: int) -> bool:
        """Whether a batch goes into another object than the batches that have gathered."""
        if batch_count == 0:
            return False
        return byte_count + batch_bytes > self._max_bytes or batch_count >= self._max_batches

    def is_due(self, gathered: Gathered, pipe: Pipe, *, upload_seconds: float) -> bool:
        """Whether to rotate now. Asked again after every batch, upload and commit, and when `seconds_left` are over.

        `upload_seconds` is what an upload takes these days.
        """
        if gathered.batch_count == 0:
            return False
        if self._is_full(gathered, part=1):
            return True
        if not self._has_room(pipe):
            return False
        # An object that is being committed holds nobody up: the next one can be uploaded meanwhile.
        if pipe.uploading == 0 and pipe.uploaded == 0:
            return True
        return self.seconds_left(gathered, pipe, upload_seconds=upload_seconds) == 0

    def seconds_left(self, gathered: Gathered, pipe: Pipe, *, upload_seconds: float) -> float:
        """Until what has gathered is due beside other objects, unless something happens before."""
        if self._is_full(gathered, part=_AT_ONCE[pipe.uploading > 1]):
            return 0.0
        patience = self._interval
        if self._is_full(gathered, part=_SOON):
            patience = min(patience, max(upload_seconds / _OF_AN_UPLOAD[pipe.uploading > 1], _LEAST_WAIT))
        left = patience - gathered.seconds
        return left if left > _GRAIN else 0.0

    def _is_full(self, gathered: Gathered, *, part: int) -> bool:
        return gathered.byte_count * part >= self._max_bytes or gathered.batch_count * part >= self._max_batches

    def _has_room(self, pipe: Pipe) -> bool:
        # Objects that wait for a slow commit count too: more of them would not be committed any sooner.
        return pipe.uploading < self._uploads and pipe.uploading + pipe.uploaded < 2 * self._uploads

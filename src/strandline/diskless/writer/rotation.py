"""When gathered batches become the next WAL object. Pure decisions.

While no object is in flight, batches do not wait, unless a setting makes them linger; while objects are in flight,
batches gather, so that under load objects are large and few. Not here: the upload (`uploads`) and the order of commits
(`commit_queue`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.config import DisklessSettings

MEBIBYTE: Final = 1024 * 1024

# Divisors; the first of a pair holds while one upload is in flight, the second while more are.
#
# 1/4 of a full object is uploaded at once beside one upload, only a full object beside more. Most of the processor time
# of an upload is per object: with five requests of 1 MB in flight, one object per request cost twice as much as one per
# two requests, and the producer's throughput fell.
_AT_ONCE: Final = (4, 1)
# 1/16 of a full object is uploaded after 1/4 of the time an upload takes beside one upload, after 1/2 beside more, but
# after 8 ms at least. On a store that takes 50 ms, such an object must not wait for the end of the upload before it.
_SOON: Final = 16
_OF_AN_UPLOAD: Final = (4, 2)
_LEAST_WAIT: Final = 0.008
# Timers are no finer than this many seconds: a shorter rest of an interval is not waited for.
_GRAIN: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """How much the writer takes, and how long it retries."""

    max_bytes: int = 8 * MEBIBYTE
    """Largest size of an object, unless a single batch is larger."""
    max_batches: int = 4096
    """Most batches of one object and of one commit: the work after a commit must not block the event loop."""
    commit_interval: float = 0.25
    """Seconds after which gathered batches are uploaded, if an upload is free."""
    linger: float = 0.0
    """Seconds for which the batches of a small object wait for others, also while nothing is in flight."""
    parallel_uploads: int = 8
    upload_attempts: int = 3
    upload_backoff: float = 0.01
    """Seconds before the second attempt; each further pause is twice as long."""
    max_pending_bytes: int = 128 * MEBIBYTE
    """Bytes of batches without an answer. Beyond it batches are refused."""
    patience: float = 30.0
    """Seconds for which an upload is retried, and after it, seconds for which its commit is."""

    @classmethod
    def from_settings(cls, settings: DisklessSettings, *, max_pending_bytes: int) -> WriterLimits:
        """Limits from the broker's settings."""
        max_bytes = settings.inkless_produce_buffer_max_bytes
        uploads = settings.inkless_produce_upload_thread_pool_size
        return cls(
            max_bytes=max_bytes,
            commit_interval=settings.inkless_produce_commit_interval_ms / 1000,
            linger=settings.strandline_produce_linger_ms / 1000,
            parallel_uploads=uploads,
            upload_attempts=settings.inkless_produce_max_upload_attempts,
            upload_backoff=settings.inkless_produce_upload_backoff_ms / 1000,
            max_pending_bytes=max_pending_bytes,
        )


class Gathered(NamedTuple):
    """The batches that wait to be rotated."""

    byte_count: int
    batch_count: int
    seconds: float
    """Since the oldest of the batches arrived."""


class Pipe(NamedTuple):
    """How many objects are in flight, by stage."""

    uploading: int
    """Rotated and not uploaded yet; some may wait for a free upload."""
    uploaded: int
    """Waiting for the commit before theirs."""
    committing: int


class RotationRules:
    """Decides when to rotate."""

    def __init__(self, limits: WriterLimits) -> None:
        self._max_bytes = limits.max_bytes
        self._max_batches = limits.max_batches
        self._interval = limits.commit_interval
        self._linger = limits.linger
        self._uploads = limits.parallel_uploads

    def end_lingering(self) -> None:
        """From now on nothing waits for others while nothing is in flight."""
        self._linger = 0.0

    def must_rotate_before(self, batch_bytes: int, *, byte_count: int, batch_count: int) -> bool:
        """Whether a batch does not fit into the object of the gathered batches."""
        if batch_count == 0:
            return False
        return byte_count + batch_bytes > self._max_bytes or batch_count >= self._max_batches

    def is_due(self, gathered: Gathered, pipe: Pipe, *, upload_seconds: float) -> bool:
        """Whether to rotate now. Called after every batch, upload and commit, and when `seconds_left` have passed.

        `upload_seconds` is the average time of recent uploads.
        """
        if gathered.batch_count == 0:
            return False
        if self._is_full(gathered, part=1):
            return True
        if not self._has_room(pipe):
            return False
        return self.seconds_left(gathered, pipe, upload_seconds=upload_seconds) == 0

    def seconds_left(self, gathered: Gathered, pipe: Pipe, *, upload_seconds: float) -> float:
        """Seconds until the gathered batches are due beside the objects in flight."""
        if self._is_full(gathered, part=_AT_ONCE[pipe.uploading > 1]):
            return 0.0
        left = max(self._patience(gathered, pipe, upload_seconds), self._linger) - gathered.seconds
        return left if left > _GRAIN else 0.0

    def _patience(self, gathered: Gathered, pipe: Pipe, upload_seconds: float) -> float:
        # An object that is being committed does not delay the upload of the next one.
        if pipe.uploading == 0 and pipe.uploaded == 0:
            return 0.0
        if self._is_full(gathered, part=_SOON):
            return min(self._interval, max(upload_seconds / _OF_AN_UPLOAD[pipe.uploading > 1], _LEAST_WAIT))
        return self._interval

    def _is_full(self, gathered: Gathered, *, part: int) -> bool:
        return gathered.byte_count * part >= self._max_bytes or gathered.batch_count * part >= self._max_batches

    def _has_room(self, pipe: Pipe) -> bool:
        # Objects that wait for a slow commit count too: more of them would not be committed sooner.
        return pipe.uploading < self._uploads and pipe.uploading + pipe.uploaded < 2 * self._uploads

    def is_worth_an_upload(self, gathered: Gathered, pipe: Pipe) -> bool:
        """Whether to rotate now if no producer can send more: with less, objects would be too small and too many."""
        return self._has_room(pipe) and self._is_full(gathered, part=_SOON)

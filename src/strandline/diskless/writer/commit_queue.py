"""The order of commits: WAL objects are committed in the order of their rotation, whichever upload ends first. Pure.

A producer's batches keep the order of their arrival, so an object is committed only when those before it were
committed, or have failed for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

from strandline.diskless.writer.rotation import Pipe


class Ordered(Protocol):
    """The part of an object that the queue needs."""

    @property
    def batch_count(self) -> int:
        """How many batches it holds."""


F = TypeVar("F", bound=Ordered)


class CommitQueue(Generic[F]):
    """The objects in flight, oldest first. At most one group of them is being committed at any time."""

    def __init__(self, *, max_batches: int) -> None:
        self._max_batches = max_batches
        self._waiting: deque[F] = deque()
        self._uploading: set[F] = set()
        self._committing: Sequence[F] = ()

    def __iter__(self) -> Iterator[F]:
        return chain(self._committing, self._waiting)

    @property
    def pipe(self) -> Pipe:
        """How many objects are in each stage."""
        uploading = len(self._uploading)
        return Pipe(uploading, len(self._waiting) - uploading, len(self._committing))

    def rotated(self, file: F) -> None:
        """Add a new object behind all others."""
        self._waiting.append(file)
        self._uploading.add(file)

    def uploaded(self, file: F) -> None:
        """An object was uploaded, and may be committed when its turn comes."""
        self._uploading.remove(file)

    def failed(self, file: F) -> None:
        """An object could not be uploaded: objects behind it do not wait for it."""
        self._uploading.remove(file)
        self._waiting.remove(file)

    def begin_commit(self) -> Sequence[F]:
        """The next objects to commit in one call: all whose turn it is, up to the limit of one commit.

        Empty while another commit runs, or while the next object is still being uploaded.
        """
        if self._committing:
            return ()
        group: list[F] = []
        batches = 0
        while self._waiting and self._waiting[0] not in self._uploading:
            batches += self._waiting[0].batch_count
            if group and batches > self._max_batches:
                break
            group.append(self._waiting.popleft())
        self._committing = group
        return group

    def end_commit(self) -> None:
        """The commit under way has ended, with or without success."""
        self._committing = ()

    def abandon(self) -> tuple[Sequence[F], Sequence[F]]:
        """Remove all objects: returns those of the commit under way, and the others."""
        committing, waiting = self._committing, tuple(self._waiting)
        self._committing = ()
        self._waiting.clear()
        self._uploading.clear()
        return committing, waiting

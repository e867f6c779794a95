"""Segments in remote log metadata that is not there: an error with a sentence, whenever it happens."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from strandline.errors import KafkaStorageError
from strandline.hybrid.conversion.remote_segments import find_segment, segment_before
from strandline.remote.ports import RemoteStorageError
from tests.partitions import id_partition

P = id_partition(UUID(int=7), 3)


class Unready:
    """A tier whose metadata is just being read again."""

    @property
    def manager(self) -> Unready:
        return self

    @property
    def pipeline(self) -> Unready:
        return self

    def find(self, *_: object) -> None:
        raise RemoteStorageError("It is not ready.")

    ending_at = find


def test_metadata_may_become_unready_at_any_time() -> None:
    tier = cast(Any, Unready())
    for look in (lambda: find_segment(tier, P, UUID(int=1)), lambda: segment_before(tier, P, 5, 3)):
        with pytest.raises(KafkaStorageError, match=r"Remote storage is not available for .*: It is not ready\."):
            look()
    assert segment_before(tier, P, 0, 3) is None

"""Reads the logs of replicas from the directories of brokers that were stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from chaos.history import Replica, StoredBatch
from chaos.values import Place
from strandline.log.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, read_offsets
from strandline.model import TopicPartition
from strandline.records import crc_matches, iter_headers

_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_DIGITS: Final = 16


def read_replica(directory: Path, broker: int, place: Place, assigned: list[int]) -> Replica | None:
    """One partition in the directory of a broker; None if it has none. Raises OSError and StrandlineError."""
    topic, partition = place
    path = directory / f"{topic}-{partition}"
    if not path.is_dir():
        return None
    segments = sorted(one for one in path.iterdir() if _SEGMENT.fullmatch(one.name))
    starts = read_offsets(str(directory / LOG_START_OFFSETS))
    first = int(segments[0].stem) if segments else 0
    return Replica(
        broker=broker,
        topic=topic,
        partition=partition,
        assigned=assigned,
        start=max(first, starts.get(TopicPartition(*place), 0)),
        high_watermark=read_offsets(str(directory / HIGH_WATERMARKS)).get(TopicPartition(*place), 0),
        batches=[batch for segment in segments for batch in _batches(segment)],
    )


def _batches(segment: Path) -> Iterator[StoredBatch]:
    data = segment.read_bytes()
    for position, header in iter_headers(data):
        digest = sha256(memoryview(data)[position : position + header.size]).hexdigest()[:_DIGITS]
        yield StoredBatch(
            offset=header.base_offset,
            next_offset=header.next_offset,
            digest=digest,
            is_whole=crc_matches(data, position, header),
        )

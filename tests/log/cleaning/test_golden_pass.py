"""A pass of Kafka's own cleaner, done again: same segments in, same bytes out.

The golden topics still hold what their last pass read, as `.deleted` files, beside what it wrote.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from strandline.log.cleaning.requests import CleaningRules, CleaningSource, GroupRequest, MapRequest
from strandline.log.cleaning.worker import build_map, clean_group
from strandline.records import BatchHeader, Codec, Record, iter_headers, read_records
from tests.golden import kafka_classic as kafka_classic

NO_LIMIT = 1e300


class KafkaPass(NamedTuple):
    """What Kafka did: which segments became one, what was dirty, where the pass ended."""

    topic: str
    delete_retention_ms: int
    groups: list[list[int]]
    first_dirty: int
    end: int

    @property
    def bases(self) -> list[int]:
        return [base for group in self.groups for base in group]


PASSES = [
    KafkaPass("fx-compact", 86_400_000, [[0, 156], [276], [360]], 276, 408),
    KafkaPass("fx-compact-fast", 100, [[0, 252, 300], [348], [396]], 396, 444),
    KafkaPass("fx-compact-delete", 86_400_000, [[0, 96], [156], [252]], 156, 300),
    KafkaPass("fx-compact-txn", 86_400_000, [[0], [66], [90], [114]], 90, 138),
]


def name(base: int, ending: str) -> str:
    return f"{base:020d}{ending}"


def batches(data: bytes) -> list[tuple[BatchHeader, list[Record]]]:
    return [(header, read_records(data[at : at + header.size])) for at, header in iter_headers(data)]


def sources_of(kafka: Path, work: Path, cleaning: KafkaPass) -> list[CleaningSource]:
    """The segments that Kafka's pass read."""
    sources = []
    for base, next_base in zip(cleaning.bases, [*cleaning.bases[1:], cleaning.end], strict=True):
        path = work / name(base, ".log")
        shutil.copyfile(kafka / name(base, ".log.deleted"), path)
        sources.append(
            CleaningSource(base_offset=base, next_base_offset=next_base, path=str(path), size=path.stat().st_size)
        )
    return sources


def rules_of(kafka: Path, cleaning: KafkaPass) -> CleaningRules:
    """Kafka's pass left its time in the delete horizons it set."""
    horizons = [
        header.delete_horizon_ms or 0
        for group in cleaning.groups
        for _, header in iter_headers((kafka / name(group[0], ".log")).read_bytes())
    ]
    return CleaningRules(
        now_ms=max(horizons) - cleaning.delete_retention_ms,
        delete_retention_ms=cleaning.delete_retention_ms,
        end_offset=cleaning.end,
    )


@pytest.mark.parametrize("cleaning", PASSES, ids=lambda cleaning: cleaning.topic)
def test_the_output_is_kafkas(cleaning: KafkaPass, kafka_classic: Path, tmp_path: Path) -> None:
    kafka = kafka_classic / "classic" / f"{cleaning.topic}-0"
    sources = sources_of(kafka, tmp_path, cleaning)
    mapped = build_map(
        MapRequest(
            token=1,
            sources=tuple(source for source in sources if source.base_offset >= cleaning.first_dirty),
            start_offset=cleaning.first_dirty,
            aborted=(),
            budget_bytes=1 << 24,
            max_bytes_per_second=NO_LIMIT,
        )
    )
    assert mapped.end_offset == cleaning.end
    for group in cleaning.groups:
        clean_group(
            GroupRequest(
                token=1,
                directory=str(tmp_path),
                sources=tuple(source for source in sources if source.base_offset in group),
                rules=rules_of(kafka, cleaning),
                index_interval_bytes=512,
                max_bytes_per_second=NO_LIMIT,
            )
        )
        assert_equal(kafka, tmp_path, group[0])


def assert_equal(kafka: Path, ours: Path, base: int) -> None:
    """The same bytes; where a batch had to be compressed again, the same fields and records."""
    expected = (kafka / name(base, ".log")).read_bytes()
    actual = (ours / name(base, ".log.cleaned")).read_bytes()
    if all(header.codec is Codec.NONE for _, header in iter_headers(expected)):
        assert actual == expected
        for index in (".index", ".timeindex"):
            assert (ours / name(base, index + ".cleaned")).read_bytes() == (kafka / name(base, index)).read_bytes()
        return
    for (header, records), (kafkas, kafkas_records) in zip(batches(actual), batches(expected), strict=True):
        assert records == kafkas_records
        if header.codec is not Codec.NONE:
            kafkas = kafkas._replace(batch_length=header.batch_length, crc=header.crc)
        assert header == kafkas

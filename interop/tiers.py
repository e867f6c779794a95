"""Brokers with tiered storage, Strandline or Kafka, over one directory of remote segments that both can read.

Kafka's LocalTieredStorage and our store lay out segments alike, so that either one finds what the other has copied.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import kafka

from interop.broker import CACHE, Target, strandline

METADATA_TOPIC = "__remote_log_metadata"
METADATA_PARTITIONS = 3
SECONDS = 120.0

# Everything that waits for a timer happens soon.
SOON = {
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "rlmm.config.remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
}


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """The files of one segment in the remote directory, by what is behind the dot: log, index, snapshot, ..."""

    partition: str
    topic_id: str
    base_offset: int
    segment_id: str
    files: Mapping[str, Path]


@contextmanager
def tiered_broker(
    kind: str, name: str, remote: Path, *, log_dir: Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Target]:
    """A "strandline" or "kafka" whose remote segments are below `remote`; `log_dir` is one that exists already."""
    wanted = {**SOON, **(settings or {})}
    if kind == "strandline":
        wanted |= {"remote.log.storage.system.enable": "true"}
        wanted |= {"rsm.config.url": f"file://{remote / 'kafka-tiered-storage'}"}
        wanted |= {"log.dirs": str(log_dir), "node.id": "1"} if log_dir else {}
        with strandline(name, wanted) as us:
            yield Target(kind, name, us.bootstrap, log_dir or us.log_dir, wanted)
        return
    directory = log_dir or fresh(f"{name}-kafka")
    tiered = {**kafka.tiered_settings(remote), **wanted}
    plugins = kafka.install_tiered_storage()
    with kafka.KafkaBroker(kafka.install(), directory, settings=tiered, plugins=plugins) as broker:
        yield Target(kind, name, broker.bootstrap, directory, wanted)


def fresh(name: str) -> Path:
    """A directory of the cache that is not there yet."""
    directory = CACHE / "brokers" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory


def remote_segments(remote: Path) -> list[RemoteSegment]:
    """All segments of the remote directory, in order of their partition and offset."""
    found: dict[tuple[str, str, int, str], dict[str, Path]] = {}
    for path in remote.glob("kafka-tiered-storage/*/*"):
        name = re.fullmatch(r"(\d{20})-([\w-]{22})\.(\w+)", path.name)
        if name:  # files that are still being written have other names
            partition, topic_id = path.parent.name[:-23], path.parent.name[-22:]
            found.setdefault((partition, topic_id, int(name[1]), name[2]), {})[name[3]] = path
    return [RemoteSegment(*place, found[place]) for place in sorted(found)]


def as_local_files(segments: list[RemoteSegment], directory: Path) -> Path:
    """Links to remote files under the names that a broker gives its own, which Kafka's tools read offsets from.

    Each segment has a directory to itself: two copies of one segment may be there.
    """
    shutil.rmtree(directory, ignore_errors=True)
    for segment in segments:
        own = directory / f"{segment.partition}-{segment.segment_id}"
        own.mkdir(parents=True)
        for suffix, path in segment.files.items():
            os.link(path, own / f"{segment.base_offset:020d}.{suffix}")
    return directory


def local_bases(log_dir: Path, partition: str) -> list[int]:
    """Where the local segments of a partition begin."""
    return sorted(int(path.stem) for path in (log_dir / partition).glob("*.log"))


def is_copied(log_dir: Path, remote: Path, partition: str, *, is_local_part_gone: bool) -> bool:
    """Whether every closed segment of a partition is remote, and (if asked for) the first local ones are deleted."""
    local = local_bases(log_dir, partition)
    copied = {segment.base_offset for segment in remote_segments(remote) if segment.partition == partition}
    return bool(copied) and copied.issuperset(local[:-1]) and not (is_local_part_gone and local[0] == 0)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Look every now and then. Raises TimeoutError that says `what` did not happen."""
    deadline = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {SECONDS:g} s")
        time.sleep(0.2)

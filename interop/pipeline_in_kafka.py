"""Segments of the pipeline under a Kafka that has never seen them: as files of its own log, and as its remote tier."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping
from pathlib import Path

from bench import kafka

from interop.dump_tool import Complaint
from interop.kafka_topic_ids import change_topic_ids, topic_id_of
from interop.records import Records, create_topics, read_all
from interop.tiers import (
    METADATA_PARTITIONS,
    METADATA_TOPIC,
    RemoteSegment,
    fresh,
    remote_segments,
    tiered_broker,
    wait_until,
)
from strandline.client import Cluster
from strandline.records.batch import iter_headers
from strandline.wire.api import ApiKey
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

NAME = "pipeline-in-kafka"
_FETCH_BYTES = 1 << 20


class SegmentsInKafka:
    """The segments that a stopped broker has left in its remote directory, and the records that are in them."""

    def __init__(
        self,
        remote: Path,
        log_dir: Path,
        topics: Mapping[str, Mapping[str, str]],
        partitions: int,
        records: Records,
        log_file: Path,
    ) -> None:
        self._remote, self._source, self._records, self._log_file = remote, log_dir, records, log_file
        self._names, self._count = tuple(topics), partitions
        kept = {"index.interval.bytes", "retention.ms", "message.timestamp.type"}
        self._topics = {
            name: {key: value for key, value in config.items() if key in kept} for name, config in topics.items()
        }

    def serve_as_log(self, *, is_clean: bool) -> None:
        """Kafka serves every byte of them from its own log. After an unclean stop it checks every batch first."""
        data_dir = fresh(f"{NAME}-log")
        with kafka.KafkaBroker(kafka.install(), data_dir) as broker:
            create_topics(broker.bootstrap, self._topics, self._count)
        for partition, segments in self._partitions().items():
            _put_segments(data_dir / partition, segments)
        (data_dir / "recovery-point-offset-checkpoint").unlink()
        (data_dir / "replication-offset-checkpoint").unlink()
        if not is_clean:
            (data_dir / ".kafka_cleanshutdown").unlink()
        with kafka.KafkaBroker(kafka.install(), data_dir) as broker:
            self._must_serve(broker.bootstrap)
            for partition, segments in self._partitions().items():
                expected = b"".join(segment.files["log"].read_bytes() for segment in segments)
                if _fetch(broker.bootstrap, partition) != expected:
                    raise Complaint(f"Kafka does not serve the bytes of {partition}")

    def serve_as_tier(self) -> None:
        """Kafka serves them from remote storage: its log begins where they end, and the metadata is ours."""
        data_dir, remote = fresh(f"{NAME}-tier"), fresh(f"{NAME}-tier-remote")
        tiered = {name: {**config, "remote.storage.enable": "true"} for name, config in self._topics.items()}
        with tiered_broker("kafka", NAME, remote, log_dir=data_dir) as broker:
            create_topics(broker.bootstrap, tiered, self._count)
            own = f"{METADATA_TOPIC}-*"
            wait_until(lambda: len([*data_dir.glob(own)]) == METADATA_PARTITIONS, "Kafka's own metadata topic")
        partitions = self._partitions()
        ids = {
            topic_id_of(data_dir / name): base64.urlsafe_b64decode(segments[0].topic_id + "==")
            for name, segments in partitions.items()
        }
        metadata = [f"{METADATA_TOPIC}-{number}" for number in range(METADATA_PARTITIONS)]
        ids |= {topic_id_of(data_dir / name): topic_id_of(self._source / name) for name in metadata}
        change_topic_ids(data_dir, ids)
        for name in metadata:
            shutil.rmtree(data_dir / name)
            shutil.copytree(self._source / name, data_dir / name)
        for name, segments in partitions.items():
            _put_end(data_dir / name, segments)
        starts = [f"{name.rpartition('-')[0]} {name.rpartition('-')[2]} 0\n" for name in partitions]
        (data_dir / "log-start-offset-checkpoint").write_text(f"0\n{len(starts)}\n{''.join(starts)}")
        for checkpoint in ("recovery-point", "replication"):
            shutil.copy(self._source / f"{checkpoint}-offset-checkpoint", data_dir)
        shutil.rmtree(remote)
        shutil.copytree(self._remote, remote)
        with tiered_broker("kafka", NAME, remote, log_dir=data_dir) as broker:
            self._must_serve(broker.bootstrap)

    def _must_serve(self, bootstrap: str) -> None:
        now = read_all(bootstrap, self._names, self._count)
        differ = [place for place in self._records.keys() | now.keys() if self._records.get(place) != now.get(place)]
        with self._log_file.open("a") as log:
            log.write(f"Kafka serves {len(now)} records, {len(self._records)} expected; {len(differ)} differ\n")
        if differ or not now:
            raise Complaint(f"missing or different: {sorted(differ)[:10]}")

    def _partitions(self) -> dict[str, list[RemoteSegment]]:
        """The segments by partition, in order."""
        found: dict[str, list[RemoteSegment]] = {}
        for segment in remote_segments(self._remote):
            found.setdefault(segment.partition, []).append(segment)
        if len(found) != len(self._names) * self._count or any(len(segments) < 2 for segments in found.values()):
            raise Complaint(f"there are not several segments of every partition: {list(found)}")
        return found


def _put_segments(directory: Path, segments: list[RemoteSegment]) -> None:
    """Make them the files of a partition that Kafka has created."""
    for old in directory.iterdir():
        if old.name != "partition.metadata":
            old.unlink()
    nexts = [segment.base_offset for segment in segments[1:]]
    for segment, next_offset in zip(segments, [*nexts, None], strict=True):
        for kind in ("log", "index", "timeindex"):
            shutil.copy(segment.files[kind], directory / f"{segment.base_offset:020d}.{kind}")
        if next_offset is not None:  # the state of producers before the next segment
            shutil.copy(segment.files["snapshot"], directory / f"{next_offset:020d}.snapshot")
    shutil.copy(segments[-1].files["leader_epoch_checkpoint"], directory / "leader-epoch-checkpoint")


def _put_end(directory: Path, segments: list[RemoteSegment]) -> None:
    """Make a partition that Kafka has created begin after them."""
    topic_id = f"version: 0\ntopic_id: {segments[0].topic_id}"
    shutil.rmtree(directory)
    directory.mkdir()
    end = _end_offset(segments[-1])
    (directory / "partition.metadata").write_text(topic_id)
    (directory / f"{end:020d}.log").touch()
    shutil.copy(segments[-1].files["snapshot"], directory / f"{end:020d}.snapshot")
    shutil.copy(segments[-1].files["leader_epoch_checkpoint"], directory / "leader-epoch-checkpoint")


def _end_offset(segment: RemoteSegment) -> int:
    headers = [header for _, header in iter_headers(segment.files["log"].read_bytes())]
    return headers[-1].next_offset


def _fetch(bootstrap: str, partition: str) -> bytes:
    """All bytes of a partition, as a consumer gets them."""
    name, _, number = partition.rpartition("-")
    found, position = b"", 0
    with Cluster(bootstrap) as cluster:
        (topic,) = cluster.metadata([name]).topics
        leader = next(row.leader_id for row in topic.partitions if row.partition_index == int(number))
        while True:
            wanted = FetchPartition(partition=int(number), fetch_offset=position, partition_max_bytes=_FETCH_BYTES)
            request = FetchTopic(topic=name, topic_id=topic.topic_id, partitions=[wanted])
            answer = cluster.broker(leader).request(
                ApiKey.FETCH, FetchRequest(max_bytes=_FETCH_BYTES, topics=[request])
            )
            data = answer.responses[0].partitions[0].records or b""
            headers = list(iter_headers(data))
            if not headers:
                return found
            at, last = headers[-1]
            found, position = found + bytes(data[: at + last.size]), last.next_offset

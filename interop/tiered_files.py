"""What a stopped broker has left behind, in the hands of Kafka's dump tool: remote files, and their metadata."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import kafka

from interop.dump_tool import Complaint, dump
from interop.tiered_topics import LOG_FILE, NAME
from interop.tiers import METADATA_TOPIC, as_local_files, fresh, remote_segments


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """What a stopped broker has left in its remote directory, and in its log directory."""

    remote: Path
    log_dir: Path
    log_file: Path = LOG_FILE

    def must_be_accepted(self, kinds: Sequence[str], *options: str) -> None:
        """Kafka's dump tool accepts every remote file of these kinds, and no segment lacks a file that it needs."""
        segments = remote_segments(self.remote)
        for segment in segments:
            missing = {"log", "index", "timeindex", "snapshot", "leader_epoch_checkpoint"} - segment.files.keys()
            if missing:
                raise Complaint(f"segment {segment.base_offset} of {segment.partition} has no {', '.join(missing)}")
        directory = as_local_files(segments, fresh(f"{NAME}-dumped"))
        files = [path for kind in kinds for path in directory.glob(f"*/*.{kind}")]
        dump(kafka.install(), files, *options, log_file=self.log_file)

    def metadata_must_fit(self) -> None:
        """Kafka's decoder says of every segment in the remote directory, and of no other, that its copy is finished."""
        partitions = sorted(self.log_dir.glob(f"{METADATA_TOPIC}-*/*.log"))
        said = dump(kafka.install(), partitions, "--remote-log-metadata-decoder", log_file=self.log_file)
        states = {}
        for line in said.splitlines():
            segment = re.search(r"RemoteLogSegmentId\{.*?id=([\w-]{22})\}.* state=(\w+)", line)
            if segment:
                states[segment[1]] = segment[2]
        finished = {segment for segment, state in states.items() if state == "COPY_SEGMENT_FINISHED"}
        in_store = {segment.segment_id for segment in remote_segments(self.remote)}
        with self.log_file.open("a") as file:
            file.write(f"{len(states)} segments are known, {len(finished)} finished, {len(in_store)} in the store\n")
        if finished != in_store or set(states.values()) - {"COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_FINISHED"}:
            raise Complaint(f"metadata and store differ in {finished ^ in_store}: {states}")

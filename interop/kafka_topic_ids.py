"""Gives topics of a stopped Kafka other ids, in its metadata log.

Remote segments are found by topic id, and Kafka chooses ids itself. So a Kafka that is to serve a tiered topic of
another cluster creates a topic of that name, and is then told what its id is.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from strandline.records.batch import iter_headers, renew_crc


def topic_id_of(partition: Path) -> bytes:
    """The topic id in the partition.metadata of a partition's directory."""
    text = (partition / "partition.metadata").read_text().rpartition("topic_id: ")[2].strip()
    return base64.urlsafe_b64decode(text + "==")


def change_topic_ids(data_dir: Path, new_ids: Mapping[bytes, bytes]) -> None:
    """Replace ids wherever the metadata log and its snapshots have them. Ids are as long as before: offsets stay."""
    directory = data_dir / "__cluster_metadata-0"
    for path in (*directory.glob("*.log"), *directory.glob("*.checkpoint")):
        data = path.read_bytes()
        for old, new in new_ids.items():
            data = data.replace(old, new)
        changed = bytearray(data)
        for position, _ in iter_headers(data):
            renew_crc(changed, position)
        path.write_bytes(changed)

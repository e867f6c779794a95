"""The changes of a commit as rows of the database, and its answers as text."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strandline.controlplane.assignment import OffsetAssignment
from strandline.controlplane.producer_rows import pack_spans
from strandline.controlplane.values import CommittedBatch, FileToCommit, Refusal


class Changes(NamedTuple):
    """Rows with the columns of the statements, in their order. `rows` begin with the key of their file."""

    files: list[tuple[object, ...]]
    rows: list[tuple[object, ...]]
    logs: list[tuple[object, ...]]
    producers: list[tuple[object, ...]]
    aborted: list[tuple[object, ...]]


def changes_of(
    order: OffsetAssignment, files: Sequence[FileToCommit], answers: Mapping[str, Sequence[CommittedBatch]]
) -> Changes:
    """The rows to write once the batches of the files have offsets."""
    used = {row.object_key for row in order.rows}
    return Changes(
        files=[
            (key, file.broker_id, file.size, key in used, encode_answers(answers[key]))
            for file in files
            for key in (file.object_key,)
        ],
        rows=[
            (
                row.object_key,
                row.log.log_id,
                row.last_offset,
                row.base_offset,
                row.byte_offset,
                row.byte_size,
                int(row.timestamp_type),
                row.max_timestamp,
                row.running_max_timestamp,
                row.leader_epoch,
            )
            for row in order.rows
        ],
        logs=[
            (
                log.log_id,
                log.high_watermark,
                log.added_bytes,
                log.max_timestamp,
                log.last_epoch,
                log.first_unstable_offset,
                log.last_aborted_offset,
            )
            for log in order.changed_logs.values()
        ],
        producers=[
            (
                log_id,
                producer_id,
                entry.epoch,
                entry.last_timestamp,
                pack_spans(entry.batches),
                entry.txn_first_offset,
                entry.coordinator_epoch,
                entry.txn_ended_ms,
            )
            for (log_id, producer_id), entry in order.changed_producers.items()
        ],
        aborted=[(log_id, one[2], one[1], one[0], one[3]) for log_id, one in order.aborted],
    )


def encode_answers(answers: Sequence[CommittedBatch]) -> str:
    """The answers as text, kept with the file for a commit that is repeated. Compressed: they are much alike."""
    rows = [(answer.refusal.name if answer.refusal else None, *answer[1:]) for answer in answers]
    return base64.b85encode(zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)).decode()


def decode_answers(text: str) -> tuple[CommittedBatch, ...]:
    """The inverse of `encode_answers`."""
    rows = json.loads(zlib.decompress(base64.b85decode(text)))
    return tuple(CommittedBatch(Refusal[row[0]] if row[0] else None, *row[1:]) for row in rows)

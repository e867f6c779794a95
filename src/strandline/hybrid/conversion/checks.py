"""What requests of the tiering API have to be like, whatever the state of the cluster. Pure.

Every client that reaches the listener can send them: a request must not name an object that is not the pipeline's, nor
hold a claim forever.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from strandline.conversion_api.values import NewSplit
from strandline.diskless.wal import split_keys
from strandline.errors import InvalidRequest
from strandline.model import INT64_MAX

LONGEST_CLAIM_MS: Final = 24 * 3_600_000
_LONGEST_CLAIMANT: Final = 200


def check_claimant(claimant: str) -> None:
    """Raises InvalidRequest."""
    if not claimant.strip() or len(claimant) > _LONGEST_CLAIMANT or not claimant.isprintable():
        raise InvalidRequest(
            f"A claimant has to be named, with at most {_LONGEST_CLAIMANT} characters, all of which can be printed."
        )


def check_claim_ms(claim_ms: int) -> None:
    """Raises InvalidRequest."""
    if not 0 < claim_ms <= LONGEST_CLAIM_MS:
        raise InvalidRequest(f"claim_ms has to be greater than 0 and at most {LONGEST_CLAIM_MS}, which is a day.")


def check_split(split: NewSplit) -> None:
    """Its key is that of a split file of its partition and offset, and its contents can be. Raises InvalidRequest."""
    partition, file = split
    key = split_keys.parse(file.object_key)
    if key is None or (key.topic_id, key.partition, key.base_offset) != (
        partition.topic_id,
        partition.partition,
        file.base_offset,
    ):
        raise InvalidRequest(
            f"{file.object_key!r} is not the key of a split file of {partition} that begins with offset "
            f"{file.base_offset}."
        )
    epochs = file.leader_epochs
    is_ascending = all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(epochs))
    if (
        not 0 <= file.base_offset <= file.last_offset < INT64_MAX
        or file.size_bytes <= 0
        or not 0 < file.batch_count <= file.last_offset - file.base_offset + 1
        or not epochs
        or epochs[0][1] != file.base_offset
        or epochs[-1][1] > file.last_offset
        or epochs[0][0] < 0
        or not is_ascending
    ):
        raise InvalidRequest(
            f"The split file {file.object_key} cannot have {file.batch_count} batches with {file.size_bytes} bytes, "
            f"the offsets {file.base_offset} to {file.last_offset} and the leader epochs {list(epochs)}."
        )

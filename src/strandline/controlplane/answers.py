"""What a commit was told, in the form that is kept with the file for whoever asks again."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

from strandline.controlplane.values import CommittedBatch, Refusal


def encode_answers(answers: Sequence[CommittedBatch]) -> str:
    """Text: compressed, because the answers of one file are much alike."""
    rows = [(answer.refusal.name if answer.refusal else None, *answer[1:]) for answer in answers]
    return base64.b85encode(zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)).decode()


def decode_answers(text: str) -> tuple[CommittedBatch, ...]:
    """The inverse of `encode_answers`."""
    rows = json.loads(zlib.decompress(base64.b85decode(text)))
    return tuple(CommittedBatch(Refusal[row[0]] if row[0] else None, *row[1:]) for row in rows)

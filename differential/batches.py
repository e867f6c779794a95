"""Record batches that the seed decides, good ones and damaged ones."""

from __future__ import annotations

import random
from typing import Final

from tests.moments import T0

from strandline.records import Codec, Record, build_batch

OLD_CODECS: Final = (*(Codec.NONE,) * 5, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
"""Those of every version of Produce."""
CODECS: Final = (*OLD_CODECS, Codec.ZSTD)
FLAWS: Final = ("checksum", "length", "magic", "cut", "two", "header", "empty", "garbage", "control", "future", "count")
_SPREAD_MS: Final = 3_600_000
_WRONG_BYTES: Final = {"checksum": (-1, 1), "length": (8, 0xFF), "magic": (16, 3), "count": (60, 5)}


def times_of(dice: random.Random, count: int) -> list[int]:
    """Of yesterday, in no order."""
    first = T0 + dice.randrange(_SPREAD_MS)
    return [first + dice.randrange(-500, 1000) for _ in range(count)]


def batch(
    dice: random.Random,
    times: list[int],
    *,
    size: int = 200,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int] = (-1, -1),
    sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """One record for each time, with values of `size` bytes, half of which can be compressed."""
    records = [
        Record(offset, at, b"key-%d" % dice.randrange(9), dice.randbytes(size // 2) + b"v" * (size - size // 2))
        for offset, at in enumerate(times)
    ]
    return build_batch(
        records,
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )


def damaged(dice: random.Random, good: bytearray, flaw: str) -> bytes | None:
    """The same with a flaw of `FLAWS` that needs no other records. None: the field is null."""
    data = bytearray(good)
    if flaw in _WRONG_BYTES:
        position, bits = _WRONG_BYTES[flaw]
        data[position] ^= bits
    match flaw:
        case "cut":
            return bytes(data[: -dice.randrange(1, 20)])
        case "two":
            return bytes(2 * data)
        case "header":
            return bytes(data[: dice.randrange(1, 61)])
        case "empty":
            return dice.choice((b"", None))
        case "garbage":
            return dice.randbytes(100)
    return bytes(data)

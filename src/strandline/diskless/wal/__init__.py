"""The format of WAL objects: their layout, their footer, their keys. docs/wal-format.md describes every byte."""

from strandline.diskless.wal.footer import DamagedObject, Footer, WalExtent, parse_footer
from strandline.diskless.wal.format import (
    PackedObject,
    iter_batches,
    pack,
    read_footer,
    verify,
    verify_extent,
    verify_split,
)

__all__ = [
    "DamagedObject",
    "Footer",
    "PackedObject",
    "WalExtent",
    "iter_batches",
    "pack",
    "parse_footer",
    "read_footer",
    "verify",
    "verify_extent",
    "verify_split",
]

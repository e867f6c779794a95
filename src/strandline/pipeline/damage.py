"""Why bytes cannot be converted. The texts are sentences for the operator of the cluster.

A store that cannot be reached is none of these: its own errors say so, and trying again may help.
"""

from __future__ import annotations


class ConversionFailed(Exception):
    """Some bytes cannot be converted. Trying again does not help; nothing that counts has changed."""


class MissingObject(ConversionFailed):
    """An object that should hold records is not in the store."""


class DamagedWalObject(ConversionFailed):
    """A WAL object does not hold the batches that it should."""


class DamagedSplit(ConversionFailed):
    """A split file does not hold the batches that it should."""


class DamagedSegment(ConversionFailed):
    """The state at the end of the segment before, in remote storage, cannot be read."""

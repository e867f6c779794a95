"""Fixtures of the record tests."""

from tests.golden import kafka_classic

__all__ = ["kafka_classic"]

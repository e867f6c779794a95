"""Golden data for tests of the reader."""

from tests.golden import kafka_tiered as kafka_tiered

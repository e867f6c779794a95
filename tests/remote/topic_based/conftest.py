"""Kafka's tiered log directory, for all tests here."""

from tests.golden import kafka_tiered as kafka_tiered

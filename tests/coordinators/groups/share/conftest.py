"""What Kafka wrote about a share group."""

from tests.golden import kafka_classic as kafka_classic

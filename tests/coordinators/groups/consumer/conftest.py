"""Golden data for the tests of consumer groups."""

from __future__ import annotations

from tests.golden import kafka_classic as kafka_classic

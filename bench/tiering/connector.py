"""Spark's own Kafka connector: fetched once from Maven Central."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from bench.process import ProcessFailed

VERSION: Final = "4.2.0"
_CENTRAL: Final = "https://repo.maven.apache.org/maven2"
# The newest that Maven Central had when this was written, for Scala 2.13: they run in Spark 4.0 to 4.3. The classes of
# the token provider are used for passwords only. What else the connector needs is part of Spark.
_JARS: Final = (
    ("org/apache/spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org/apache/spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org/apache/kafka", "kafka-clients", "3.9.2"),
    ("org/apache/commons", "commons-pool2", "2.13.1"),
)
_SECONDS: Final = 120.0


def install(cache: Path) -> str:
    """The jars, as `spark.jars` wants them; fetches them when they are not there yet. Raises ProcessFailed."""
    directory = cache.resolve() / f"spark-kafka-{VERSION}"
    directory.mkdir(parents=True, exist_ok=True)
    return ",".join(str(_jar(directory, *jar)) for jar in _JARS)


def _jar(directory: Path, group: str, artifact: str, version: str) -> Path:
    jar = directory / f"{artifact}-{version}.jar"
    if not jar.exists():
        url = f"{_CENTRAL}/{group}/{artifact}/{version}/{jar.name}"
        partial = jar.with_suffix(".partial")
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
                partial.write_bytes(answer.read())
        except (urllib.error.URLError, TimeoutError) as error:
            raise ProcessFailed(f"Spark's Kafka connector cannot be fetched from {url}: {error}") from error
        partial.rename(jar)
    return jar

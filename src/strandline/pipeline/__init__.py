"""The tiering pipeline on Spark: aged diskless batches become ordinary tiered segments; and Spark reads topics.

Here: what reads and writes the bytes, the driver that asks brokers what to do and has Spark do it, and the data source.
Not here: what is converted, which brokers decide (`hybrid.conversion`). Spark, Arrow and Java are used in this package
only, and loaded by the modules that need them: importing the package loads none of them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["register"]


def register(spark: Any) -> None:
    """Make `spark.read.format("strandline")` and `spark.readStream.format("strandline")` known to a SparkSession."""
    from strandline.pipeline.source.datasource import register as register_source

    register_source(spark)

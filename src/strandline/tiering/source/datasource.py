"""The data source as Spark knows it, and its registration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from strandline.tiering.source.batch import FilteringBatchReader, TopicBatchReader
from strandline.tiering.source.options import parse_options
from strandline.tiering.source.schema import spark_schema
from strandline.tiering.source.stream import TopicStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


class StrandlineSource(DataSource):
    """Topics of a Strandline cluster, with the columns of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "strandline"

    def schema(self) -> str:
        text = self.options.get("includeHeaders", "false")
        return spark_schema(include_headers=text.strip().lower() == "true")

    def reader(self, schema: Any) -> DataSourceReader:
        options = parse_options(dict(self.options), is_stream=False)
        kind = FilteringBatchReader if options.push_filters and _passes_filters_on() else TopicBatchReader
        return kind(options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return TopicStreamReader(parse_options(dict(self.options), is_stream=True))


def register(spark: SparkSession) -> None:
    """Make `format("strandline")` known to a session, and let Spark pass filters on to it."""
    if _passes_filters_on():
        spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(StrandlineSource)


def _passes_filters_on() -> bool:
    """Spark does from version 4.1 on."""
    return hasattr(DataSourceReader, "pushFilters")

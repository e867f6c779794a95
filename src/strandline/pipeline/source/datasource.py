"""The data source as Spark knows it, and its registration."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkAttributeError
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from strandline.pipeline.source.batch import FilteringBatchReader, TopicBatchReader
from strandline.pipeline.source.options import parse_options
from strandline.pipeline.source.schema import spark_schema
from strandline.pipeline.source.stream import TopicStreamReader
from strandline.pipeline.source.workers import workers_with_strandline

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
    """Make `format("strandline")` known to a session, and let Spark pass filters on to it.

    Raises SourceFailed if the workers of the session run a Python that cannot load it, as far as that is known here.
    """
    if _passes_filters_on():
        spark.conf.set(_PUSHDOWN, "true")
    with _loadable(spark):
        spark.dataSource.register(StrandlineSource)


def _loadable(spark: SparkSession) -> AbstractContextManager[None]:
    try:
        context = spark.sparkContext
    except PySparkAttributeError:  # Spark Connect: only the server knows its workers
        return nullcontext()
    return workers_with_strandline(context)


def _passes_filters_on() -> bool:
    """Spark does from version 4.1 on."""
    return hasattr(DataSourceReader, "pushFilters")

"""A Spark session for each module that wants one: starting it is most of what these tests cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from strandline.pipeline.session import SparkOptions, open_session
from tests.spark.scene import MASTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Spark on this machine, with two cores."""
    with open_session(SparkOptions(master=MASTER, has_ui=False)) as session:
        yield session

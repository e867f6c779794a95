"""Which Python the workers of a Spark session run: they load the data source, so it has to have this package.

Spark takes `python3` from the PATH unless PYSPARK_PYTHON names another one. In a virtual environment that was not
activated, that is the machine's, and queries end with ModuleNotFoundError.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from strandline.pipeline.session import is_local
from strandline.pipeline.source.errors import SourceFailed

logger = logging.getLogger(__name__)

_UNNAMED: Final = "python3"
_LOADS: Final = "import strandline.pipeline.source.datasource"
_ANSWER_SECONDS: Final = 60


class WorkerContext(Protocol):
    """The part of a SparkContext that says where workers run, and in what."""

    master: str | None
    pythonExec: str


@contextmanager
def workers_with_strandline(context: WorkerContext) -> Iterator[None]:
    """What is registered in this block is run by workers that can load it. Raises SourceFailed.

    Workers on this machine run this program's Python unless the user named another one, which is tried. What the
    machines of a cluster have is not known here: if the user did not name their Python, the log says what to set.
    """
    named = context.pythonExec
    if not is_local(context.master):
        if named == _UNNAMED:
            logger.warning(
                "Spark's workers run the python3 of their machines. If that one has no strandline, queries fail with "
                "ModuleNotFoundError: name one that has in PYSPARK_PYTHON before the session starts, or with "
                "spark-submit --conf spark.pyspark.python=PATH."
            )
        yield
        return
    if named == _UNNAMED:
        context.pythonExec = sys.executable
    elif not _has_strandline(named):
        raise SourceFailed(
            f"Spark's workers run {named}, which cannot load strandline: set PYSPARK_PYTHON={sys.executable} before "
            "the session starts (spark-submit: --conf spark.pyspark.python=...), or install strandline there."
        )
    try:
        yield
    finally:
        context.pythonExec = named


def _has_strandline(python: str) -> bool:
    if shutil.which(python) == sys.executable:
        return True
    try:
        found = subprocess.run([python, "-c", _LOADS], capture_output=True, timeout=_ANSWER_SECONDS, check=False)
    except OSError:
        return False
    except subprocess.TimeoutExpired:
        return True  # slow, which says nothing about what it has
    return found.returncode == 0

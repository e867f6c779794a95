"""Asks the executors, before there is work, whether they have what it takes: this package, and the stores."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from strandline.errors import StrandlineError
from strandline.objects import ObjectStoreError
from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.session import SparkOptions, before_deadline
from strandline.pipeline.stores import StoreSettings, open_stores
from strandline.remote.ports import RemoteStorageError

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

_GROUP: Final = "strandline-probe"
_HOW: Final = "docs/tiering.md says how to give a cluster the package and what it needs."


def check_executors(
    context: SparkContext, stores: StoreSettings, options: SparkOptions, *, must_have_stores: bool
) -> None:
    """Raises PipelineFailed if no executor takes a task in time, or cannot do it."""
    from py4j.protocol import Py4JError

    def ask() -> list[str]:
        context.setJobGroup(_GROUP, "look at the executors and their stores", interruptOnCancel=True)
        context.setLocalProperty("callSite.short", "look at the executors")
        return context.runJob(context.parallelize([""], 1), functools.partial(probe_task, stores=stores))

    try:
        answers = before_deadline(ask, options.start_seconds)
    except Py4JError as error:
        raise PipelineFailed(_reason(str(error))) from error
    if answers is None:
        context.cancelJobGroup(_GROUP)
        raise PipelineFailed(
            f"No executor of {context.master} has taken a task within {options.start_seconds:.0f} s. Has the cluster "
            "workers with free cores and memory? Its page says what they do."
        )
    (trouble,) = answers
    if trouble and must_have_stores:
        raise PipelineFailed(trouble)
    if trouble:
        logger.warning("executors cannot reach the stores yet: %s", trouble)


def probe_task(rows: Iterable[str], stores: StoreSettings) -> Iterator[str]:
    """On an executor: what is wrong there, a sentence; empty if nothing is."""
    return iter([asyncio.run(_probe(stores)) for _ in rows])


async def _probe(settings: StoreSettings) -> str:
    try:
        async with open_stores(settings):
            return ""
    except (StrandlineError, ObjectStoreError, RemoteStorageError, OSError) as error:
        return f"The executor on {socket.gethostname()} cannot use the stores: {error}"


def _reason(text: str) -> str:
    if "No module named" in text:
        missing = text.partition("No module named")[2].split("\n")[0].strip(" '\"")
        return f"The Python of the executors has no module {missing}. {_HOW}"
    if "PYTHON_VERSION_MISMATCH" in text:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return (
            f"The executors have another version of Python than this program, which has {version}: name one of that "
            f"version in PYSPARK_PYTHON. {_HOW}"
        )
    lines = [line.strip() for line in text.splitlines() if "Error: " in line or "Exception: " in line]
    return f"The executors cannot run a task: {lines[-1] if lines else text.strip()[:300]}. {_HOW}"

"""What a storage for segments should hold: nothing that the metadata topic does not describe, and all that it does."""

from __future__ import annotations

import os
import re
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strandline.admin.commands.dump.remote_records import rows_of_cluster
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from tests.broker import BrokerProcess
from tests.s3 import S3
from tests.waiting import wait_until

SECONDS = 60.0
FINISHED = "COPY_SEGMENT_FINISHED"
WHOLE = {"log", "index", "timeindex", "snapshot", "leader_epoch_checkpoint"}

Listing = Callable[[], list[str]]


def list_directory(directory: Path) -> list[str]:
    """The keys of all objects of segments in a directory store."""
    found = os.walk(directory)  # which does not mind that directories go meanwhile
    return [
        os.path.relpath(os.path.join(where, name), directory)
        for where, _, names in found
        if not where.endswith("/.uploads")  # what a crash cut short is no object, and goes at a later start
        for name in names
        if name != REMOTE_STORE_ID_KEY
    ]


def list_bucket(s3: S3, url: str) -> list[str]:
    """The keys of all objects of segments below a prefix."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    with urllib.request.urlopen(f"{s3.endpoint}/{bucket}?list-type=2&prefix={prefix}/", timeout=SECONDS) as answer:
        found = answer.read().decode()
    assert "<IsTruncated>false" in found, "too many objects for one answer"
    keys = [key.removeprefix(f"{prefix}/") for key in re.findall("<Key>(.*?)</Key>", found)]
    return [key for key in keys if key != REMOTE_STORE_ID_KEY]


def s3_settings(s3: S3, url: str, *, port: int | None = None) -> dict[str, str]:
    """Of a broker that keeps segments there; `port` is that of a link in front of the server."""
    return {
        "rsm.config.url": url,
        "rsm.config.storage.s3.endpoint.url": s3.endpoint if port is None else f"http://127.0.0.1:{port}",
        "rsm.config.storage.s3.region": "us-east-1",
        "rsm.config.storage.aws.access.key.id": "test",
        "rsm.config.storage.aws.secret.access.key": "test-secret",
        "rsm.config.storage.s3.api.call.timeout": "4000",
        "rsm.config.storage.s3.api.call.attempt.timeout": "2000",
        "remote.log.manager.task.retry.backoff.max.ms": "500",
    }


def described(broker: BrokerProcess) -> dict[str, dict[str, Any]]:
    """The segments that the metadata topic knows of, by id: the first record about each, with the newest state."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows_of_cluster(broker.bootstrap):
        if "start_offset" in row:
            found[row["segment_id"]] = dict(row)
        elif "segment_id" in row:
            found[row["segment_id"]]["state"] = row["state"]
    return {name: row for name, row in found.items() if row["state"] != "DELETE_SEGMENT_FINISHED"}


def differences(broker: BrokerProcess, listing: Listing) -> list[str]:
    """What is wrong with the storage; it takes a while after a crash until that is nothing."""
    known = described(broker)
    present: dict[str, set[str]] = {}
    for key in listing():
        name, _, suffix = key.rpartition("/")[2].partition(".")
        present.setdefault(name.partition("-")[2], set()).add(suffix)
    wrong = [f"segment {name} is {row['state']}" for name, row in known.items() if row["state"] != FINISHED]
    wrong += [f"no metadata refers to {name}: {files}" for name, files in present.items() if name not in known]
    wrong += [
        f"{WHOLE - present.get(name, set())} of {name} are missing" for name in known if not _is_whole(name, present)
    ]
    return [*wrong, *_overlaps(known)]


def _is_whole(name: str, present: Mapping[str, set[str]]) -> bool:
    return present.get(name, set()) >= WHOLE


def _overlaps(known: Mapping[str, dict[str, Any]]) -> list[str]:
    wrong: list[str] = []
    ends: dict[tuple[str, int], int] = {}
    for row in sorted(known.values(), key=lambda row: (row["topic"], row["partition"], row["start_offset"])):
        place = (row["topic"], row["partition"])
        if row["start_offset"] <= ends.get(place, -1):
            wrong.append(f"{row['start_offset']} to {row['end_offset']} of {place} is there twice")
        ends[place] = row["end_offset"]
    return wrong


def wait_tidy(broker: BrokerProcess, listing: Listing) -> None:
    """Wait until the storage holds complete segments, each once, and nothing else."""

    def is_tidy() -> bool:
        found = differences(broker, listing)
        last[:] = found
        return not found

    last: list[str] = []
    try:
        wait_until(is_tidy, within=SECONDS, step=0.2, what="a tidy storage")
    except AssertionError as error:
        raise AssertionError(f"{error}: {last[:10]}") from None

"""Requests and responses of real clients, recorded with Apache Kafka 4.3.1."""

from __future__ import annotations

import json
import re
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).parent.parent / "data" / "kafka-4.3.1-wire.tar.xz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One recorded frame, without its length, and what Kafka says it means."""

    client: str
    api_key: int
    api_name: str
    api_version: int
    is_request: bool
    exchange: int
    data: bytes
    header: dict[str, Any]
    decoded: dict[str, Any] | None
    unread_bytes: int

    def __str__(self) -> str:
        side = "request" if self.is_request else "response"
        return f"{self.client}-{self.api_name}-v{self.api_version}-{side}-{self.exchange}"


@cache
def golden_frames() -> tuple[Frame, ...]:
    """All frames that were recorded to their end."""
    frames: list[Frame] = []
    with tarfile.open(ARCHIVE) as tar:
        for name in sorted(tar.getnames()):
            file = tar.extractfile(name) if name.endswith(".jsonl") else None
            if file is not None:
                frames += [_frame(row) for row in map(json.loads, file) if not row["truncated"]]
    return tuple(frames)


def _frame(row: dict[str, Any]) -> Frame:
    return Frame(
        client=row["client"],
        api_key=row["api_key"],
        api_name=row["api_name"],
        api_version=row["api_version"],
        is_request=row["direction"] == "request",
        exchange=row["exchange"],
        data=bytes.fromhex(row["hex"]),
        header=row.get("header") or {},
        decoded=None if "decoded_omitted" in row else row["decoded"],
        unread_bytes=row["unread_bytes"],
    )


@cache
def frames_by_api() -> dict[str, tuple[Frame, ...]]:
    """The frames of each API: one test for each is quicker than one for each frame."""
    found: dict[str, list[Frame]] = {}
    for frame in golden_frames():
        found.setdefault(frame.api_name, []).append(frame)
    return {name: tuple(frames) for name, frames in sorted(found.items())}


@cache
def offered_by_kafka() -> dict[int, dict[str, Any]]:
    """Kafka's ApiVersions answer: a row per API key."""
    with tarfile.open(ARCHIVE) as tar:
        file = tar.extractfile("./api_versions.json")
        assert file is not None
        return {row["key"]: row for row in json.load(file)["api_keys"]}


def snake(name: str) -> str:
    """`throttleTimeMs` -> `throttle_time_ms`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

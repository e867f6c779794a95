"""Figures that documents state are those of the code: constants, and defaults of settings."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from strandline.admin.commands.fsck import remote as remote_fsck
from strandline.admin.http import tiering as tiering_http
from strandline.config import Settings
from strandline.coordinators.groups import upkeep
from strandline.diskless.upkeep import orphans
from strandline.diskless.wal import footer, format, keys
from strandline.diskless.writer import rotation
from strandline.hybrid.conversion import progress
from strandline.metadata.broker import active_controller
from strandline.metadata.controller import controller, leadership
from strandline.model import ZERO_UUID
from strandline.objects.cloud import store as cloud
from strandline.objects.directory import store as directory
from strandline.objects.options import Patience
from strandline.pipeline import client as tiering_client
from strandline.pipeline import session
from strandline.pipeline.driver import rounds, troubles
from strandline.records import batch
from strandline.remote.fsck import comparison, segment
from strandline.remote.indexes import cache as index_cache
from strandline.remote.manager import ManagerLimits
from strandline.remote.reader.segments import memory, opened
from strandline.remote.storage import StorageDeadlines, names
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.replication import leader
from strandline.server import connection, network, peers, sending
from strandline.server.fetch_sessions import WALK_EVERY_SECONDS
from strandline.server.handlers.fetch import sharing
from strandline.server.telemetry import clients as telemetry_clients
from strandline.server.telemetry import figures
from strandline.server.times import recording
from strandline.wire import primitives

ROOT = Path(__file__).parents[1]
KIB, MIB = 1024, 1024 * 1024
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000  # in milliseconds
_WORDS = {"a": 1, "an": 1, "once a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "half a": 0.5}

_CONSUMERS = "docs/decisions/0020-many-small-consumers.md"

DEFAULTS = Settings.from_properties({})
MANAGER, DEADLINES = ManagerLimits(), StorageDeadlines()


class Figure(NamedTuple):
    """A figure in a document. The group of the pattern is a number, or a word for one; a space may be a line break."""

    document: str
    pattern: str
    value: float


def _allowed(suite: str) -> int:
    lines = (ROOT / "interop" / f"{suite}.allow").read_text(encoding="utf-8").splitlines()
    return sum(bool(line) and not line.startswith("#") for line in lines)


def _workers() -> int:
    return int(re.findall(r"^WORKERS \?= (\d+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[0])


def _http_port() -> int:
    address = DEFAULTS.admin.http_address
    assert address is not None
    return address[1]


_KAFKA_PORT = DEFAULTS.network.endpoints[0].port
_SUCCESSOR_SECONDS = math.ceil(leadership.LEASE_SECONDS + leadership.RETRY_SECONDS)
_ORPHAN_MS = DEFAULTS.diskless.strandline_objects_orphan_scan_interval_ms
_PARTS_FROM = cloud._PART / MIB

FIGURES = (
    Figure("README.md", r"connects to it on port (\d+)", _KAFKA_PORT),
    Figure("README.md", r"a broker on port (\d+)", _KAFKA_PORT),
    Figure("README.md", r"status at http://127\.0\.0\.1:(\d+)", _http_port()),
    Figure("docs/operations.md", r"quantiles of the last (\w+) to six minutes", recording.WINDOW_SECONDS / 60),
    Figure("CONTRIBUTING.md", r"in random order, (\w+) at a time", _workers()),
    Figure("docs/operations.md", r"--http 0\.0\.0\.0:(\d+)", _http_port()),
    Figure("docs/operations.md", r"of the first (\d+) clients and", figures.MOST_CLIENTS),
    Figure("docs/operations.md", r"clients and (\d+) values of each", figures.MOST_SAMPLES),
    Figure("docs/operations.md", r"names have (\d+) KiB together", figures.MOST_NAME_BYTES / KIB),
    Figure("docs/protocol.md", r"at most (\d+) times `telemetry.max.bytes`", telemetry_clients.MOST_EXPANSION),
    Figure("docs/operations.md", r"database is replaced within (\d+) seconds", _SUCCESSOR_SECONDS),
    Figure(
        "docs/operations.md",
        r"objects on their way at once, (\d+) MiB each",
        DEFAULTS.diskless.inkless_produce_buffer_max_bytes / MIB,
    ),
    Figure("docs/operations.md", r"or (half a) minute are over", Patience().deadline / 60),
    Figure("docs/operations.md", r"the commit is tried for (\d+) s", rotation.WriterLimits().patience),
    Figure("docs/operations.md", r"found as orphans within (\w+) hours", 2 * _ORPHAN_MS / HOUR),
    Figure(
        "docs/operations.md",
        r"`queued.max.request.bytes` \((\d+) MiB by default",
        DEFAULTS.network.max_held_bytes / MIB,
    ),
    Figure(
        "docs/operations.md",
        r"`strandline.queued.max.diskless.bytes` \((\d+) MiB by",
        DEFAULTS.network.strandline_queued_max_diskless_bytes / MIB,
    ),
    Figure(
        "docs/operations.md",
        r"`strandline.queued.max.answer.bytes` \((\d+) MiB",
        DEFAULTS.network.strandline_queued_max_answer_bytes / MIB,
    ),
    Figure("docs/operations.md", r"requests of more than (\d+) KB, are not read", connection.SMALL_FRAME / 1024),
    Figure("docs/operations.md", r"have read nothing for (\d+) s are closed", network.STUCK_SECONDS),
    Figure("docs/operations.md", r"everything (once a) day and after a start", orphans._FULL_SCAN_MS / DAY),
    Figure("docs/operations.md", r"would be deleted after (an) hour", _ORPHAN_MS / HOUR),
    Figure(
        "docs/operations.md", r"waits for `segment\.ms` \((a) week\)", DEFAULTS.topic_config({}).segment_ms / DAY / 7
    ),
    Figure("docs/operations.md", r"segments above (\d+) MiB are uploaded in parts", _PARTS_FROM),
    Figure("docs/operations.md", r"a deadline \((\d+) s, and", DEADLINES.copy),
    Figure("docs/operations.md", r"(a) second more for each MiB", MIB / DEADLINES.slowest_bytes_per_second),
    Figure("docs/operations.md", r"for more than (\w+) hours", MANAGER.abandoned_copy_ms / HOUR),
    Figure(
        "docs/operations.md",
        r"`inkless\.migration\.parallel\.topics` \((\d+)\)",
        DEFAULTS.diskless.inkless_migration_parallel_topics,
    ),
    Figure(
        "docs/operations.md",
        r"`inkless\.migration\.segment\.wait\.ms` \((\d+) s\)",
        DEFAULTS.diskless.inkless_migration_segment_wait_ms / SECOND,
    ),
    Figure("docs/operations.md", r"older than (an) hour", remote_fsck._GRACE_MS / HOUR),
    Figure("docs/operations.md", r"(\w+) segments at a time in pieces", comparison._DEEP_AT_ONCE),
    Figure("docs/operations.md", r"in pieces of (\d+) MiB", segment._CHUNK / MIB),
    Figure(
        "docs/operations.md",
        r"(half a) second later at first",
        DEFAULTS.tiers.remote_log_manager_task_retry_backoff_ms / SECOND,
    ),
    Figure("docs/tiered-storage.md", r"removed when they are (an) hour old", directory._LEFTOVER_AGE_MS / HOUR),
    Figure("docs/tiered-storage.md", r"files above (\d+) MiB go in parts", _PARTS_FROM),
    Figure("docs/tiered-storage.md", r"go in parts, at most (\w+) at a time", cloud._PARTS_AT_ONCE),
    Figure("docs/tiered-storage.md", r"longer than (\d+) characters", names._LONGEST_DIRECTORY),
    Figure("docs/tiered-storage.md", r"every (\w+) minutes if it has changed", MetadataLimits().snapshot_interval / 60),
    Figure("docs/tiered-storage.md", r"at most (\d+) MiB: 64 MiB", index_cache.DEFAULT_MEMORY / MIB),
    Figure(
        "docs/tiered-storage.md", r": (\d+) MiB for offset and time indexes", index_cache.DEFAULT_MEMORY * 2 / 3 / MIB
    ),
    Figure("docs/tiered-storage.md", r"(\d+) MiB for transaction indexes", index_cache.DEFAULT_MEMORY / 3 / MIB),
    Figure("docs/tiered-storage.md", r"up to (\d+) indexes", index_cache._FETCHES_AT_ONCE),
    Figure("docs/tiered-storage.md", r"the (\d+) segments that are open at most", opened.MOST_OPEN),
    Figure("docs/tiered-storage.md", r"waits (\w+) hours", MANAGER.abandoned_copy_ms / HOUR),
    Figure("docs/wal-format.md", r"random, (\d+) characters", len(keys.make(0, 7, ZERO_UUID).rpartition("-")[2])),
    Figure("docs/wal-format.md", r"An entry of (\d+) bytes", footer._EXTENT.size),
    Figure("docs/wal-format.md", r"origin in (\d+) bytes", footer._ORIGIN.size),
    Figure("docs/wal-format.md", r"│\s*(\d+) bytes\s*│", footer.TRAILER_SIZE),
    Figure("docs/wal-format.md", r"version \| (\d+); unsigned", footer.VERSION),
    Figure("docs/wal-format.md", r"read of the last (\d+) KiB", format._TAIL / KIB),
    Figure("docs/wal-format.md", r"the first (\d+) bytes of every batch", batch.CRC_START),
    Figure("docs/protocol.md", r"blocks of ([\d,]+) ids", controller.PRODUCER_ID_BLOCK),
    Figure("docs/protocol.md", r"more than ([\d,]+) elements", primitives.MAX_ELEMENTS),
    Figure("docs/protocol.md", r"NOT_CONTROLLER after (\d+) seconds", active_controller.PATIENCE_SECONDS),
    Figure("docs/roadmap.md", r"takes up to (\d+) seconds", _SUCCESSOR_SECONDS),
    Figure("docs/roadmap.md", r"A group with more than (\d+) offsets", upkeep.OFFSETS_PER_STEP),
    Figure("docs/roadmap.md", r"over up to (\d+) connections to each coordinator", peers.MOST_AT_ONCE),
    Figure(
        "docs/roadmap.md", r"its session is over \((\d+) seconds\)", DEFAULTS.cluster.broker_session_timeout_ms / SECOND
    ),
    Figure("docs/roadmap.md", r"default buffer of (\d+) MB", DEFAULTS.log.log_cleaner_dedupe_buffer_size / MIB),
    Figure("docs/roadmap.md", r"deleted after (\w+) hours", MANAGER.abandoned_copy_ms / HOUR),
    Figure(
        "docs/roadmap.md", r"at most (\d+) MB by default", DEFAULTS.tiers.strandline_remote_read_cache_max_bytes / MIB
    ),
    Figure("docs/architecture.md", r"those of (\d+) KB and more in a writer thread", leader.LARGE_APPEND / KIB),
    Figure("docs/architecture.md", r"most (\d+) KB per socket", sending.SEND_BUDGET / KIB),
    Figure("docs/decisions/0002-one-event-loop-with-own-sockets.md", r"(\d+) KB per socket", sending.SEND_BUDGET / KIB),
    Figure("docs/decisions/0002-one-event-loop-with-own-sockets.md", r"Appends of (\d+) KB", leader.LARGE_APPEND / KIB),
    Figure("docs/decisions/0020-many-small-consumers.md", r"Bodies of up to (\d+) KiB", sharing.LARGEST_SHARED / KIB),
    Figure("docs/decisions/0020-many-small-consumers.md", r"request after (\w+ \w+) second", WALK_EVERY_SECONDS),
    Figure(
        "docs/decisions/0009-tiers-as-kafka-lays-them-out.md", r"ranges of up to (\d+) MiB", memory.LARGEST_READ / MIB
    ),
    Figure(
        "bench/README.md",
        r"every (\d+) seconds \(copies\)",
        DEFAULTS.tiers.remote_log_manager_task_interval_ms / SECOND,
    ),
    Figure(
        "docs/operations.md",
        r"`inkless\.tiering\.default\.local\.retention\.ms` \((\w+) hour\)",
        DEFAULTS.tiering.inkless_tiering_default_local_retention_ms / HOUR,
    ),
    Figure(
        "docs/operations.md",
        r"`inkless\.tiering\.merger\.max\.wait\.ms` \((\w+) hour\)",
        DEFAULTS.tiering.inkless_tiering_merger_max_wait_ms / HOUR,
    ),
    Figure("docs/operations.md", r"sizes are at most (\d+) seconds old", progress.FRESH_SECONDS),
    Figure("docs/operations.md", r"`No broker could \.\.\. within (\d+) s`", tiering_client.PATIENCE_SECONDS),
    Figure("docs/tiering.md", r"`--timeout` seconds \((\d+)\)", tiering_client.PATIENCE_SECONDS),
    Figure("docs/tiering.md", r"to run a first task \((\d+) s\)", session.START_SECONDS),
    Figure("docs/tiering.md", r"tried again without end: after (\d+) s", troubles.FIRST_WAIT_SECONDS),
    Figure("docs/tiering.md", r"4 s, up to (\d+) minutes", troubles.LONGEST_WAIT_SECONDS / 60),
    Figure("docs/tiering.md", r"looks for triggers every (\w+) seconds", rounds.TRIGGER_POLL_SECONDS),
    Figure("docs/tiering-api.md", r"a body of at most (\d+) MiB", tiering_http.MOST_BYTES / MIB),
    Figure("bench/README.md", r"(\w+) minutes \(retention\)", DEFAULTS.log.log_retention_check_interval_ms / MINUTE),
    Figure("docs/interop.md", r"`log-format`.*all (\d+) checks", _allowed("log-format")),
    Figure("docs/interop.md", r"`tiered-storage`.*all (\d+) checks", _allowed("tiered-storage")),
    Figure("docs/interop.md", r"`switch`.*all (\d+) checks", _allowed("switch")),
    Figure("docs/interop.md", r"`kafka-tools`.*all (\d+) checks", _allowed("kafka-tools")),
    Figure("docs/interop.md", r"`kafka-tools`.*\| (\d+) pass, 1 fails", _allowed("kafka-tools-diskless")),
    Figure("docs/interop.md", r"`transactions`: .*\| all (\d+) checks pass \| all", _allowed("transactions")),
    Figure("docs/interop.md", r"`transactions`: .*all (\d+) checks that apply", _allowed("transactions-diskless")),
    Figure("docs/interop.md", r"`share`: .*\| all (\d+) checks pass \| all", _allowed("share")),
    Figure("docs/interop.md", r"`share`: .*checks pass \| all (\d+) checks", _allowed("share-diskless")),
    Figure("docs/interop.md", r"`streams`: .*\| all (\d+) checks pass \| all", _allowed("streams")),
    Figure("docs/interop.md", r"`streams`: .*checks pass \| all (\d+) checks", _allowed("streams-diskless")),
    Figure("docs/interop.md", r"`kcat`.*\| all (\d+) checks pass \| all", _allowed("kcat")),
    Figure("docs/interop.md", r"`kcat`.*checks pass \| all (\d+) checks", _allowed("kcat-diskless")),
    Figure("docs/interop.md", r"`topicctl`.*all (\d+) checks pass", _allowed("topicctl")),
    Figure("docs/interop.md", r"`topicctl`.*\| (\d+) pass, 1 fails", _allowed("topicctl-diskless")),
    Figure("docs/interop.md", r"`franz-go`.*\| all (\d+) that run pass \| all", _allowed("franz-go")),
    Figure("docs/interop.md", r"`franz-go`.*run pass \| all (\d+) that run", _allowed("franz-go-diskless")),
    Figure("docs/interop.md", r"`librdkafka`: .*\| (\d+) pass, 9 fail", _allowed("librdkafka")),
    Figure("docs/interop.md", r"`librdkafka-consumer`: .*\| (\d+) pass, 11 fail", _allowed("librdkafka-consumer")),
    Figure(
        "docs/interop.md", r"`librdkafka`: .*fail; see below \| (\d+) pass, 10 fail", _allowed("librdkafka-diskless")
    ),
)


def _number(text: str) -> float:
    return _WORDS[text] if text in _WORDS else float(text.replace(",", ""))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.document}: {figure.pattern}")
def test_a_document_states_what_the_code_does(figure: Figure) -> None:
    text = (ROOT / figure.document).read_text(encoding="utf-8")
    found = re.findall(figure.pattern.replace(" ", r"\s+"), text)
    assert found, f"{figure.document} does not say this any more: correct the table in {Path(__file__).name}"
    assert {_number(number) for number in found} == {figure.value}

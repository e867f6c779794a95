"""`make demo` does what it says; each of its steps checks itself and ends it with a status."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.timeout(300)  # the first test runs all of it


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """Its files. PostgreSQL has another user than root: sessions of pytest close their directories to other users."""
    with tempfile.TemporaryDirectory(prefix="strandline-test-demo-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def shown(directory: Path) -> str:
    """What one run of the demo shows."""
    environment = {**os.environ, "TMPDIR": str(directory), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "demo.py")],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_ends_well_and_leaves_nothing_behind(shown: str, directory: Path) -> None:
    assert "Everything worked." in shown
    assert not list(directory.glob("strandline-demo-*"))


def test_transactions_commit_and_abort(shown: str) -> None:
    assert "a read_uncommitted consumer sees order-0, order-1, order-2, order-2 (wrong amount)" in shown
    assert shown.count("a read_committed consumer sees order-0, order-1\n") == 1
    assert "a read_committed consumer sees order-0, order-1, order-2\n" in shown
    assert "its offset was part of the first transaction" in shown
    assert "CompleteCommit" in shown


def test_a_classic_topic_survives_a_kill(shown: str) -> None:
    assert re.search(r"went on where it had committed: 1,560 more records, none lost, none twice, in order", shown)


def test_a_diskless_topic_is_written_and_read_back_from_objects(shown: str) -> None:
    assert "settings: diskless.enable=true" in shown
    assert re.search(r"30,000 records with \d+ reads of objects, none lost, none twice, in order", shown)


def test_wal_objects_are_listed_with_what_is_in_them(shown: str) -> None:
    (dumped,) = re.findall(r"\$ strandline wal dump (wal/\d{10}/1-\S{22}) --batches", shown)
    assert re.search(rf"{dumped} +[\d.]+ KB +\d +\d+ +[\d,]+", shown) or "more" in shown
    assert re.search(r"tide-forecasts-\d +[\d,]+ to [\d,]+ +\d+ +[\d,]+ +lz4 +right", shown)


def test_the_control_plane_knows_offsets_bytes_and_rows(shown: str) -> None:
    ends = re.findall(r"tide-forecasts-\d +0 +([\d,]+) +[\d,]+ +\d+ *$", shown, re.M)
    assert sum(int(end.replace(",", "")) for end in ends) == 30_000
    batches, rows = re.findall(r"(\d+) batches, (\d+) rows", shown)[0]
    assert 3 <= int(rows) <= int(batches)


def test_nothing_is_left_of_a_deleted_diskless_topic(shown: str) -> None:
    assert shown.index("Delete it, and nothing is left") < shown.index("There are no WAL objects.")


def test_a_topic_is_tiered_while_it_is_there(shown: str) -> None:
    before, after = re.findall(r"on the broker's disk +(\d+) +([\d,]+) *\n +in remote storage +(\d+) +([\d,]+)", shown)
    assert int(before[0]) > 10
    assert (before[2], before[3]) == ("0", "0")
    assert 0 < int(after[0]) < 5
    assert int(after[2]) == int(before[0]) - 1, "all but the active segment are copied"
    assert re.search(r"0 +1 +0 to \d+ +\d+ MB in \d+ +\d+ to 11999 +[\d.]+ MB +0 B in 0", shown)
    assert "it is the active segment, and only closed segments are copied" in " ".join(shown.split())


def test_a_consumer_reads_both_tiers_from_offset_0(shown: str) -> None:
    found = re.search(r"12,000 records in [\d.]+ s, [\d.]+ MB of them from remote storage, none lost", shown)
    assert found is not None


def test_remote_segments_are_described_and_nothing_is_left_of_a_deleted_topic(shown: str) -> None:
    assert {".index", ".leader_epoch_checkpoint", ".log", ".snapshot", ".timeindex"} <= set(shown.split())
    states = dict(re.findall(r"((?:COPY|DELETE)_\w+) +(\d+) *$", shown, re.M))
    assert states["COPY_SEGMENT_FINISHED"] == states["DELETE_SEGMENT_FINISHED"] != "0"
    assert states["DELETE_PARTITION_FINISHED"] == "1"


def test_a_live_topic_is_switched_and_its_tiers_are_shown_as_they_move(shown: str) -> None:
    part = shown[shown.index("is switched to diskless, while a producer and a consumer run") :]
    rulers = re.findall(r"^ +(\d) ([░▓█▒]+) +(?:remote 0 to (\d+))?(?:, )?(?:local (\d+) to (\d+))?(.*)$", part, re.M)
    stages = [rulers[first : first + 3] for first in range(0, len(rulers), 3)]
    assert [[ruler[0] for ruler in stage] for stage in stages] == [["0", "1", "2"]] * 4
    assert not any("▒" in ruler[1] or "diskless" in ruler[5] for ruler in stages[0]), "all classic before the switch"
    assert all(ruler[1][-1] == "▒" for stage in stages[2:] for ruler in stage), stages
    for _, marks, remote_end, local_start, _, rest in stages[3]:
        assert set(marks) == {"░", "▒"}
        assert not local_start, "nothing is left on the disk"
        assert f"diskless {int(remote_end) + 1} to " in rest
    assert "3 of 3 partitions diskless, 100 %" in part


def test_the_pipeline_makes_segments_of_wal_objects_and_both_readers_find_the_same(shown: str) -> None:
    part = shown[shown.index("The tiering pipeline, on Spark") :]
    tables = re.findall(r"^ +(before|after) +(\d+) +(\d+) +(\d+) *$", part, re.M)
    before, after = (tuple(map(int, figures)) for _, *figures in tables)
    assert before[0] >= before[1] > 0 == before[2]
    assert after == (0, 0, 3)
    read = dict(re.findall(r"^ +(a Kafka consumer|Spark), from the \w+ +([\d,]+ +[0-9a-f]+) +[\d.]+ *$", part, re.M))
    assert read["a Kafka consumer"] == read["Spark"]
    assert read["Spark"].startswith("18,600 ")


def test_a_broker_is_killed_under_load_and_no_record_is_lost(shown: str) -> None:
    part = " ".join(shown[shown.index("Three brokers, and one of them is killed") :].split())
    (victim,) = re.findall(r"broker (\d) is killed; it led [1-6] of 6 partitions", part)
    assert re.search(r"lead them now; the longest time in which a partition took no records: \d+ ms", part)
    assert f"$ strandline broker --config broker-{victim}.properties" in part
    states = re.findall(r"\b([123]) ([abc]) (up|ended|fenced)\b", part)
    assert [(number, state) for number, _, state in states[3:6] if state != "up"] in (
        [(victim, "ended")],
        [(victim, "fenced")],
    )
    assert [state for _, _, state in states[6:]] == ["up", "up", "up"]
    assert re.search(r"[\d,]+ records acknowledged, each of them read once and in order; none lost, none twice", part)


def test_the_last_line_accounts_for_every_record_of_the_switch(shown: str) -> None:
    found = re.search(
        r"Across the switch: ([\d,]+) records acknowledged, ([\d,]+) read, 0 lost, 0 duplicated\.\s*$", shown
    )
    assert found is not None
    assert found[1] == found[2]
    assert int(found[1].replace(",", "")) > 12_000

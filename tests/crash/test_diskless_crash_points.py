"""The broker dies at each step between the arrival of a batch for a diskless topic and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.admin.commands.main import run
from strandline.crash import ENVIRONMENT_VARIABLE
from tests.broker import running_broker
from tests.crash.writers import Writer, judge, read_all, wait_for_more
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic

SIGKILLED = -9
AFTER_UPLOAD = ("diskless.writer.after_upload", "diskless.writer.before_commit", "objects.put.after_publish")
SMALL_OBJECTS = {"inkless.produce.buffer.max.bytes": "100000", "strandline.objects.orphan.scan.interval.ms": "0"}
# No producer writes any more: objects that nothing refers to may be deleted at once instead of after hours.
CLEAN_AT_ONCE = {
    "inkless.file.cleaner.interval.ms": "100",
    "inkless.file.cleaner.retention.period.ms": "0",
    "strandline.objects.orphan.scan.interval.ms": "200",
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "place",
    [
        "diskless.writer.before_upload:30",
        "objects.put.after_write:30",
        "objects.put.after_publish:30",
        "diskless.writer.after_upload:30",
        "diskless.writer.before_commit:20",
        "controlplane.commit.before_commit:20",
        "diskless.writer.after_commit:20",
        "diskless.writer.before_answer:20",
    ],
)
def test_death_between_the_upload_of_batches_and_their_answer(
    tmp_path: Path,
    start_writers: Callable[..., list[Writer]],
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    """Idempotent producers write until the broker dies, and go on when it is back; then its objects are counted."""
    data = tmp_path / "data"
    with running_broker(data, SMALL_OBJECTS, environment={ENVIRONMENT_VARIABLE: place}) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "numbers", partitions=2, diskless_enable="true")
        writers = start_writers(broker.bootstrap, "numbers")
        assert broker.wait() == SIGKILLED
        orphans = lost_objects(data, capsys)
        broker.environment = {}
        broker.start()
        wait_for_more(writers, 2000)
        for writer in writers:
            writer.stop()
        assert [failure for writer in writers for failure in writer.failures] == []
        found = read_all(broker.bootstrap, "numbers", 2)
        verdict = judge(writers, found)
        assert verdict.is_clean, str(verdict)
        for partition in (0, 1):
            offsets = sorted(place_of.offset for place_of in found if place_of.partition == partition)
            assert offsets == list(range(len(offsets)))
        assert broker.stop() == 0
    if place.startswith(AFTER_UPLOAD):
        assert orphans
    with running_broker(data, CLEAN_AT_ONCE) as broker:
        wait_until(lambda: not any((data / "objects" / key).exists() for key in orphans), what="the orphans to go")
        assert read_all(broker.bootstrap, "numbers", 2) == found
        assert broker.stop() == 0
    assert lost_objects(data, capsys) == []


def lost_objects(data: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The objects that nothing refers to, of a broker that does not run. Nothing else may be wrong with any object."""
    capsys.readouterr()
    run(["fsck", "--deep", "--json", "--grace", "0", "--data-dir", str(data)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["kind"] for finding in findings} <= {"orphan"}
    return [finding["key"] for finding in findings]

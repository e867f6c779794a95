"""Remote reads from a real S3 server."""

from __future__ import annotations

from pathlib import Path

from strandline.errors import KafkaStorageError
from tests.log.harness import NOW
from tests.reads import found
from tests.remote.reader.consuming import UNCOMMITTED, Consumer, id_of, request
from tests.remote.reader.world import BATCH, open_world
from tests.s3 import S3
from tests.s3 import s3 as s3
from tests.s3 import s3_url as s3_url


async def test_a_consumer_catches_up_from_s3(s3: S3, s3_url: str, tmp_path: Path) -> None:
    async with open_world(tmp_path, s3_url, s3.object_options) as world:
        log = await world.add_log(segments=4, per_segment=300)
        reader = await world.reader()
        consumer = Consumer(reader, log, UNCOMMITTED, 50 * BATCH)
        assert await consumer.visible(0) == list(range(1201))
        status = reader.status()
        assert status.storage_bytes == consumer.remote_bytes
        assert status.storage_requests < consumer.remote_answers
        record = await reader.offset_by_timestamp(id_of(log), log, NOW + 700)
        assert record is not None
        assert record.offset == 700


async def test_a_segment_that_is_gone_from_s3_is_an_error(s3: S3, s3_url: str, tmp_path: Path) -> None:
    async with open_world(tmp_path, s3_url, s3.object_options) as world:
        log = await world.add_log(segments=2)
        await world.storage.delete_log_segment_data(world.segments(log)[0])
        reader = await world.reader()
        (result,) = await reader.read([request(log, 0)], max_bytes=1 << 20)
        assert isinstance(result, KafkaStorageError)
        (result,) = await reader.read([request(log, 20)], max_bytes=1 << 20)
        assert found(result).records is not None

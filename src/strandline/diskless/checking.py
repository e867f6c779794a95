"""Checks one WAL object against what the control plane says of it."""

from __future__ import annotations

from strandline.controlplane.ports import WalFiles
from strandline.controlplane.values import BatchRow, WalFile
from strandline.diskless.footer import DamagedObject, Footer
from strandline.diskless.format import read_footer, verify_extent
from strandline.model import TopicIdPartition
from strandline.objects.store import ObjectStore


async def check_object(
    files: WalFiles, store: ObjectStore, file: WalFile, *, listed_size: int | None, deep: bool
) -> None:
    """Size and footer; if `deep`, also every byte, and that every row points to batches of its own partition.

    Raises ObjectNotFound or DamagedObject, and the errors of store and database.
    """
    if listed_size is not None and listed_size != file.size:
        raise DamagedObject(f"it has {listed_size} bytes instead of {file.size}")
    footer = await read_footer(store, file.object_key, file.size)
    if not deep:
        return
    for extent in footer.extents:
        verify_extent(extent, await store.get_range(file.object_key, extent.byte_offset, extent.byte_size))
    for partition, row in await files.rows_of_file(file.file_id):
        _check_row(footer, partition, row)


def _check_row(footer: Footer, partition: TopicIdPartition, row: BatchRow) -> None:
    end = row.byte_offset + row.byte_size
    for extent in footer.extents:
        if extent.byte_offset <= row.byte_offset and end <= extent.byte_end:
            if (extent.topic_id, extent.partition) == (partition.topic_id, partition.partition):
                return
            break
    raise DamagedObject(
        f"the row with offsets {row.base_offset} to {row.last_offset} of partition {partition.partition} of topic id "
        f"{partition.topic_id} refers to bytes {row.byte_offset} to {end}, which are not this partition's"
    )

"""A broker that was killed says what it has kept: what it registers with is what its log directory says."""

from __future__ import annotations

import json
from pathlib import Path

from strandline.log import read_boot_id
from strandline.log.checkpoints import META_PROPERTIES, read_properties
from strandline.log.incarnations import INCARNATION
from strandline.metadata import BrokerImage, MetadataStore
from strandline.model import uuid_to_text
from strandline.sql import open_store
from tests.broker import BrokerProcess, running_broker
from tests.wirelevel.raw import connected, create_topic


async def registered(broker: BrokerProcess) -> BrokerImage:
    """What the metadata says of the broker, which has stopped."""
    async with open_store(f"sqlite:///{broker.data_dir}/metadata.db") as sql:
        (found,) = (await MetadataStore(sql).load()).brokers.values()
        return found


async def test_the_log_directory_remembers_each_incarnation(tmp_path: Path) -> None:
    epochs = []
    with running_broker(tmp_path / "data") as broker:
        for number in range(2):
            with connected(broker.bootstrap) as connection:
                create_topic(connection, f"t{number}", partitions=1)  # it serves, so it has registered
            broker.kill()
            found = await registered(broker)
            (path,) = broker.data_dir.rglob(INCARNATION)
            remembered = json.loads(path.read_text())
            assert (remembered["brokerEpoch"], remembered["bootId"]) == (found.epoch, read_boot_id())
            properties = read_properties(str(path.parent / META_PROPERTIES))
            assert [uuid_to_text(one) for one in found.log_dirs] == [properties["directory.id"]]
            epochs.append(found.epoch)
            broker.start()
    assert epochs[0] < epochs[1]

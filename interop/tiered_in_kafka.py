"""Our partitions, their remote segments and the metadata of these, under a new Kafka that has never seen them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from bench import kafka
from bench.process import free_port

from interop.broker import CACHE
from interop.kafka_tools import Tools
from interop.kafka_topic_ids import change_topic_ids, topic_id_of
from interop.records import Records, create_topics, read_all
from interop.tiered_topics import LOG_FILE, NAME, PARTITIONS, TOPICS, must_be_same, wait_until_ready
from interop.tiers import METADATA_PARTITIONS, METADATA_TOPIC, SOON, fresh, tiered_broker, wait_until


class InKafka:
    """A Kafka with topics of the same names, which gets their ids, files and remote directory."""

    def __init__(self, log_dir: Path, remote: Path, records: Records) -> None:
        self._source, self._source_remote, self._records = log_dir, remote, records
        self._log_dir, self._remote = fresh(f"{NAME}-in-kafka"), fresh(f"{NAME}-in-kafka-remote")

    def serve(self) -> None:
        """Kafka serves every record from offset 0 on."""
        self._prepare()
        with tiered_broker("kafka", NAME, self._remote, log_dir=self._log_dir) as broker:
            wait_until_ready(broker, tuple(TOPICS))
            must_be_same(self._records, read_all(broker.bootstrap, tuple(TOPICS), PARTITIONS))

    def follow(self) -> None:
        """A second Kafka becomes the only replica. It has the leader epochs and producers from our remote files."""
        self._prepare()
        with tiered_broker("kafka", NAME, self._remote, log_dir=self._log_dir) as leader:
            wait_until_ready(leader, tuple(TOPICS))
            with self._second_broker():
                self._move(Tools(kafka.install(), leader.bootstrap, LOG_FILE))
                must_be_same(self._records, read_all(leader.bootstrap, tuple(TOPICS), PARTITIONS))

    def _prepare(self) -> None:
        if self._log_dir.exists():
            return
        with tiered_broker("kafka", NAME, self._remote, log_dir=self._log_dir) as broker:
            create_topics(broker.bootstrap, TOPICS, PARTITIONS)
            own = f"{METADATA_TOPIC}-*"
            wait_until(lambda: len([*self._log_dir.glob(own)]) == METADATA_PARTITIONS, "Kafka's own metadata topic")
        names = [f"{topic}-{number}" for topic in TOPICS for number in range(PARTITIONS)]
        names += [f"{METADATA_TOPIC}-{number}" for number in range(METADATA_PARTITIONS)]
        ids = {topic_id_of(self._log_dir / name): topic_id_of(self._source / name) for name in names}
        change_topic_ids(self._log_dir, ids)
        for name in names:
            shutil.rmtree(self._log_dir / name)
            shutil.copytree(self._source / name, self._log_dir / name)
        for checkpoint in ("recovery-point", "replication", "log-start"):
            shutil.copy(self._source / f"{checkpoint}-offset-checkpoint", self._log_dir)
        shutil.rmtree(self._remote)
        shutil.copytree(self._source_remote, self._remote)

    def _second_broker(self) -> kafka.KafkaBroker:
        properties = self._log_dir.with_name(f"{self._log_dir.name}.properties").read_text()
        voters = re.search(r"^controller\.quorum\.voters=(.*)$", properties, re.MULTILINE)
        assert voters is not None
        port = free_port()
        settings = {
            **kafka.tiered_settings(self._remote),
            **SOON,
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": voters[1],
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
        plugins = kafka.install_tiered_storage()
        data_dir = fresh(f"{NAME}-in-kafka-2")
        return kafka.KafkaBroker(kafka.install(), data_dir, port=port, settings=settings, plugins=plugins)

    def _move(self, tools: Tools) -> None:
        """Give the first topic to the second broker alone."""
        topic = next(iter(TOPICS))
        partitions = [{"topic": topic, "partition": number, "replicas": [2]} for number in range(PARTITIONS)]
        request = CACHE / "move-tiered-topic.json"
        request.write_text(json.dumps({"version": 1, "partitions": partitions}))
        command = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        tools.ask(command, "--reassignment-json-file", str(request), "--execute", expect="Successfully started")

        def described() -> str:
            return tools.ask("TopicCommand", "--describe", "--topic", topic)

        moved = r"Leader: 2\s+Replicas: 2\s+Isr: 2\s"
        wait_until(lambda: len(re.findall(moved, described())) == PARTITIONS, f"the move of {topic} to another broker")

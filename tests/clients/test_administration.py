"""Credentials, quorum, features, access rules and reassignments, with the clients librdkafka and kafka-python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import confluent_kafka.admin
import kafka
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.broker import Broker
from tests.clients.conftest import TopicMaker

SECONDS = 30.0
names: Any = confluent_kafka.admin


@pytest.fixture
def python_admin(broker: Broker) -> Iterator[Any]:
    with closing(kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as connected:
        yield connected


def upsertion(user: str, iterations: int) -> Any:
    info = names.ScramCredentialInfo(names.ScramMechanism.SCRAM_SHA_512, iterations)
    return names.UserScramCredentialUpsertion(user, info, b"secret", b"salt")


def test_credentials_come_and_go_with_librdkafka(admin: Any, unique_name: Callable[[], str]) -> None:
    user = unique_name()
    admin.alter_user_scram_credentials([upsertion(user, 8192)])[user].result(SECONDS)
    described = admin.describe_user_scram_credentials([user])[user].result(SECONDS)
    assert [(one.mechanism, one.iterations) for one in described.scram_credential_infos] == [
        (names.ScramMechanism.SCRAM_SHA_512, 8192)
    ]
    assert user in admin.describe_user_scram_credentials(None).result(SECONDS)
    deletion = names.UserScramCredentialDeletion(user, names.ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([deletion])[user].result(SECONDS)
    for refused in (
        admin.describe_user_scram_credentials([user])[user],
        admin.alter_user_scram_credentials([deletion])[user],
    ):
        with pytest.raises(KafkaException) as failure:
            refused.result(SECONDS)
        assert failure.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_a_weak_credential_is_not_accepted(admin: Any, unique_name: Callable[[], str]) -> None:
    user = unique_name()
    with pytest.raises(KafkaException) as failure:
        admin.alter_user_scram_credentials([upsertion(user, 4095)])[user].result(SECONDS)
    assert failure.value.args[0].code() == KafkaError.UNACCEPTABLE_CREDENTIAL


def test_access_rules_need_an_authorizer(admin: AdminClient) -> None:
    everything = names.AclBindingFilter(
        names.ResourceType.ANY,
        None,
        names.ResourcePatternType.ANY,
        None,
        None,
        names.AclOperation.ANY,
        names.AclPermissionType.ANY,
    )
    rule = names.AclBinding(
        names.ResourceType.TOPIC,
        "t",
        names.ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        names.AclOperation.READ,
        names.AclPermissionType.ALLOW,
    )
    for refused in (admin.create_acls([rule])[rule], admin.delete_acls([everything])[everything]):
        with pytest.raises(KafkaException) as failure:
            refused.result(SECONDS)
        assert failure.value.args[0].code() == KafkaError.SECURITY_DISABLED


def test_kafka_python_describes_the_quorum_and_the_features(python_admin: Any) -> None:
    quorum = python_admin.describe_metadata_quorum()
    (topic,) = quorum["topics"]
    (partition,) = topic["partitions"]
    assert topic["topic_name"] == "__cluster_metadata"
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [partition["leader_id"]]
    assert python_admin.describe_features() is not None


def test_kafka_python_alters_credentials(python_admin: Any, unique_name: Callable[[], str]) -> None:
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

    user = unique_name()
    wish = UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_256, "secret", iterations=4096)
    python_admin.alter_user_scram_credentials([wish])
    assert user in str(python_admin.describe_user_scram_credentials([user]))


def test_a_reassignment_to_where_a_partition_is_succeeds(python_admin: Any, new_topic: TopicMaker) -> None:
    partition = kafka.TopicPartition(new_topic(), 0)
    here = python_admin.describe_cluster()["controller_id"]
    assert python_admin.alter_partition_reassignments({partition: [here]}) == {partition: None}
    assert not python_admin.list_partition_reassignments()
    refused = python_admin.alter_partition_reassignments({partition: [here + 1]})
    assert refused == {partition: kafka.errors.InvalidReplicationAssignmentError}

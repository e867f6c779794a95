"""Groups of every kind are described by the API of their kind, where the broker announces it.

A scripted broker answers. What our own broker answers is in `test_offsets` and `test_commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import strandline.wire.messages.alter_share_group_offsets as alter_share
import strandline.wire.messages.consumer_group_describe as consumer_groups
import strandline.wire.messages.delete_share_group_offsets as delete_share
import strandline.wire.messages.describe_groups as classic_groups
import strandline.wire.messages.describe_share_group_offsets as share_offsets
import strandline.wire.messages.share_group_describe as share_groups
import strandline.wire.messages.streams_group_describe as streams_groups
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages import find_coordinator, list_offsets, metadata, offset_commit, offset_fetch
from tests.admin.commands.conftest import Command
from tests.admin.commands.scripted import Answer, ScriptedWire, scripted_broker

NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND


def _consumer_group(request: Any) -> Any:
    assignment = consumer_groups.Assignment(
        topic_partitions=[consumer_groups.TopicPartitions(topic_name="tides", partitions=[1, 0])]
    )
    member = consumer_groups.Member(
        member_id="m-1", instance_id="i-1", member_epoch=4, client_id="cashier", client_host="/10.0.0.1",
        assignment=assignment,
    )  # fmt: skip
    found = consumer_groups.DescribedGroup(
        group_id=request.group_ids[0], group_state="Stable", group_epoch=5, assignor_name="uniform", members=[member]
    )
    return consumer_groups.ConsumerGroupDescribeResponse(groups=[found])


def _share_group(state: str, members: int) -> Answer:
    def answer(request: Any) -> Any:
        assignment = share_groups.Assignment(
            topic_partitions=[share_groups.TopicPartitions(topic_name="tides", partitions=[0])]
        )
        rows = [
            share_groups.Member(member_id=f"m-{n}", client_id="clerk", client_host="/10.0.0.2", assignment=assignment)
            for n in range(members)
        ]
        found = share_groups.DescribedGroup(
            group_id=request.group_ids[0], group_state=state, group_epoch=2, assignor_name="simple", members=rows
        )
        return share_groups.ShareGroupDescribeResponse(groups=[found])

    return answer


def _streams_group(request: Any) -> Any:
    part = streams_groups.Subtopology(
        subtopology_id="0",
        source_topics=["tides"],
        repartition_source_topics=[streams_groups.TopicInfo(name="by-port")],
    )
    assignment = streams_groups.Assignment(
        active_tasks=[streams_groups.TaskIds(subtopology_id="0", partitions=[1])],
        standby_tasks=[streams_groups.TaskIds(subtopology_id="0", partitions=[0])],
    )
    member = streams_groups.Member(member_id="m-1", client_id="app", client_host="/10.0.0.3", assignment=assignment)
    found = streams_groups.DescribedGroup(
        group_id=request.group_ids[0],
        group_state="Stable",
        group_epoch=3,
        topology=streams_groups.Topology(epoch=1, subtopologies=[part]),
        members=[member],
    )
    return streams_groups.StreamsGroupDescribeResponse(groups=[found])


def _another_kind(response: Callable[..., Any], group: Callable[..., Any], code: ErrorCode = NOT_FOUND) -> Answer:
    return lambda request: response(groups=[group(group_id=request.group_ids[0], error_code=code)])


NO_CONSUMER_GROUP = _another_kind(
    consumer_groups.ConsumerGroupDescribeResponse, consumer_groups.DescribedGroup, ErrorCode.UNSUPPORTED_VERSION
)
NO_SHARE_GROUP = _another_kind(share_groups.ShareGroupDescribeResponse, share_groups.DescribedGroup)


def _classic(state: str, code: int = 0) -> Answer:
    return lambda request: classic_groups.DescribeGroupsResponse(
        groups=[
            classic_groups.DescribedGroup(
                group_id=request.groups[0], group_state=state, error_code=code, protocol_type="consumer"
            )
        ]
    )


def _committed(offsets: dict[int, int]) -> Answer:
    def answer(request: Any) -> Any:
        topic = offset_fetch.OffsetFetchResponseTopics(
            name="tides",
            partitions=[
                offset_fetch.OffsetFetchResponsePartitions(partition_index=number, committed_offset=offset)
                for number, offset in offsets.items()
            ],
        )
        group = offset_fetch.OffsetFetchResponseGroup(group_id=request.groups[0].group_id, topics=[topic])
        return offset_fetch.OffsetFetchResponse(groups=[group])

    return answer


def _share_offsets(_: Any) -> Any:
    rows = [
        share_offsets.DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=40, lag=7),
        share_offsets.DescribeShareGroupOffsetsResponsePartition(partition_index=1, start_offset=30, lag=-1),
        share_offsets.DescribeShareGroupOffsetsResponsePartition(partition_index=2, start_offset=-1, lag=-1),
    ]
    topic = share_offsets.DescribeShareGroupOffsetsResponseTopic(topic_name="tides", partitions=rows)
    group = share_offsets.DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic])
    return share_offsets.DescribeShareGroupOffsetsResponse(groups=[group])


def test_a_consumer_group(command: Command) -> None:
    answers = {ApiKey.CONSUMER_GROUP_DESCRIBE: _consumer_group, ApiKey.OFFSET_FETCH: _committed({0: 60, 1: 100})}
    with scripted_broker(answers, topics={"tides": 2}) as broker:
        described = command("groups", "describe", "g", "--json", "-b", broker.bootstrap).json
        text = command("groups", "describe", "g", "-b", broker.bootstrap).out
        refused = command("groups", "reset-offsets", "g", "-t", "tides", "--to-earliest", "-b", broker.bootstrap)
    (member,) = described["members"]
    assert (described["type"], described["state"], described["assignor"], described["epoch"]) == (
        "consumer", "Stable", "uniform", 5,
    )  # fmt: skip
    assert member == {
        "member": "m-1", "instance": "i-1", "client": "cashier", "host": "/10.0.0.1", "epoch": 4,
        "assignment": [["tides", 0], ["tides", 1]],
    }  # fmt: skip
    assert [(row["partition"], row["committed"], row["lag"], row["member"]) for row in described["offsets"]] == [
        (0, 60, 40, "m-1"),
        (1, 100, 0, "m-1"),
    ]
    assert "g  consumer group, Stable, assignor uniform, epoch 5" in text
    assert "it is Stable, with 1 of them" in refused.err


def test_a_share_group_has_several_members_for_a_partition_and_its_own_offsets(command: Command) -> None:
    answers = {
        ApiKey.CONSUMER_GROUP_DESCRIBE: NO_CONSUMER_GROUP,
        ApiKey.SHARE_GROUP_DESCRIBE: _share_group("Stable", 2),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _share_offsets,
    }
    with scripted_broker(answers, topics={"tides": 3}) as broker:
        described = command("groups", "describe", "g", "--json", "-b", broker.bootstrap).json
    assert described["type"] == "share"
    assert [member["client"] for member in described["members"]] == ["clerk", "clerk"]
    assert [(row["partition"], row["committed"], row["lag"], row["member"]) for row in described["offsets"]] == [
        (0, 40, 7, "m-0,m-1"),
        (1, 30, 70, None),
    ]


def test_a_streams_group_reads_the_sources_of_its_active_tasks(command: Command) -> None:
    answers = {
        ApiKey.CONSUMER_GROUP_DESCRIBE: NO_CONSUMER_GROUP,
        ApiKey.SHARE_GROUP_DESCRIBE: NO_SHARE_GROUP,
        ApiKey.STREAMS_GROUP_DESCRIBE: _streams_group,
        ApiKey.OFFSET_FETCH: _committed({1: 99}),
    }
    with scripted_broker(answers, topics={"tides": 2}) as broker:
        described = command("groups", "describe", "g", "--json", "-b", broker.bootstrap).json
    assert (described["type"], described["epoch"]) == ("streams", 3)
    assert described["members"][0]["assignment"] == [["by-port", 1], ["tides", 1]]
    assert [(row["topic"], row["committed"], row["lag"]) for row in described["offsets"]] == [
        ("by-port", None, None),
        ("tides", 99, 1),
    ]


def test_only_announced_apis_are_asked(command: Command) -> None:
    answers = {ApiKey.DESCRIBE_GROUPS: _classic("Empty"), ApiKey.OFFSET_FETCH: _committed({0: 1})}
    with scripted_broker(answers, topics={"tides": 1}) as broker:
        described = command("groups", "describe", "g", "--json", "-b", broker.bootstrap).json
        assert broker.requests(consumer_groups.ConsumerGroupDescribeRequest) == []
    assert (described["type"], described["state"], described["epoch"]) == ("classic", "Empty", None)


def test_a_broker_that_becomes_the_coordinator_is_asked_again(command: Command) -> None:
    """Kafka's admin client does the same."""
    answers = iter([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])

    def becoming(request: Any) -> Any:
        code = next(answers, None)
        if code is None:
            return _classic("Empty")(request)
        found = classic_groups.DescribedGroup(group_id=request.groups[0], error_code=code)
        return classic_groups.DescribeGroupsResponse(groups=[found])

    scripted = {ApiKey.DESCRIBE_GROUPS: becoming, ApiKey.OFFSET_FETCH: _committed({0: 1})}
    with scripted_broker(scripted, topics={"tides": 1}) as broker:
        assert command("groups", "describe", "g", "--json", "-b", broker.bootstrap).json["state"] == "Empty"
        assert len(broker.requests(find_coordinator.FindCoordinatorRequest)) >= 3


@pytest.mark.parametrize("answer", [_classic("Dead"), _classic("Dead", NOT_FOUND)])
def test_a_group_that_does_not_exist_in_old_and_new_words(command: Command, answer: Answer) -> None:
    answers = {
        ApiKey.SHARE_GROUP_DESCRIBE: NO_SHARE_GROUP,
        ApiKey.DESCRIBE_GROUPS: answer,
        ApiKey.OFFSET_FETCH: _committed({}),
    }
    with scripted_broker(answers) as broker:
        outcome = command("groups", "describe", "g", "-b", broker.bootstrap)
    assert (outcome.status, outcome.err) == (1, "strandline: There is no group g.\n")


def test_an_error_of_the_coordinator_is_not_another_kind(command: Command) -> None:
    loading = _another_kind(
        consumer_groups.ConsumerGroupDescribeResponse,
        consumer_groups.DescribedGroup,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
    with scripted_broker({ApiKey.CONSUMER_GROUP_DESCRIBE: loading, ApiKey.DESCRIBE_GROUPS: _classic("Dead")}) as broker:
        outcome = command("groups", "describe", "g", "-b", broker.bootstrap)
    assert outcome.status == 1
    assert "Group g cannot be described: " in outcome.err
    assert "(COORDINATOR_LOAD_IN_PROGRESS)" in outcome.err


def _altered(request: Any) -> Any:
    topics = [
        alter_share.AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            partitions=[
                alter_share.AlterShareGroupOffsetsResponsePartition(partition_index=row.partition_index)
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return alter_share.AlterShareGroupOffsetsResponse(responses=topics)


def _deleted(request: Any) -> Any:
    rows = [delete_share.DeleteShareGroupOffsetsResponseTopic(topic_name=row.topic_name) for row in request.topics]
    return delete_share.DeleteShareGroupOffsetsResponse(responses=rows)


def test_offsets_of_share_groups_are_altered_and_deleted_by_their_own_apis(command: Command) -> None:
    answers = {
        ApiKey.SHARE_GROUP_DESCRIBE: _share_group("Empty", 0),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _share_offsets,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: _altered,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: _deleted,
    }
    with scripted_broker(answers, topics={"tides": 3}) as broker:
        at = ("-b", broker.bootstrap)
        assert command("groups", "reset-offsets", "g", "-t", "tides:1", "--shift-by", "5", *at).status == 0
        assert broker.requests(alter_share.AlterShareGroupOffsetsRequest) == []
        done = command("groups", "reset-offsets", "g", "-t", "tides:1", "--shift-by", "5", "--execute", *at)
        assert done.status == 0, done.err
        (request,) = broker.requests(alter_share.AlterShareGroupOffsetsRequest)
        (row,) = request.topics[0].partitions
        assert (request.group_id, row.partition_index, row.start_offset) == ("g", 1, 35)
        partly = command("groups", "delete-offsets", "g", "-t", "tides:1", "--yes", *at)
        assert "A share group forgets whole topics" in partly.err
        assert broker.requests(delete_share.DeleteShareGroupOffsetsRequest) == []
        assert command("groups", "delete-offsets", "g", "-t", "tides", "--yes", *at).status == 0
        (forgotten,) = broker.requests(delete_share.DeleteShareGroupOffsetsRequest)
        assert [row.topic_name for row in forgotten.topics] == ["tides"]


def test_partitions_that_were_refused_are_named(command: Command) -> None:
    def commit(request: Any) -> Any:
        rows = [
            offset_commit.OffsetCommitResponsePartition(
                partition_index=row.partition_index,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID if row.partition_index else ErrorCode.NONE,
            )
            for row in request.topics[0].partitions
        ]
        return offset_commit.OffsetCommitResponse(
            topics=[offset_commit.OffsetCommitResponseTopic(name="tides", partitions=rows)]
        )

    answers = {
        ApiKey.DESCRIBE_GROUPS: _classic("Empty"),
        ApiKey.OFFSET_FETCH: _committed({}),
        ApiKey.OFFSET_COMMIT: commit,
    }
    with scripted_broker(answers, topics={"tides": 3}) as broker:
        words = ("groups", "reset-offsets", "g", "-t", "tides", "--to-latest", "--execute", "-b", broker.bootstrap)
        outcome = command(*words)
        (request,) = broker.requests(offset_commit.OffsetCommitRequest)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    assert outcome.status == 1
    assert outcome.err == (
        "strandline: Offsets of group g were not written for tides-1, tides-2 (1 other partitions were done): "
        "The group has members; stop them first (UNKNOWN_MEMBER_ID).\n"
    )


def _committing(request: Any) -> Any:
    return offset_commit.OffsetCommitResponse(
        topics=[
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(partition_index=row.partition_index)
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _partitions_asked(broker: ScriptedWire) -> set[int]:
    asked = broker.requests(list_offsets.ListOffsetsRequest)
    return {row.partition_index for request in asked for row in request.topics[0].partitions}


def test_the_coordinator_and_each_leader_are_asked_themselves(command: Command) -> None:
    """The broker of --bootstrap leads partition 0; another one coordinates the group and leads partition 1."""
    group = {
        ApiKey.DESCRIBE_GROUPS: _classic("Empty"),
        ApiKey.OFFSET_FETCH: _committed({0: 1, 1: 2}),
        ApiKey.OFFSET_COMMIT: _committing,
    }
    with scripted_broker(group) as second:

        def cluster(_: Any) -> Any:
            rows = [metadata.MetadataResponsePartition(partition_index=n, leader_id=n) for n in range(2)]
            return metadata.MetadataResponse(
                brokers=[
                    metadata.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=first.port),
                    metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=second.port),
                ],
                topics=[metadata.MetadataResponseTopic(name="tides", partitions=rows)],
            )

        def coordinator(_: Any) -> Any:
            return find_coordinator.FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=second.port)

        with scripted_broker({ApiKey.METADATA: cluster, ApiKey.FIND_COORDINATOR: coordinator}) as first:
            words = ("groups", "reset-offsets", "g", "--all-topics", "--to-latest", "--execute", "--json")
            done = command(*words, "-b", first.bootstrap).json
            (request,) = second.requests(offset_commit.OffsetCommitRequest)
            asked = [_partitions_asked(broker) for broker in (first, second)]
    assert [row["new"] for row in done["offsets"]] == [100, 100]
    assert [row.committed_offset for row in request.topics[0].partitions] == [100, 100]
    assert asked == [{0}, {1}]

"""What a broker that registers anew, or has made a log anew, may have lost of what it had before. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from strandline.metadata.image import UNASSIGNED, BrokerImage, MetadataImage, PartitionImage
from strandline.metadata.plans.elections import Returned
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.requests import BrokerRegistration
from strandline.model import NO_LEADER, TopicPartition

_MOST_NAMED: Final = 10


def returned_of(known: BrokerImage | None, broker: BrokerRegistration) -> Callable[[PartitionImage], Returned]:
    """What the new incarnation may have lost of each partition that an earlier one had.

    Nothing, if it says which epoch it had, and that was the last one. Otherwise its machine may have lost what was not
    yet on the disk.

    A replica in a log directory that is away cannot lead until the directory is back, or until the broker says that it
    has a log elsewhere: that one is new (`DirectoryPlanner`). So its place among those that may lead is kept. One that
    is in a directory that failed meanwhile may lack what was written last. If it is not known in which directory a
    replica is, one directory that is away is reason enough to take the log for gone; so it is if the broker cannot say
    that it was here before, and the cluster has forgotten.
    """
    node = broker.node_id
    is_same = known is not None and broker.previous_broker_epoch == known.epoch
    had, failed = ((), ()) if known is None else (known.log_dirs, known.failed_log_dirs)
    is_forgotten = known is None and broker.previous_broker_epoch < 0
    may_be_gone = is_forgotten or not set(had) <= set(broker.log_dirs)

    def returned(partition: PartitionImage) -> Returned:
        directory = partition.directory_of(node)
        if directory == UNASSIGNED:
            is_empty, is_complete = may_be_gone, is_same and not may_be_gone and not failed
        else:
            is_empty, is_complete = False, is_same and directory not in failed
        return Returned(incomplete=NO_LEADER if is_complete else node, empty=node if is_empty else NO_LEADER)

    return returned


def losses(image: MetadataImage, node_id: int, changes: Iterable[PartitionChangeRecord]) -> str:
    """A sentence for operators if partitions lose the last replica that may have led them; or nothing."""
    lost = []
    for change in changes:
        for topic_id, numbers in change.partitions:
            topic = image.topics_by_id[topic_id]
            for number in numbers:
                after = topic.partitions[number].changed(
                    change.isr, change.leader, elr=change.elr, last_known_elr=change.last_known_elr
                )
                if not after.has_leader and not (after.isr or after.elr or after.last_known_elr):
                    lost.append(TopicPartition(topic.name, number))
    if not lost:
        return ""
    named = ", ".join(map(str, lost[:_MOST_NAMED])) + (", ..." if len(lost) > _MOST_NAMED else "")
    return (
        f"Broker {node_id} has started without the log that it had. It was the last replica with all "
        f"committed records of partitions that have no leader now ({len(lost)} in all): {named}. Bring it back with "
        "its log directories, or give up what is lost (kafka-leader-election --election-type UNCLEAN)."
    )

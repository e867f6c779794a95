"""Batches that this broker appends for itself, and waiting until everything that is in the log now is replicated.

What a leader finds in its log counts for it alone until the in-sync replicas have it: another leader may begin without
it. So a coordinator that acts on what it has read waits first, and so does the answer that a marker is there already.
"""

from __future__ import annotations

from functools import partial

from strandline.errors import RequestTimedOut
from strandline.log import AppendOrigin
from strandline.replication.append import ACKS_ALL, Append, Appended, Done
from strandline.replication.completion import Completion
from strandline.replication.follower import does_not_lead
from strandline.replication.leader import LeaderRole
from strandline.replication.partition import Partition


def append_own(partition: Partition, records: memoryview, done: Done, *, transaction_version: int = 0) -> Appended:
    """Append a batch that this broker has built, with acks=all; see `Partition.append`.

    `transaction_version` is that of the client whose transaction a marker ends.
    """
    return partition.append(
        Append(
            records,
            acks=ACKS_ALL,
            origin=AppendOrigin.COORDINATOR,
            done=done,
            transaction_version=transaction_version,
        )
    )


def when_replicated(partition: Partition, done: Done) -> bool:
    """True if everything that was appended is replicated. Else `done` will be called once: with None when it is, or
    with the error that ends the leadership. Raises NotLeaderOrFollower."""
    role = partition.role
    if not isinstance(role, LeaderRole):
        raise does_not_lead(partition.node_id, partition.topic_partition)
    return role.wait_replicated(done)


async def wait_pending_appends(partition: Partition) -> None:
    """Wait until the appends that are under way are in the file, where they can be read, or have failed.

    A new leader has some if it was copying a large answer of the leader before.
    """
    if partition.log.has_pending_appends:
        completion = Completion()
        partition.writer.call_behind(partial(completion.done, None))
        await completion.wait(None)


async def wait_replicated(partition: Partition, *, timeout_ms: int | None) -> None:
    """The same in a coroutine. None: however long it takes. Raises RequestTimedOut, too."""
    completion = Completion()
    if not when_replicated(partition, completion.done) and not await completion.wait(timeout_ms):
        raise RequestTimedOut(f"{partition.topic_partition}: what was appended was not replicated in {timeout_ms} ms.")

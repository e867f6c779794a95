"""Share groups (KIP-932): members that read the same partitions together, and the offsets that they share.

Why it exists: a share group has members, epochs and a target assignment like a consumer group, but a partition may be
assigned to several members, and nothing is taken away from a member before another one may have it. What goes here:
membership, the `simple` assignor, and which partitions have state in the share coordinator: only those are assigned.
What does not: the records that members acquire and acknowledge, and where their state is kept (`ShareStates` is the
port to it).

`heartbeat`, `states` and `offsets` decide; a decision is a list of records and an answer. `service` writes decisions
for a shard and keeps sessions; `coordinator` adds what has to wait for the share coordinator.
"""

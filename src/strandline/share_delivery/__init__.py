"""Delivery of records to share groups (KIP-932), on the broker that leads a partition.

Why it exists: members of a share group read the same partition together. Each record is acquired by one of them at a
time, and is acknowledged, given back or given up. `ShareDelivery` knows that for each offset and has the rules;
`SharePartition` reads and writes it through the share coordinator and watches the clock; `SharePartitions` has those
of this broker; `ShareSessions` remembers what members fetch. What does not go here: the protocol
(`server.handlers.share`), membership (`coordinators.groups`).
"""

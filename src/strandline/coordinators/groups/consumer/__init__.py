"""The consumer protocol of KIP-848: members heartbeat, the broker assigns.

Why it exists: in this protocol a group has no leader and no barrier. The group has an epoch, which rises when
subscriptions or topics change; a target assignment, which the broker computes for an epoch; and each member moves on
its own from what it owns to its target, giving up before it takes.

The decisions are pure: `heartbeat`, `leaving`, `classic_members` and `migration` look at a `ConsumerGroup` and a
request and return the records to write and the answer. The group changes only by records (`ConsumerGroup.apply`),
whether they were just decided or are read from the log, so replaying the log gives the state that the group had.
`service` writes the records, keeps the timers and turns refusals of the log into answers.
"""

"""Coordinators: state machines that keep their state in an internal topic.

`runtime` is what all of them share: ownership of partitions, loading, writing, timers. `groups` are consumer and share
groups, `transactions` are transactional ids, `share_states` keeps the state of share partitions. Coordinators decide
synchronously, in memory; a decision is written to a partition of an internal topic and counts when that partition has
committed it. Nothing here knows the wire protocol: `server.handlers` translates.
"""

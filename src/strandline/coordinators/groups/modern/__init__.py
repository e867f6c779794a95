"""What Kafka calls modern groups: members send heartbeats, and the broker computes who reads what.

Why it exists: consumer groups (KIP-848) and share groups (KIP-932) work in this way, and streams groups (KIP-1071) can.
A group has an epoch, which rises when its members, their subscriptions or their topics change; a target assignment,
which the broker computes for an epoch; and members that are told their part of it. A group changes by records
(`ModernGroup.apply`), whether they were just decided or are read from the log, so replaying the log gives the state
that the group had. A decision is made in `GroupChanges`, which applies records as it makes them and can take them back;
`DecidedWrites` writes it, and calls back when the member may be told.

A kind of group brings its member, its record types and their bytes (a subclass of `ModernGroup`), its assignors, and
the rules of its heartbeat. What does not go here: how a member gets from what it has to its target, which is what makes
the kinds differ.
"""

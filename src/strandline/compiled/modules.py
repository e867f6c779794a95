"""Which modules are compiled where a compiler is at hand. To have another one compiled, add its name here.

A module belongs here if it runs for each request, batch or record. A class is compiled together with its base classes
and its subclasses, or not at all; `strandline compile` says so if one is missing. What differs in compiled code is in
docs/decisions/0019-hot-modules-are-compiled-where-a-compiler-is-at-hand.md.
"""

from __future__ import annotations

from typing import Final

# Names below `strandline`.
HOT_MODULES: Final[tuple[str, ...]] = (
    # Batches and their rules
    "records.batch",
    "records.builder",
    "records.control",
    "records.producer_entry",
    "records.record",
    "records.stamping",
    "records.validation",
    "records.varint",
    # Appending to a local log
    "log.appender",
    "log.following",
    "log.index_file",
    "log.offset_index",
    "log.offsets",
    "log.producer_snapshot",
    "log.producer_state",
    "log.reader",
    "log.recent",
    "log.recovery",
    "log.replay",
    "log.segment",
    "log.segment_file",
    "log.time_index",
    "log.unified",
    "log.unstable",
    "log.values",
    # Compaction
    "log.cleaning.offset_map",
    "log.cleaning.rewriting",
    "log.cleaning.transactions",
    "log.cleaning.worker",
    "log.scan",
    # Diskless records: rows, what is read for them, and the blocks that are made of it
    "controlplane.batch_rows",
    "diskless.reader.blocks",
    "diskless.reader.cache",
    "diskless.reader.loading",
    "diskless.reader.memory",
    "diskless.reader.pieces",
    "diskless.reader.planning",
    "diskless.reader.readahead",
    "diskless.reader.runs",
    # Segments that are files elsewhere
    "remote.reader.segments.files",
    # Partitions
    "hybrid.partition",
    "hybrid.parts.replica",
    "hybrid.parts.replica_appends",
    "replication.append",
    "replication.follower",
    "replication.gate",
    "replication.in_sync",
    "replication.leader",
    "replication.partition",
    "replication.waiting",
    # Heartbeats of classic groups
    "coordinators.groups.classic",
    "coordinators.groups.classic_group",
    "coordinators.groups.member",
    "coordinators.groups.memberships",
    "coordinators.groups.rebalance",
    "coordinators.runtime.timers",
    "server.handlers.groups.membership",
    "wire.messages.heartbeat",
    # Requests
    "server.connection",
    "server.context",
    "server.deadlines",
    "server.dispatcher",
    "server.exchange",
    "server.fetch_sessions",
    "server.handlers.fetch.answers",
    "server.handlers.fetch.counting",
    "server.handlers.fetch.findings",
    "server.handlers.fetch.handler",
    "server.handlers.fetch.held",
    "server.handlers.fetch.owner",
    "server.handlers.fetch.places",
    "server.handlers.fetch.poll",
    "server.handlers.fetch.sharing",
    "server.handlers.fetch.states",
    "server.handlers.fetch.watching",
    "server.handlers.produce",
    "server.memory",
    "server.outbox",
    "server.sending",
    "server.straight",
    "server.straight_replicated",
    "server.straight_route",
    "server.straight_several",
    "server.times.errors",
    "server.times.recording",
    "wire.fetch_codec",
    "wire.primitives",
    "wire.produce_codec",
    "wire.produce_places",
    "wire.registry",
)

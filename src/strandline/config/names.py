"""Settings that are not declared: which of Kafka's are accepted and ignored, and how others are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from strandline.errors import InvalidConfig

# Kafka settings for components that Strandline does not have. Real configuration files have them, and ignoring them
# breaks no promise, so they are accepted and listed at start.
IGNORED: Final[Mapping[str, str]] = {
    "alter.log.dirs.replication.quota.window.num": "quotas are not enforced yet",
    "alter.log.dirs.replication.quota.window.size.seconds": "quotas are not enforced yet",
    "auto.include.jmx.reporter": "metrics are served over HTTP",
    "controller.quorum.append.linger.ms": "there is no Raft quorum",
    "controller.quorum.bootstrap.servers": "there is no Raft quorum",
    "controller.quorum.election.backoff.max.ms": "there is no Raft quorum",
    "controller.quorum.election.timeout.ms": "there is no Raft quorum",
    "controller.quorum.fetch.timeout.ms": "there is no Raft quorum",
    "controller.quorum.request.timeout.ms": "there is no Raft quorum",
    "controller.quorum.voters": "there is no Raft quorum",
    "delete.records.purgatory.purge.interval.requests": "waiting requests are tasks, not purgatory entries",
    "fetch.purgatory.purge.interval.requests": "waiting requests are tasks, not purgatory entries",
    "inkless.consume.batch.coordinate.cache.enabled": "the cache knows which offsets it holds",
    "inkless.consume.batch.coordinate.cache.ttl.ms": "the cache knows which offsets it holds",
    "inkless.consume.cache.block.bytes": "the cache keeps batches and not blocks of objects",
    "inkless.consume.cache.expiration.lifespan.sec": "the cache is limited by inkless.consume.cache.max.bytes alone",
    "inkless.consume.cache.expiration.max.idle.sec": "the cache is limited by inkless.consume.cache.max.bytes alone",
    "inkless.consume.cache.max.count": "the cache is limited by inkless.consume.cache.max.bytes alone",
    "inkless.fetch.hedge.total.time.threshold.ms": "inkless.fetch.hedge.ttfb.threshold.ms decides alone",
    "inkless.fetch.lagging.consumer.request.rate.limit": "lagging consumers have their own limits on reads and memory",
    "inkless.storage.aws.http.max.connections": "connections are opened as reads and writes need them",
    "metadata.log.dir": "the metadata log is in the metadata database",
    "metadata.log.max.record.bytes.between.snapshots": "the metadata log is in the metadata database",
    "metadata.log.max.snapshot.interval.ms": "the metadata log is in the metadata database",
    "metadata.log.segment.bytes": "the metadata log is in the metadata database",
    "metadata.log.segment.ms": "the metadata log is in the metadata database",
    "metadata.max.idle.interval.ms": "the metadata log is in the metadata database",
    "metadata.max.retention.bytes": "the metadata log is in the metadata database",
    "metadata.max.retention.ms": "the metadata log is in the metadata database",
    "metric.reporters": "metrics are served over HTTP",
    "metrics.num.samples": "metrics are served over HTTP",
    "metrics.recording.level": "metrics are served over HTTP",
    "metrics.sample.window.ms": "metrics are served over HTTP",
    "num.replica.alter.log.dirs.threads": "one event loop does the work",
    "producer.purgatory.purge.interval.requests": "waiting requests are tasks, not purgatory entries",
    "quota.window.num": "quotas are not enforced yet",
    "quota.window.size.seconds": "quotas are not enforced yet",
    "remote.partition.remover.task.interval.ms": (
        "segments of deleted topics are deleted every remote.log.manager.task.interval.ms"
    ),
    "replication.quota.window.num": "quotas are not enforced yet",
    "replication.quota.window.size.seconds": "quotas are not enforced yet",
}

# Settings whose promise would be broken if they were ignored: refused, with the reason.
_REFUSED: Final[Mapping[str, str]] = {
    "broker.id": "is called node.id",
    "zookeeper.connect": "does not exist any more: metadata is kept at strandline.metadata.url",
    "log.message.format.version": "does not exist any more: record format 2 is always used",
    "inter.broker.protocol.version": "does not exist any more",
    "diskless.enable": "is a setting of topics; on brokers, log.diskless.enable makes new topics diskless",
    "remote.storage.enable": "is a setting of topics; on brokers, remote.log.storage.system.enable allows it",
    "diskless.migration.state": (
        "is read-only: it shows how far a topic is on its way from classic to diskless, which diskless.enable=true "
        "begins"
    ),
}
# Families of the KIP that Kafka 4 takes with a prefix only, and the prefix.
_HANDED_ON_FAMILIES: Final[Mapping[str, str]] = {
    "remote.log.storage.": "rsm.config.",
    "remote.log.metadata.": "rlmm.config.",
}
_CONVERSION: Final = (
    "strandline tiering run converts diskless batches into tiered segments, by local.retention.ms of each topic and "
    "the settings inkless.tiering.*"
)
_REFUSED_FAMILIES: Final[Mapping[str, str]] = {
    "ssl.": "TLS is not available in this version",
    "sasl.": "SASL is not available in this version",
    "listener.name.": "settings for one listener are not available in this version",
    "authorizer.": "authorization is not available in this version",
    "super.users": "authorization is not available in this version",
    "principal.builder.": "authentication is not available in this version",
    "connections.max.reauth.": "authentication is not available in this version",
    "delegation.token.": "authentication is not available in this version",
    "client.quota.": "quotas are not available in this version",
    "diskless.allow.from.classic.": "a classic topic becomes diskless by its own diskless.enable, nothing forbids it",
    "diskless.managed.rf.": "diskless topics have one replica in this version",
    "diskless.force.": "log.diskless.enable makes new topics diskless",
    "diskless.fetch.": "consumers wait as long as their requests say",
    "diskless.": _CONVERSION,
    "classic.remote.storage.": "a topic is tiered by its own remote.storage.enable",
    "inkless.control.plane.": "the control plane is in the database of strandline.metadata.url",
    "inkless.storage.backend.": "strandline.objects.url names the object store",
    "inkless.storage.gcs.": "credentials come from the environment: GOOGLE_APPLICATION_CREDENTIALS",
    "inkless.storage.azure.": "credentials come from the environment: AZURE_STORAGE_ACCOUNT_NAME and others",
    "inkless.client.az.": "clients are not told apart by zone in this version",
    "inkless.consolidation.": _CONVERSION,
    "group.share.": "the feature share.version switches share groups",
    "group.streams.": "streams groups are not available in this version",
    "replica.selector.": "reading from followers is not available in this version",
    "create.topic.policy.": "policies are not available in this version",
    "alter.config.policy.": "policies are not available in this version",
    "config.providers": "configuration providers are not available in this version",
}


def unknown_name(name: str, known: Iterable[str], *, what: str) -> InvalidConfig:
    """The refusal of a name that is not `what`, with the nearest name that is, or the reason."""
    if name in _REFUSED:
        return InvalidConfig(f"{name} {_REFUSED[name]}.")
    for family, reason in _REFUSED_FAMILIES.items():
        if name.startswith(family):
            return InvalidConfig(f"{name} cannot be set: {reason}.")
    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    for family, prefix in _HANDED_ON_FAMILIES.items():
        if name.startswith(family) and not get_close_matches(name, near, cutoff=0.9):
            return InvalidConfig(f"{name} is not {what}; a setting of a plugin of tiered storage is {prefix}{name}.")
    hint = f"; did you mean {near[0]}?" if near else "."
    return InvalidConfig(f"{name} is not {what}{hint}")

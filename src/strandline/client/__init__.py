"""How programs of ours talk to a running cluster: Kafka's protocol, and HTTP for what that has no request for.

Blocking, for commands and for the tiering pipeline; brokers among themselves use `wire`. Here: connections, where
brokers are, and errors as sentences. Not here: what is asked (`admin.commands`, `pipeline`).
"""

from strandline.client.cluster import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    Cluster,
    CommandFailed,
    Json,
    Pair,
    check,
    explain,
    list_offsets,
    parse_assignments,
    partition_leaders,
    sentences,
)
from strandline.client.http import BrokerHttp, HttpRefused, HttpUnreachable
from strandline.client.settings import BROKER, TOPIC, broker_setting, described

__all__ = [
    "BROKER",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "TOPIC",
    "BrokerHttp",
    "Cluster",
    "CommandFailed",
    "HttpRefused",
    "HttpUnreachable",
    "Json",
    "Pair",
    "broker_setting",
    "check",
    "described",
    "explain",
    "list_offsets",
    "parse_assignments",
    "partition_leaders",
    "sentences",
]

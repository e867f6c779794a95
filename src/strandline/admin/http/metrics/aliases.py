"""Further names for the same numbers: those in dashboards that were made for other settings of the JMX exporter.

Strimzi's settings end the names of counters with `_total`, as Prometheus wants it, and so do we. Confluent's, and those
of Grafana's mixin, keep the names of Kafka's meters (`BytesInPerSec`), whose values are counters all the same. A panel
of such a dashboard needs each name here.
"""

from __future__ import annotations

from typing import Final

from strandline.admin.http.metrics.broker import BROKER
from strandline.admin.http.metrics.families import Family, alias
from strandline.admin.http.metrics.fixed import FIXED
from strandline.admin.http.metrics.load import LOAD
from strandline.admin.http.metrics.tiered import TIERED
from strandline.admin.http.metrics.traffic import TRAFFIC
from strandline.admin.load import LoadStatus
from strandline.admin.status import BrokerStatus
from strandline.hybrid.remote.status import TieredStatus

_OF_TOPIC: Final = "kafka_server_brokertopicmetrics_"
_SOCKETS: Final = "kafka_server_socket_server_metrics_"
_OTHER_SOCKETS: Final = "kafka_server_socketservermetrics_"
_ARCHIVER: Final = "kafka_tier_tasks_archive_tierarchiver_"

_BROKER_ALIASES: Final = {
    _OF_TOPIC + "bytesinpersec": _OF_TOPIC + "bytesin",
    _OF_TOPIC + "bytesoutpersec": _OF_TOPIC + "bytesout",
    _OF_TOPIC + "messagesinpersec": _OF_TOPIC + "messagesin",
    _OF_TOPIC + "totalproducerequestspersec": _OF_TOPIC + "totalproducerequests",
    _OF_TOPIC + "totalfetchrequestspersec": _OF_TOPIC + "totalfetchrequests",
    _OF_TOPIC + "producemessageconversionspersec": _OF_TOPIC + "producemessageconversions",
    _OF_TOPIC + "fetchmessageconversionspersec": _OF_TOPIC + "fetchmessageconversions",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec": (
        "kafka_controller_controllerstats_uncleanleaderelections"
    ),
    "kafka_server_replicamanager_isrshrinkspersec": "kafka_server_replicamanager_isrshrinks",
    "kafka_server_replicamanager_isrexpandspersec": "kafka_server_replicamanager_isrexpands",
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec": (
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions"
    ),
}
_LOAD_ALIASES: Final = {
    "kafka_network_requestmetrics_requestspersec": "kafka_network_requestmetrics_requests",
    "kafka_network_requestmetrics_errorspersec": "kafka_network_requestmetrics_errors",
    "kafka_network_socketserver_networkprocessoravgidlepercent": (
        "kafka_network_socketserver_networkprocessoravgidle_percent"
    ),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate": (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    ),
    _OTHER_SOCKETS + "connection_count": _SOCKETS + "connection_count",
    _OTHER_SOCKETS + "connection_creation_rate": _SOCKETS + "connection_creation_rate",
    _OTHER_SOCKETS + "connection_close_rate": _SOCKETS + "connection_close_rate",
}
# Names of Confluent's own tiered storage, for what means the same here.
_TIERED_ALIASES: Final = {
    "kafka_log_log_tiersize": _OF_TOPIC + "remotelogsizebytes",
    _ARCHIVER + "bytespersec": _OF_TOPIC + "remotecopybytes",
    _ARCHIVER + "retriespersec": _OF_TOPIC + "remotecopyerrors",
    _ARCHIVER + "totallag": _OF_TOPIC + "remotecopylagbytes",
    "kafka_tier_tasks_tiertasks_numpartitionsinerror": "strandline_remote_failing_partitions",
}

BROKER_ALIASES: Final[tuple[Family[BrokerStatus], ...]] = tuple(
    alias(name, {family.name: family for family in (*BROKER, *TRAFFIC, *FIXED)}[of])
    for name, of in _BROKER_ALIASES.items()
)
LOAD_ALIASES: Final[tuple[Family[LoadStatus], ...]] = tuple(
    alias(name, {family.name: family for family in LOAD}[of]) for name, of in _LOAD_ALIASES.items()
)
TIERED_ALIASES: Final[tuple[Family[TieredStatus], ...]] = tuple(
    alias(name, {family.name: family for family in TIERED}[of]) for name, of in _TIERED_ALIASES.items()
)

"""Every setting of a broker, of a topic and of a group, declared once.

Why it exists: the loader, the range checks, `DescribeConfigs`, dynamic changes and the reference page must
never disagree, so all of them read one declaration. What goes here: names, types, defaults, ranges, help and
the rules between settings. What does not: components. They take the settings of their own area
(`LogSettings`, `GroupSettings`, ...), never all `Settings`.
"""

from strandline.config.admin import AdminSettings
from strandline.config.cluster import ClusterSettings
from strandline.config.conversion import TieringSettings
from strandline.config.diskless import DisklessSettings
from strandline.config.group import GroupConfig, group_config
from strandline.config.groups import GroupSettings
from strandline.config.listeners import Endpoint
from strandline.config.log import LogSettings
from strandline.config.network import NetworkSettings
from strandline.config.properties import load_properties, parse_properties
from strandline.config.remote import TierSettings
from strandline.config.replication import ReplicationSettings
from strandline.config.rules import validate_topic_overrides
from strandline.config.settings import Settings
from strandline.config.topic import TopicConfig
from strandline.config.transactions import TransactionSettings

__all__ = [
    "AdminSettings",
    "ClusterSettings",
    "DisklessSettings",
    "Endpoint",
    "GroupConfig",
    "GroupSettings",
    "LogSettings",
    "NetworkSettings",
    "ReplicationSettings",
    "Settings",
    "TierSettings",
    "TieringSettings",
    "TopicConfig",
    "TransactionSettings",
    "group_config",
    "load_properties",
    "parse_properties",
    "validate_topic_overrides",
]

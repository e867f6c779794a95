"""Which version of an API two sides use: the newest version that both know."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.errors import UnsupportedVersion
from strandline.wire.api import KNOWN_APIS, ApiKey, VersionRange
from strandline.wire.messages.api_versions import ApiVersionsResponse


def common_versions(offer: ApiVersionsResponse) -> dict[ApiKey, VersionRange]:
    """The versions that the other side offers and we know; an API without a common version has an empty range."""
    common = {}
    for row in offer.api_keys:
        if row.api_key in KNOWN_APIS:
            known = KNOWN_APIS[ApiKey(row.api_key)]
            common[ApiKey(row.api_key)] = VersionRange(
                max(row.min_version, known.min), min(row.max_version, known.max), known.first_flexible
            )
    return common


def newest_version(common: Mapping[ApiKey, VersionRange], api_key: ApiKey) -> int:
    """The version to use. Raises UnsupportedVersion."""
    versions = common.get(api_key)
    if versions is None or versions.min > versions.max:
        raise UnsupportedVersion(f"The broker does not offer {api_key.name} in a version that this program knows.")
    return versions.max

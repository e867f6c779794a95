"""ApiVersions, versions 0 to 4.

Answers with the APIs the broker offers. A request newer than version 4 never gets here: the dispatcher answers it in
version 0 with UNSUPPORTED_VERSION, so that the client tries again with an older version.

Brokers of Strandline name themselves in the request, and get the APIs of the controller as well.

A client that names itself in a way Kafka refuses gets INVALID_REQUEST, as there. The features are those that
`strandline.metadata.features` announces; their epoch is the offset of the metadata. As in Kafka a client of version 3
is not told the supported range of a feature that begins with 0, which some cannot read, and no client the level 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from strandline.metadata import ConfigResourceType, Images, announced_features, configs_of, finalized_level
from strandline.server.client_software import ClientSoftware
from strandline.server.context import Handler, RequestContext
from strandline.wire.api import API_VERSIONS, BROKER_SOFTWARE, SERVED_APIS, ApiKey, VersionRange
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_NAMES_SOFTWARE: Final = 3
_READS_FEATURES_FROM_0: Final = 4
_TELEMETRY: Final = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
_LEGAL_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Lists the APIs and versions that a client may use."""

    def __init__(self, images: Images, software: ClientSoftware) -> None:
        self._images, self._software = images, software
        self._to_clients = _listed(API_VERSIONS)
        self._without_telemetry = [one for one in self._to_clients if one.api_key not in _TELEMETRY]
        self._to_brokers = _listed(SERVED_APIS)

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.API_VERSIONS: self.api_versions}

    async def api_versions(self, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        """The same list for every client, without telemetry while there are no subscriptions; brokers get more APIs."""
        if context.api_version >= _NAMES_SOFTWARE and not _is_legal(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if context.api_version >= _NAMES_SOFTWARE:
            self._software.note(context.connection_id, request.client_software_name, request.client_software_version)
        is_broker = request.client_software_name == BROKER_SOFTWARE
        answer = ApiVersionsResponse(api_keys=self._to_brokers if is_broker else self._offered())
        self._add_features(answer, context.api_version)
        return answer

    def _offered(self) -> list[ApiVersion]:
        """Without subscriptions to metrics, telemetry is not offered: librdkafka would log a line for nothing."""
        has_subscriptions = len(configs_of(self._images.image, ConfigResourceType.CLIENT_METRICS)) > 0
        return self._to_clients if has_subscriptions else self._without_telemetry

    def _add_features(self, answer: ApiVersionsResponse, version: int) -> None:
        features, image = announced_features(), self._images.image
        if not features:
            return
        levels = {name: finalized_level(image, name) for name in features}
        answer.supported_features = [
            SupportedFeatureKey(name=name, min_version=known.min, max_version=known.max)
            for name, known in features.items()
            if known.min > 0 or version >= _READS_FEATURES_FROM_0
        ]
        answer.finalized_features_epoch = image.offset
        answer.finalized_features = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level > 0
        ]


def _listed(offered: Mapping[ApiKey, VersionRange]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
        for key, versions in sorted(offered.items())
    ]


def _is_legal(request: ApiVersionsRequest) -> bool:
    texts = (request.client_software_name, request.client_software_version)
    return all(_LEGAL_SOFTWARE.fullmatch(text) for text in texts)

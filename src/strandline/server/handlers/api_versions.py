"""ApiVersions, versions 0 to 4.

Answers with the APIs the broker offers. A request newer than version 4 never gets here: the dispatcher answers it in
version 0 with UNSUPPORTED_VERSION, so that the client tries again with an older version.

Brokers of Strandline name themselves in the request, and get the APIs of the controller as well.

A client that names itself in a way Kafka refuses gets INVALID_REQUEST, as there. No feature is announced: Strandline
implements none of those that clients act upon (transaction.version 2 is the only one).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from strandline.server.context import Handler, RequestContext
from strandline.wire.api import API_VERSIONS, BROKER_SOFTWARE, SERVED_APIS, ApiKey, VersionRange
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_NAMES_SOFTWARE: Final = 3
_LEGAL_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Lists the APIs and versions that a client may use."""

    def __init__(self) -> None:
        self._to_clients = _listed(API_VERSIONS)
        self._to_brokers = _listed(SERVED_APIS)

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.API_VERSIONS: self.api_versions}

    async def api_versions(self, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        """The same list for every client; brokers get more APIs."""
        if context.api_version >= _NAMES_SOFTWARE and not _is_legal(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        is_broker = request.client_software_name == BROKER_SOFTWARE
        return ApiVersionsResponse(api_keys=self._to_brokers if is_broker else self._to_clients)


def _listed(offered: Mapping[ApiKey, VersionRange]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
        for key, versions in sorted(offered.items())
    ]


def _is_legal(request: ApiVersionsRequest) -> bool:
    texts = (request.client_software_name, request.client_software_version)
    return all(_LEGAL_SOFTWARE.fullmatch(text) for text in texts)

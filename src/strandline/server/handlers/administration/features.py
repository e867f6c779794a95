"""UpdateFeatures, versions 0 to 2: the levels of the features that ApiVersions announces.

All updates of a request are made, or none of them: the error is that of the first feature that may not have its level.
Up to version 1 the answer to a request that succeeds has a line for each feature, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import StrandlineError
from strandline.metadata import Controller, FeatureUpgrade, FeatureWish
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_HAS_TYPES: Final = 1
_HAS_NO_LINES: Final = 2


class FeaturesHandler:
    """Switches features."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.UPDATE_FEATURES: self.update_features}

    async def update_features(self, request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
        """Give features other levels, or only say whether they could have them."""
        answer: StrandlineError | None = None
        try:
            wishes = [_wish(update, context.api_version) for update in request.feature_updates]
            await self._controller.update_features(wishes, request.validate_only)
        except StrandlineError as error:
            answer = error
        code, message = outcome(answer)
        has_lines = answer is None and context.api_version < _HAS_NO_LINES
        return UpdateFeaturesResponse(
            error_code=code,
            error_message=message,
            results=[UpdatableFeatureResult(feature=update.feature) for update in request.feature_updates if has_lines],
        )


def _wish(update: FeatureUpdateKey, version: int) -> FeatureWish:
    upgrade = update.upgrade_type
    if version < _HAS_TYPES:
        upgrade = FeatureUpgrade.SAFE_DOWNGRADE if update.allow_downgrade else FeatureUpgrade.UPGRADE
    return FeatureWish(name=update.feature, level=update.max_version_level, upgrade=upgrade)

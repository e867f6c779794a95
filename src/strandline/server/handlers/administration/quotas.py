"""DescribeClientQuotas and AlterClientQuotas, versions 0 and 1.

Quotas are stored in the metadata with Kafka's rules, and described by its filters: exact, default, any, and strict.
They are not enforced yet, and the log of the broker says so when they are set, and at each start. The name of an ip
entity is an address, or a host name that this broker can resolve.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address

from strandline.errors import InvalidRequest, StrandlineError
from strandline.metadata import Controller, Images, QuotaAlteration, QuotaFilterPart, matching_quotas
from strandline.metadata.administered import IP
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntryData,
)
from strandline.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

logger = logging.getLogger(__name__)


class ClientQuotasHandler:
    """Describes and changes quotas of clients."""

    def __init__(self, controller: Controller, images: Images) -> None:
        self._controller, self._images = controller, images
        self._warn(images.image.administered.quotas)

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self.describe_client_quotas,
            ApiKey.ALTER_CLIENT_QUOTAS: self.alter_client_quotas,
        }

    async def describe_client_quotas(
        self, request: DescribeClientQuotasRequest, context: RequestContext
    ) -> DescribeClientQuotasResponse:
        """The quotas of every entity that the filter finds."""
        parts = [
            QuotaFilterPart(type=part.entity_type, match=part.match_type, name=part.match)
            for part in request.components
        ]
        try:
            found = matching_quotas(self._images.image, parts, strict=request.strict)
        except StrandlineError as error:
            code, message = outcome(error)
            return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
        return DescribeClientQuotasResponse(
            entries=[
                EntryData(
                    entity=[EntityData(entity_type=owner.type, entity_name=owner.name) for owner in entity],
                    values=[ValueData(key=key, value=quotas[key]) for key in sorted(quotas)],
                )
                for entity, quotas in found.items()
            ]
        )

    def _warn(self, entities: Collection[object]) -> None:
        if entities:
            logger.warning(
                "quotas of %d clients, users or addresses are stored, but nothing enforces quotas in this version: "
                "these clients are not throttled",
                len(entities),
            )

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, context: RequestContext
    ) -> AlterClientQuotasResponse:
        """One answer per entity, also if it is named twice; an entity is changed as a whole or not at all."""
        answers = [await _unresolvable(entry) for entry in request.entries]
        wishes = {index: _alteration(entry) for index, entry in enumerate(request.entries) if answers[index] is None}
        try:
            made: Sequence[StrandlineError | None] = await self._controller.alter_quotas(
                list(wishes.values()), request.validate_only
            )
        except StrandlineError as error:
            made = [error] * len(wishes)
        for index, answer in zip(wishes, made, strict=True):
            answers[index] = answer
        if not request.validate_only:
            entries_set = zip(wishes.values(), made, strict=True)
            self._warn([wish for wish, error in entries_set if error is None and _sets_something(wish)])
        entries: dict[frozenset[tuple[str, str | None]], ResponseEntryData] = {}
        for entry, answer in zip(request.entries, answers, strict=True):
            code, message = outcome(answer)
            line = ResponseEntryData(error_code=code, error_message=message, entity=entry.entity)
            entries[frozenset(_alteration(entry).entity)] = line
        return AlterClientQuotasResponse(entries=list(entries.values()))


def _alteration(entry: RequestEntryData) -> QuotaAlteration:
    return QuotaAlteration(
        entity=[(part.entity_type, part.entity_name) for part in entry.entity],
        changes=[(op.key, None if op.remove else op.value) for op in entry.ops],
    )


def _sets_something(wish: QuotaAlteration) -> bool:
    return any(value is not None for _, value in wish.changes)


async def _unresolvable(entry: RequestEntryData) -> StrandlineError | None:
    """The refusal of an ip that is neither an address nor a known host."""
    for part in entry.entity:
        if part.entity_type != IP or not part.entity_name or _is_address(part.entity_name):
            continue
        try:
            await asyncio.get_running_loop().getaddrinfo(part.entity_name, None)
        except (OSError, ValueError):  # also a name that cannot be one
            return InvalidRequest(f"{part.entity_name!r} is not an IP address, and no host of that name is known.")
    return None


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

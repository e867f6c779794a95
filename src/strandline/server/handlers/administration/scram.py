"""DescribeUserScramCredentials and AlterUserScramCredentials, version 0.

Credentials are stored in the metadata with Kafka's rules: SCRAM-SHA-256 and SCRAM-SHA-512, 4,096 to 16,384 iterations.
Only their mechanisms and iterations are ever given back. Passwords are not checked yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from strandline.admin_errors import DuplicateResource, ResourceNotFound
from strandline.errors import StrandlineError
from strandline.metadata import Controller, Images, ScramDeletion, ScramUpsertion
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from strandline.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


class ScramHandler:
    """Describes and changes SCRAM credentials."""

    def __init__(self, controller: Controller, images: Images) -> None:
        self._controller, self._images = controller, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self.describe_credentials,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self.alter_credentials,
        }

    async def describe_credentials(
        self, request: DescribeUserScramCredentialsRequest, context: RequestContext
    ) -> DescribeUserScramCredentialsResponse:
        """The credentials of some users, or of all of them (null or an empty list)."""
        known: dict[str, list[CredentialInfo]] = {}
        for (user, mechanism), credential in sorted(self._images.image.administered.credentials.items()):
            info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            known.setdefault(user, []).append(info)
        times = Counter(user.name for user in request.users or ())
        return DescribeUserScramCredentialsResponse(
            results=[_described(user, known.get(user), times[user]) for user in times or known]
        )

    async def alter_credentials(
        self, request: AlterUserScramCredentialsRequest, context: RequestContext
    ) -> AlterUserScramCredentialsResponse:
        """One answer per user."""
        deletions = [ScramDeletion(user=one.name, mechanism=one.mechanism) for one in request.deletions]
        upsertions = [
            ScramUpsertion(
                user=one.name,
                mechanism=one.mechanism,
                iterations=one.iterations,
                salt=bytes(one.salt),
                salted_password=bytes(one.salted_password),
            )
            for one in request.upsertions
        ]
        answers: Mapping[str, StrandlineError | None]
        try:
            answers = await self._controller.alter_credentials(deletions, upsertions)
        except StrandlineError as error:
            answers = dict.fromkeys([*(one.user for one in deletions), *(one.user for one in upsertions)], error)
        results = []
        for user, answer in answers.items():
            code, message = outcome(answer)
            results.append(AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message))
        return AlterUserScramCredentialsResponse(results=results)


def _described(user: str, infos: list[CredentialInfo] | None, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        code, message = outcome(DuplicateResource(f"The request names user {user} more than once."))
        return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message)
    if infos is None:
        code, message = outcome(ResourceNotFound(f"User {user} has no SCRAM credentials."))
        return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message)
    return DescribeUserScramCredentialsResult(user=user, credential_infos=infos)

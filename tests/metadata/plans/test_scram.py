"""SCRAM credentials: what may be stored, and that nothing secret is shown."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from strandline.admin_errors import (
    DuplicateResource,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from strandline.errors import StrandlineError
from strandline.metadata import ScramDeletion, ScramMechanism, ScramUpsertion
from strandline.metadata.administered import ScramOwner
from strandline.metadata.records import ScramCredentialRecord
from tests.metadata.cluster import Cluster, open_cluster

# The conversation of RFC 7677, section 3: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CONVERSATION = (f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}").encode()
CLIENT_PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

OWNER = ScramOwner("user", ScramMechanism.SCRAM_SHA_256)


def upsertion(
    user: str = "user", *, mechanism: int = 1, iterations: int = 4096, salted_password: bytes = PENCIL
) -> ScramUpsertion:
    return ScramUpsertion(
        user=user, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted_password
    )


async def change(cluster: Cluster, *changes: ScramDeletion | ScramUpsertion) -> dict[str, StrandlineError | None]:
    deletions = [one for one in changes if isinstance(one, ScramDeletion)]
    upsertions = [one for one in changes if isinstance(one, ScramUpsertion)]
    return dict(await cluster.controller.alter_credentials(deletions, upsertions))


async def test_what_is_stored_checks_the_proof_of_a_client_and_signs_for_the_server() -> None:
    async with open_cluster() as cluster:
        assert await change(cluster, upsertion()) == {"user": None}
        kept = cluster.image.administered.credentials[OWNER]
    signature = hmac.digest(kept.stored_key, CONVERSATION, "sha256")
    client_key = bytes(a ^ b for a, b in zip(CLIENT_PROOF, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == kept.stored_key
    assert hmac.digest(kept.server_key, CONVERSATION, "sha256") == SERVER_SIGNATURE
    assert (kept.salt, kept.iterations) == (SALT, 4096)


async def test_a_credential_is_replaced_and_removed() -> None:
    async with open_cluster() as cluster:
        await change(cluster, upsertion())
        await change(cluster, upsertion(iterations=16384))
        assert cluster.image.administered.credentials[OWNER].iterations == 16384
        assert await change(cluster, ScramDeletion(user="user", mechanism=1)) == {"user": None}
        assert cluster.image.administered.credentials == {}


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        (upsertion(iterations=4095), UnacceptableCredential),
        (upsertion(iterations=16385), UnacceptableCredential),
        (upsertion(""), UnacceptableCredential),
        (upsertion(salted_password=b""), UnacceptableCredential),
        (upsertion(mechanism=0), UnsupportedSaslMechanism),
        (upsertion(mechanism=3), UnsupportedSaslMechanism),
        (ScramDeletion(user="user", mechanism=2), ResourceNotFound),
        (ScramDeletion(user="nobody", mechanism=1), ResourceNotFound),
        (ScramDeletion(user="", mechanism=1), UnacceptableCredential),
    ],
)
async def test_refusals(wish: ScramDeletion | ScramUpsertion, error: type[StrandlineError]) -> None:
    async with open_cluster() as cluster:
        await change(cluster, upsertion())
        before = cluster.image
        answers = await change(cluster, wish)
        assert [type(answer) for answer in answers.values()] == [error]
        assert cluster.image is before


async def test_a_user_who_is_named_twice_is_not_changed_and_does_not_stop_the_others() -> None:
    async with open_cluster() as cluster:
        await change(cluster, upsertion())
        answers = await change(
            cluster, ScramDeletion(user="user", mechanism=1), upsertion(mechanism=2), upsertion("other", mechanism=2)
        )
        assert isinstance(answers["user"], DuplicateResource)
        assert answers["other"] is None
        assert cluster.image.administered.credentials.keys() == {OWNER, ScramOwner("other", ScramMechanism(2))}


async def test_nothing_secret_is_in_the_text_of_a_request_or_a_record() -> None:
    async with open_cluster() as cluster:
        await change(cluster, upsertion())
        kept = cluster.image.administered.credentials[OWNER]
        shown = [repr(upsertion()), repr(ScramCredentialRecord(owner=OWNER, credential=kept)), repr(cluster.image)]
        for secret in (PENCIL, SALT, kept.stored_key, kept.server_key):
            assert all(repr(secret) not in text for text in shown)

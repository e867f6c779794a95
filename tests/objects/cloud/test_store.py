"""What buckets answer when something is wrong, and what we ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from strandline.objects import (
    ObjectExists,
    ObjectNotFound,
    ObjectOptions,
    ObjectStore,
    ObjectStoreError,
    ObjectStoreMisconfigured,
    ObjectStoreUnavailable,
    Patience,
    S3Options,
    claim_prefix,
    open_objects,
)
from strandline.objects.store import AccessRefused
from tests.objects.http_server import Request, answer, http_server
from tests.s3 import S3, start_s3

ONCE = Patience(attempts=1, attempt_deadline=30, deadline=30)
CREDENTIALS = S3Options(region="us-east-1", access_key_id="some-id", secret_access_key="very-secret")
OBJECT_HEADERS = {"ETag": '"x"', "Last_Modified": "Mon, 16 Nov 2026 00:00:00 GMT"}


@pytest.fixture
def s3() -> S3:
    return start_s3()


@asynccontextmanager
async def bucket_at(
    endpoint: str, s3: S3Options = CREDENTIALS, patience: Patience = ONCE
) -> AsyncIterator[ObjectStore]:
    options = ObjectOptions(s3=replace(s3, endpoint_url=endpoint), patience=patience)
    async with open_objects("s3://some-bucket/some/prefix", options) as store:
        yield store


def error_body(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>said the server</Message></Error>".encode()


async def test_a_bucket_that_does_not_exist_is_a_misconfiguration(s3: S3) -> None:
    async with open_objects("s3://no-such-bucket/x", s3.object_options) as store:
        for call in (
            store.put("key", [b"x"]),
            store.put_new("key", [b"x"]),
            store.get("key"),
            claim_prefix(store, "c"),
        ):
            with pytest.raises(ObjectStoreMisconfigured, match="s3://no-such-bucket/x: there is no such bucket"):
                await call
        with pytest.raises(ObjectStoreMisconfigured, match="there is no such bucket"):
            assert [info async for info in store.list("")] == []


async def test_two_clusters_are_told_apart_in_a_bucket(s3: S3) -> None:
    bucket = s3.new_bucket()
    async with open_objects(f"s3://{bucket}/a", s3.object_options) as store:
        await claim_prefix(store, "one")
        await claim_prefix(store, "one")
        with pytest.raises(ObjectStoreMisconfigured, match="belongs to the cluster one"):
            await claim_prefix(store, "two")
    async with open_objects(f"s3://{bucket}/b", s3.object_options) as other:
        await claim_prefix(other, "two")


async def test_prefixes_of_one_bucket_do_not_see_each_other(s3: S3) -> None:
    bucket = s3.new_bucket()
    async with (
        open_objects(f"s3://{bucket}/a", s3.object_options) as inner,
        open_objects(f"s3://{bucket}/ab", s3.object_options) as neighbour,
        open_objects(f"s3://{bucket}", s3.object_options) as whole,
    ):
        await inner.put("key", [b"inner"])
        await neighbour.put("key", [b"neighbour"])
        assert [info.key async for info in inner.list("")] == ["key"]
        assert [info.key async for info in whole.list("")] == ["a/key", "ab/key"]
        await inner.delete(["key"])
        assert bytes(await neighbour.get("key")) == b"neighbour"


async def test_a_store_that_is_not_there_is_unavailable() -> None:
    async with bucket_at("http://127.0.0.1:1") as store:
        with pytest.raises(ObjectStoreUnavailable, match=r"some/key.*s3://some-bucket/some/prefix") as raised:
            await store.put("some/key", [b"x"])
    assert "very-secret" not in str(raised.value)
    assert "Debug source" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("503 Slow Down", "SlowDown", ObjectStoreUnavailable),
        ("500 Internal Server Error", "InternalError", ObjectStoreUnavailable),
        ("429 Too Many Requests", "TooManyRequests", ObjectStoreUnavailable),
        ("409 Conflict", "ConditionalRequestConflict", ObjectStoreUnavailable),
        ("403 Forbidden", "SignatureDoesNotMatch", AccessRefused),
        ("401 Unauthorized", "AccessDenied", AccessRefused),
        ("400 Bad Request", "ExpiredToken", ObjectStoreError),
        ("412 Precondition Failed", "PreconditionFailed", ObjectExists),
        ("301 Moved Permanently", "PermanentRedirect", ObjectStoreMisconfigured),
    ],
)
async def test_each_refusal_has_its_meaning_and_is_one_request(
    status: str, code: str, kind: type[ObjectStoreError]
) -> None:
    async with http_server(lambda _: answer(status, error_body(code))) as server, bucket_at(server.endpoint) as store:
        with pytest.raises(ObjectStoreError, match="some-bucket") as raised:
            await store.put_new("some/key", [b"x"])
        assert type(raised.value) is kind
        assert "some/key" in str(raised.value)
        assert len(server.requests) == 1


async def test_only_our_own_retries_count() -> None:
    patience = Patience(attempts=3, backoff=0.001, attempt_deadline=30, deadline=60)
    async with (
        http_server(lambda _: answer("503 Slow Down", error_body("SlowDown"))) as server,
        bucket_at(server.endpoint, patience=patience) as store,
    ):
        with pytest.raises(ObjectStoreUnavailable, match="failed 3 times"):
            await store.get("key")
        assert len(server.requests) == 3


async def test_a_server_that_never_answers_is_given_up() -> None:
    patience = Patience(attempts=2, backoff=0.001, attempt_deadline=0.2, deadline=60)
    async with http_server(lambda _: None) as server, bucket_at(server.endpoint, patience=patience) as store:
        for call in (store.get("key"), store.put("key", [b"x"])):
            with pytest.raises(ObjectStoreUnavailable, match="key"):
                await call
        assert len(server.requests) == 4


@pytest.mark.parametrize("length", [3, 4], ids=["of the answer", "of the object"])
async def test_an_answer_that_breaks_off_is_not_an_object(length: int) -> None:
    def cut(_: Request) -> bytes:
        if length == 3:  # the connection ends too early
            return answer("200 OK", b"123", Content_Length="10", **OBJECT_HEADERS)
        return answer("206 Partial Content", b"1234", Content_Range="bytes 0-3/10", **OBJECT_HEADERS)

    async with http_server(cut) as server, bucket_at(server.endpoint) as store:
        with pytest.raises(ObjectStoreUnavailable, match="key"):
            await (store.get("key") if length == 3 else store.get_range("key", 0, 10))


async def test_an_answer_without_a_range_to_a_ranged_read_is_refused() -> None:
    async with (
        http_server(lambda _: answer("200 OK", b"0123456789", **OBJECT_HEADERS)) as server,
        bucket_at(server.endpoint) as store,
    ):
        with pytest.raises(ObjectStoreError, match="key"):
            await store.get_range("key", 2, 3)


async def test_eight_megabytes_are_one_request_and_whole() -> None:
    async with (
        http_server(lambda _: answer("200 OK", ETag='"x"')) as server,
        bucket_at(server.endpoint) as store,
    ):
        parts = [bytearray([number]) * (1 << 20) for number in range(8)]
        await store.put("wal/key", parts)
        (request,) = server.requests
        assert (request.method, request.path) == ("PUT", "/some-bucket/some/prefix/wal/key")
        assert request.body == b"".join(parts)
        assert "if-none-match" not in request.headers
        await store.put_new("wal/key", parts)
        assert server.requests[1].headers["if-none-match"] == "*"


async def test_the_bucket_goes_into_the_name_of_the_host_if_it_shall() -> None:
    async with http_server(lambda _: answer("404 Not Found", error_body("NoSuchKey"))) as server:
        endpoint = server.endpoint.replace("127.0.0.1", "localhost")
        async with bucket_at(endpoint, replace(CREDENTIALS, path_style=False)) as store:
            with pytest.raises(ObjectStoreError):
                await asyncio.wait_for(store.get("key"), 30)
        for request in server.requests:  # none where some-bucket.localhost has no address
            assert request.headers["host"].startswith("some-bucket.localhost")
            assert request.path == "/some/prefix/key"


async def test_credentials_come_from_the_options_or_else_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id-of-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-environment")
    async with http_server(lambda _: answer("404 Not Found", error_body("NoSuchKey"))) as server:
        options = replace(CREDENTIALS, session_token="some-token")
        for s3 in (options, S3Options(region="eu-west-1")):
            async with bucket_at(server.endpoint, s3) as store:
                with pytest.raises(ObjectNotFound, match="some/prefix"):
                    await store.get("key")
        first, second = (request.headers for request in server.requests)
        assert "Credential=some-id/" in first["authorization"]
        assert first["x-amz-security-token"] == "some-token"
        assert "Credential=id-of-the-environment/" in second["authorization"]
        assert "/eu-west-1/s3/" in second["authorization"]
        assert "x-amz-security-token" not in second

"""Addresses, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from strandline.objects import ObjectOptions, ObjectStoreMisconfigured, S3Options, open_objects
from strandline.objects.address import ObjectAddress, parse_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("file:///var/objects", ObjectAddress("file", "", "/var/objects")),
        ("file://relative/path with space", ObjectAddress("file", "", "relative/path with space")),
        ("s3://bucket", ObjectAddress("s3", "bucket", "")),
        ("s3://bucket/", ObjectAddress("s3", "bucket", "")),
        ("s3://bucket/a/b/", ObjectAddress("s3", "bucket", "a/b")),
        ("gs://bucket/a", ObjectAddress("gs", "bucket", "a")),
        ("az://container/a", ObjectAddress("az", "container", "a")),
        ("memory://", ObjectAddress("memory", "", "")),
    ],
)
def test_addresses(url: str, address: ObjectAddress) -> None:
    assert parse_address(url) == address
    assert parse_address(address.url) == address


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "file:///var/lib/strandline/objects"),
        ("/var/objects", "not an address of an object store"),
        ("ftp://host/x", "ftp://… is not an address"),
        ("file://", "path of a directory"),
        ("s3://", "name of a bucket"),
        ("s3:///prefix", "name of a bucket"),
        ("s3://bucket/a/../b", "prefix"),
        ("memory://name", "takes no name"),
    ],
)
def test_wrong_addresses_are_explained(url: str, words: str) -> None:
    with pytest.raises(ObjectStoreMisconfigured, match=words):
        parse_address(url)


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(ObjectStoreMisconfigured, match="must not hold credentials") as raised:
        parse_address("s3://key:very-secret@bucket/prefix")
    assert "very-secret" not in str(raised.value)


def test_options_do_not_show_secrets() -> None:
    options = ObjectOptions(s3=S3Options(access_key_id="id", secret_access_key="very-secret", session_token="token-x"))
    assert "very-secret" not in repr(options)
    assert "token-x" not in repr(options)


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("gs://bucket/prefix", {"GOOGLE_SKIP_SIGNATURE": "true"}),
        ("az://container/prefix", {"AZURE_STORAGE_ACCOUNT_NAME": "name", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}),
        ("s3://bucket/prefix", {}),
    ],
)
async def test_a_bucket_is_opened_without_a_request(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with open_objects(url) as store:
        assert store.url == url

"""Opens a bucket: from its address and options to a `CloudStore`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from obstore.store import AzureStore, GCSStore, S3Store

from strandline.objects.address import ObjectAddress
from strandline.objects.cloud.errors import LIBRARY_ERRORS, translate
from strandline.objects.cloud.store import CloudStore
from strandline.objects.options import ObjectOptions, S3Options

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

# RetryingStore retries, with its own deadlines and jitter; two layers of retries would multiply.
_NO_RETRIES: Final[RetryConfig] = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}


def make_cloud_store(address: ObjectAddress, options: ObjectOptions) -> CloudStore:
    """The store at an address. Nothing is sent yet. Raises ObjectStoreMisconfigured."""
    try:
        return CloudStore(_make(address, options), address.url)
    except LIBRARY_ERRORS as error:
        raise translate(error, "use", address.url) from error


def _make(address: ObjectAddress, options: ObjectOptions) -> AzureStore | GCSStore | S3Store:
    prefix = address.path or None
    client: ClientConfig = {"timeout": timedelta(seconds=options.patience.attempt_deadline)}
    if address.scheme == "gs":
        return GCSStore(address.bucket, prefix=prefix, client_options=client, retry_config=_NO_RETRIES)
    if address.scheme == "az":
        return AzureStore(address.bucket, prefix=prefix, client_options=client, retry_config=_NO_RETRIES)
    if (options.s3.endpoint_url or "").startswith("http://"):
        client["allow_http"] = True
    config = _s3_config(address.bucket, options.s3)
    return S3Store(address.bucket, prefix=prefix, config=config, client_options=client, retry_config=_NO_RETRIES)


def _s3_config(bucket: str, options: S3Options) -> S3Config:
    config: S3Config = {}
    if options.endpoint_url is not None:
        config["endpoint"] = _endpoint(bucket, options.endpoint_url, options.path_style)
    if options.region is not None:
        config["region"] = options.region
    if options.path_style is not None:
        config["virtual_hosted_style_request"] = not options.path_style
    if options.access_key_id is not None:
        config["access_key_id"] = options.access_key_id
    if options.secret_access_key is not None:
        config["secret_access_key"] = options.secret_access_key
    if options.session_token is not None:
        config["session_token"] = options.session_token
    return config


def _endpoint(bucket: str, endpoint: str, path_style: bool | None) -> str:
    """The endpoint as the library wants it: with the bucket in the host name if path_style is False."""
    if path_style is not False:
        return endpoint
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(netloc=f"{bucket}.{parts.netloc}"))

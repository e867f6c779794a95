"""Object store options from the diskless settings, for the broker and for commands."""

from __future__ import annotations

from strandline.config import DisklessSettings
from strandline.objects import ObjectOptions, Patience, S3Options
from strandline.objects.checking import StorePlace, public_url


def object_options(settings: DisklessSettings) -> ObjectOptions:
    """How to reach the store at `settings.objects_address`."""
    return ObjectOptions(
        s3=S3Options(
            endpoint_url=settings.inkless_storage_s3_endpoint_url,
            region=settings.inkless_storage_s3_region,
            path_style=settings.inkless_storage_s3_path_style_access_enabled,
            access_key_id=settings.inkless_storage_aws_access_key_id,
            secret_access_key=settings.inkless_storage_aws_secret_access_key,
            session_token=settings.inkless_storage_aws_session_token,
        ),
        patience=Patience(
            attempt_deadline=settings.inkless_storage_s3_api_call_attempt_timeout / 1000,
            deadline=settings.inkless_storage_s3_api_call_timeout / 1000,
        ),
        hedge_after=settings.inkless_fetch_hedge_ttfb_threshold_ms / 1000,
        threads=settings.inkless_produce_upload_thread_pool_size,
    )


def object_place(settings: DisklessSettings) -> StorePlace:
    """Where the store is, for sentences about one that cannot be used."""
    return StorePlace(
        url=public_url(settings.objects_address),
        url_setting="strandline.objects.url",
        endpoint=settings.inkless_storage_s3_endpoint_url,
        endpoint_setting="inkless.storage.s3.endpoint.url",
        credentials_setting="inkless.storage.aws.access.key.id and inkless.storage.aws.secret.access.key",
    )


def orphan_grace_ms(settings: DisklessSettings) -> int:
    """The age at which an object without a file row is an orphan: long after its writer has abandoned it."""
    return max(settings.inkless_file_cleaner_retention_period_ms, settings.strandline_objects_orphan_scan_interval_ms)

"""The settings of `ObjectRemoteStorage`: those with the prefix rsm.config. in the configuration of the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from strandline.errors import InvalidConfig
from strandline.objects import ObjectOptions, Patience, S3Options
from strandline.objects.checking import StorePlace
from strandline.objects.marker import REMOTE_STORE_ID_KEY

T = TypeVar("T")

_PREFIX: Final = "rsm.config."
# Diskless topics have the same settings with this prefix; it is accepted here too.
_FAMILY: Final = "inkless."
_NAMES: Final = frozenset(
    {
        "url",
        "key.prefix",
        "storage.s3.bucket.name",
        "storage.s3.region",
        "storage.s3.endpoint.url",
        "storage.s3.path.style.access.enabled",
        "storage.s3.api.call.timeout",
        "storage.s3.api.call.attempt.timeout",
        "storage.aws.access.key.id",
        "storage.aws.secret.access.key",
        "storage.aws.session.token",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSettings:
    """Where the segments are, and how the object store is reached."""

    url: str
    prefix: str
    options: ObjectOptions
    is_in_data_dir: bool = False
    """Whether it is the directory `remote` of the data directory, and moves with it."""


def parse_object_settings(config: Mapping[str, str], data_dir: Path) -> ObjectSettings:
    """Parse the settings; the default is the directory `remote` in `data_dir`. Raises InvalidConfig."""
    found = {name.removeprefix(_FAMILY): str(value).strip() for name, value in config.items()}
    unknown = sorted(found.keys() - _NAMES)
    if unknown:
        raise InvalidConfig(
            f"{_PREFIX}{unknown[0]} is not a setting of the object storage for segments. Its settings are "
            f"{', '.join(_PREFIX + name for name in sorted(_NAMES))}."
        )
    bucket = found.get("storage.s3.bucket.name")
    default = data_dir.absolute() / "remote"
    url = found.get("url") or (f"s3://{bucket}" if bucket else f"file://{default}")
    prefix = found.get("key.prefix", "")
    return ObjectSettings(
        url=url,
        prefix=prefix,
        options=replace(_options(found), witness=prefix + REMOTE_STORE_ID_KEY),
        is_in_data_dir=url.startswith("file://") and Path(url.removeprefix("file://")).absolute() == default,
    )


def rsm_place(url: str, endpoint: str | None) -> StorePlace:
    """Where the segments are, for sentences about a storage that cannot be used."""
    return StorePlace(
        url=url,
        url_setting=f"{_PREFIX}url",
        endpoint=endpoint,
        endpoint_setting=f"{_PREFIX}storage.s3.endpoint.url",
        credentials_setting=f"{_PREFIX}storage.aws.access.key.id and {_PREFIX}storage.aws.secret.access.key",
    )


def _options(found: Mapping[str, str]) -> ObjectOptions:
    patience = Patience()
    return ObjectOptions(
        s3=S3Options(
            endpoint_url=found.get("storage.s3.endpoint.url"),
            region=found.get("storage.s3.region"),
            path_style=_parsed(found, "storage.s3.path.style.access.enabled", _flag, True),
            access_key_id=found.get("storage.aws.access.key.id"),
            secret_access_key=found.get("storage.aws.secret.access.key"),
            session_token=found.get("storage.aws.session.token"),
        ),
        patience=Patience(
            attempt_deadline=_parsed(found, "storage.s3.api.call.attempt.timeout", _seconds, patience.attempt_deadline),
            deadline=_parsed(found, "storage.s3.api.call.timeout", _seconds, patience.deadline),
        ),
    )


def _parsed(found: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    text = found.get(name)
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidConfig(f"{_PREFIX}{name}={text} is not valid. {error}") from error


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("It must be true or false.")
    return text.lower() == "true"


def _seconds(text: str) -> float:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("It must be a number of milliseconds, at least 1.")
    return int(text) / 1000

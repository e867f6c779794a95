"""Settings of a subscription to metrics of clients (KIP-714), the config resource CLIENT_METRICS.

A subscription says which metrics its clients push, how often, and which clients it is about: `match` is a list of
`attribute=regular expression`, all of which have to match the whole attribute. Expressions are those of RE2, so that no
name of a client can keep the broker busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.config.declare import INT, LIST, Declaration, declarations_of, parse_area, setting
from strandline.errors import InvalidConfig, InvalidRegularExpression, InvalidRequest
from strandline.patterns import compile_pattern

DEFAULT_INTERVAL_MS: Final = 300_000
MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000
ALL_METRICS: Final = "*"
CLIENT_INSTANCE_ID: Final = "client_instance_id"
CLIENT_ID: Final = "client_id"
CLIENT_SOFTWARE_NAME: Final = "client_software_name"
CLIENT_SOFTWARE_VERSION: Final = "client_software_version"
CLIENT_SOURCE_ADDRESS: Final = "client_source_address"
CLIENT_SOURCE_PORT: Final = "client_source_port"
_ATTRIBUTES: Final = (
    CLIENT_INSTANCE_ID,
    CLIENT_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    CLIENT_SOURCE_ADDRESS,
    CLIENT_SOURCE_PORT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMetricsConfig:
    """What one subscription says."""

    metrics: tuple[str, ...] = setting(
        "metrics",
        LIST,
        (),
        "Prefixes of the names of the metrics that clients push. `*`: all metrics. Empty: none.",
    )
    interval_ms: int = setting(
        "interval.ms",
        INT,
        DEFAULT_INTERVAL_MS,
        "How often clients push.",
        least=MIN_INTERVAL_MS,
        most=MAX_INTERVAL_MS,
    )
    match: tuple[str, ...] = setting(
        "match",
        LIST,
        (),
        "The clients, as attribute=regular expression. The attributes are " + ", ".join(_ATTRIBUTES) + ". "
        "Empty: all clients.",
    )

    @property
    def patterns(self) -> dict[str, Any]:
        """The expression that each attribute of a client has to match. Raises InvalidConfig."""
        return dict(_pattern(part) for part in self.match)


CLIENT_METRICS_DECLARATIONS: Final[Mapping[str, Declaration]] = declarations_of(ClientMetricsConfig)


def client_metrics_config(overrides: Mapping[str, str]) -> ClientMetricsConfig:
    """The subscription with these settings. Raises InvalidConfig for an illegal value; other names are left out."""
    values = parse_area(ClientMetricsConfig, overrides)
    return ClientMetricsConfig(**values)  # type: ignore[arg-type]  # of the types that their declarations say


def validate_client_metrics(name: str, overrides: Mapping[str, str]) -> None:
    """Raise InvalidRequest or InvalidConfig, as Kafka does, if a subscription may not have these settings."""
    if not name:
        raise InvalidRequest("A subscription to metrics of clients needs a name.")
    for key in overrides:
        if key not in CLIENT_METRICS_DECLARATIONS:
            known = ", ".join(CLIENT_METRICS_DECLARATIONS)
            raise InvalidRequest(f"{key} is not a setting of a subscription to metrics of clients, only {known} are.")
    interval = overrides.get("interval.ms", "").strip()
    try:
        _ = client_metrics_config(overrides).patterns
    except InvalidConfig as error:
        if interval.lstrip("-").isdecimal() and not MIN_INTERVAL_MS <= int(interval[:12]) <= MAX_INTERVAL_MS:
            raise InvalidRequest(str(error)) from error  # a number outside the range has another code than no number
        raise


def _pattern(part: str) -> tuple[str, Any]:
    attribute, equals, expression = (piece.strip() for piece in part.partition("="))
    if not equals or "=" in expression or attribute not in _ATTRIBUTES:  # as in Kafka, no expression has an equals sign
        known = ", ".join(_ATTRIBUTES)
        raise InvalidConfig(f"match={part!r} must be attribute=expression, and the attribute one of {known}.")
    try:
        return attribute, compile_pattern(expression, name="match")
    except InvalidRegularExpression as error:
        raise InvalidConfig(str(error)) from error

"""Settings of the HTTP listener with health, metrics and status, and of the metrics that clients push."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.config.declare import INT, STRING, setting
from strandline.config.listeners import parse_address


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """Settings of what the broker shows of itself and of its clients."""

    strandline_http_listen: str = setting(
        "strandline.http.listen",
        STRING,
        "127.0.0.1:9644",
        "The address of the HTTP listener (/healthz, /readyz, /metrics, status page), as host:port. It asks for no "
        "password, so it is local by default. Empty: no HTTP.",
    )

    telemetry_max_bytes: int = setting(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        "The most bytes of metrics that a client may push at once, compressed as well as decompressed.",
        least=1,
    )

    @property
    def http_address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP listener, or None if there is none. Raises InvalidConfig."""
        text = self.strandline_http_listen
        return parse_address(text, name="strandline.http.listen") if text else None

    def check(self) -> None:
        """Raise InvalidConfig if the address is not one."""
        _ = self.http_address

"""The server that a PostgreSQL address leads to: which of several, and how sentences name it.

Sentences have the host and the port, never a user or a password.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from strandline.sql.errors import StoreMisconfigured

_DEFAULT_PORT: Final = "5432"
_HOST_AND_PORT: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d*))?")
_CREDENTIAL: Final = re.compile(r"(user|password)=")


def server_of(url: str) -> str:
    """For example `db.example.com:5432`. Raises StoreMisconfigured, without a word of the address."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _unreadable() from error
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    options = parts.query.split("&")
    if (
        parts.netloc
        and "@" not in parts.netloc
        and ("@" in parts.path + parts.fragment or any("@" in one and not _CREDENTIAL.match(one) for one in options))
    ):
        raise _unreadable()  # what looks like the host is the beginning of the user's name and password
    hosts = unquote(parts.netloc.rpartition("@")[2]) or query.get("host") or os.environ.get("PGHOST", "")
    port = query.get("port") or os.environ.get("PGPORT") or _DEFAULT_PORT
    return ", ".join(_named(host, port) for host in hosts.split(","))


def role_of(url: str) -> str | None:
    """The kind of server to look for, as the driver calls it; None if the address or the environment says it.

    A standby is not used for reads either: it lags behind, which looks as if the database had lost commits.
    """
    query = parse_qs(urlsplit(url).query)
    return None if "target_session_attrs" in query or "PGTARGETSESSIONATTRS" in os.environ else "primary"


def _named(address: str, port: str) -> str:
    if address.startswith("/"):
        return f"{address}/.s.PGSQL.{port}"
    match = _HOST_AND_PORT.fullmatch(address)
    if match is None:
        raise _unreadable()
    return f"{match['host'] or 'localhost'}:{match['port'] or port}"


def _unreadable() -> StoreMisconfigured:
    return StoreMisconfigured(
        "strandline.metadata.url cannot be read: use postgresql://user:password@host:port/database, and write the "
        "characters / ? # @ : of a user or a password as %2F %3F %23 %40 %3A."
    )

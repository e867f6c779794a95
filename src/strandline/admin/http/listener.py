"""The HTTP listener of a broker: bound before the broker registers, served when it serves Kafka clients.

Imports nothing heavy: starlette and uvicorn take longer to load than the rest of the broker.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.admin.status import BrokerSource
from strandline.config.listeners import join_address

logger = logging.getLogger(__name__)


class HttpListener:
    """The listener of `strandline.http.listen`, or none."""

    def __init__(self, address: tuple[str, int] | None) -> None:
        """Binds the address, and does not listen yet. Raises OSError."""
        self._socket = None if address is None else bind_http(*address)

    @asynccontextmanager
    async def serving(self, source: BrokerSource) -> AsyncIterator[None]:
        """Serve while the block lasts."""
        if self._socket is None:
            yield
            return
        # Loaded now, and in a thread: clients wait neither for a web framework nor while it loads.
        http = await asyncio.to_thread(importlib.import_module, "strandline.admin.http.server")
        async with http.open_http(source, http.CollectorRegistry(), self._socket) as bound:
            logger.info("HTTP on http://%s:%d (/healthz, /readyz, /metrics)", *bound)
            yield

    def close(self) -> None:
        """Give the address back."""
        if self._socket is not None:
            self._socket.close()


def bind_http(host: str, port: int) -> socket.socket:
    """A socket that is bound, but does not listen yet. Raises OSError with the setting and the reason."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise OSError(
            error.errno,
            f"strandline.http.listen={join_address(host, port)} cannot be used: {reason}. Choose another address "
            "there (or --http)",
        ) from error
    return listener
